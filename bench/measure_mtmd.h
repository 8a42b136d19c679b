// The same question about a picture through the pinned llama.cpp, in this process.
#pragma once

#include <cstdint>
#include <string>

#include "plateau/options.h"

namespace plateau {

struct MtmdRun {
  int64_t prompt_tokens = 0;
  int64_t peak_anon_bytes = 0;  // with the projector's weights, which libmtmd does not map
};

/// Picture, question and one step of the answer as llama.cpp's own tools feed them: the picture
/// decoded whole, encoded, and read in micro-batches of 512 tokens into a full cache.
/// `max_tokens`: visual ones, beyond which the picture is shrunk; 0: as the file says.
/// REQUIRES: a Qwen2.5-VL pair.
MtmdRun measure_mtmd(const EngineOptions& options, const std::string& picture_path,
                     const std::string& question, int64_t max_tokens);

}  // namespace plateau
