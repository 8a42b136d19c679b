// Keeps llama.cpp, ggml and mtmd off stderr and remembers their last complaints, because the reason
// of a null return exists nowhere else.
#pragma once

#include <string>

namespace plateau::test {

/// Takes over the process-wide log callbacks. Called by the oracles before they load a file; code
/// under test that sets its own callback afterwards keeps it until the next oracle is made.
void capture_llama_logs();

/// Warnings and errors since capture_llama_logs() was last called, at most the last few lines.
std::string captured_llama_log();

}  // namespace plateau::test
