#include "wide_qwen.h"

#include "cached_file.h"
#include "support/synth.h"

namespace plateau {

EngineOptions wide_qwen(int n_threads) {
  EngineOptions options;
  options.model_path = cached_file("plateau-wide-text.gguf", [](const std::string& path) {
    test::write_tiny_text({.arch = "qwen2vl",
                           .n_layer = 1,
                           .n_embd = 2048,
                           .n_head = 16,
                           .n_head_kv = 2,
                           .head_dim = 128,
                           .n_ff = 11008},
                          path);
  });
  options.mmproj_path = cached_file("plateau-wide-mmproj.gguf", [](const std::string& path) {
    test::write_tiny_qwen_vision({.n_embd = 1280,
                                  .n_layer = 2,
                                  .n_head = 16,
                                  .n_ff = 3420,
                                  .full_every = 2,
                                  .projection_dim = 2048},
                                 path);
  });
  options.n_threads = n_threads;
  options.device = "CPU";
  return options;
}

}  // namespace plateau
