// Tiny text models with damaged metadata.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "model/model_config.h"
#include "support/expect_error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::model {

using test::expect_error;
using test::GgufMutations;
using test::GgufValue;
using test::TinyTextModel;

inline constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();

/// Damage, and what the error must name: the key or tensor, the expected and the found.
struct Case {
  std::string what;
  GgufMutations mutations;
  ErrorCode code;
  std::vector<std::string> parts;
};

class ModelConfigTest : public testing::Test {
 protected:
  ModelConfig read(const TinyTextModel& model, GgufMutations mutations = {}) {
    mutations.data = GgufMutations::Data::kSparse;  // only metadata is read
    write_tiny_text(model, path_, mutations);
    return read_model_config(GgufFile::open(path_));
  }
  void expect_refused(const TinyTextModel& model, const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      SCOPED_TRACE(model.arch + ": " + c.what);
      std::vector<std::string> parts = c.parts;
      parts.push_back(path_);
      expect_error([&] { read(model, c.mutations); }, c.code, parts);
    }
  }
  test::TempDir dir_;
  std::string path_ = dir_.file("text.gguf");
};

inline const TinyTextModel kQwen3 = {};
inline const TinyTextModel kLlama = {.arch = "llama"};
inline const TinyTextModel kQwen2 = {.arch = "qwen2"};
inline const TinyTextModel kQwen2VL = {.arch = "qwen2vl"};

}  // namespace plateau::model
