// Argument vector for CLI11, which takes one-letter short options only: llama.cpp's -ctk, -ctv and
// -ngl become their long names.
// Tested by tests/cli/arguments_test.cc.
#pragma once

#include <string>
#include <vector>

namespace plateau::cli {

/// The arguments after the program's name, in order.
std::vector<std::string> normalized_arguments(int argc, const char* const* argv);

}  // namespace plateau::cli
