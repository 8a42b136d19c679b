#include "base/check.h"
#include "graph/decoder.h"

namespace plateau::graph {

BuildDecoder find_decoder(model::Architecture architecture) {
  switch (architecture) {
    case model::Architecture::kLlama:
      return build_llama;
    case model::Architecture::kQwen2:
      return build_qwen2;
    case model::Architecture::kQwen2VL:
      return build_qwen2vl;
    case model::Architecture::kQwen3:
      return build_qwen3;
  }
  PLATEAU_CHECK(false);
  return nullptr;
}

}  // namespace plateau::graph
