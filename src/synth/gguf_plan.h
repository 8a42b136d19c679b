// A GGUF file as a list of keys and tensors, the damage a test wants done to it, and the writer
// that puts it on disk tensor by tensor, so that a file of any size needs little memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ggml.h"

namespace plateau::synth {

using GgufValue = std::variant<bool, uint32_t, int32_t, uint64_t, int64_t, float, double,
                               std::string, std::vector<uint32_t>, std::vector<int32_t>,
                               std::vector<float>, std::vector<std::string>>;

struct PlannedTensor {
  std::string name = {};
  std::vector<int64_t> ne = {};  // ggml order: ne[0] is the fastest
  ggml_type type = GGML_TYPE_F32;
  float mean = 0.0F;
  float deviation = 1.0F;
  int64_t rotate_rows = 0;  // after filling, this many leading rows move to the end
};

struct GgufPlan {
  std::vector<std::pair<std::string, GgufValue>> keys;
  std::vector<PlannedTensor> tensors;
  uint64_t seed = 1;
};

/// Damage for negative tests. Names that the plan does not hold are errors, except in `set_keys`,
/// which also adds.
struct GgufMutations {
  std::map<std::string, GgufValue> set_keys = {};
  std::set<std::string> omit_keys = {};
  std::set<std::string> omit_tensors = {};
  std::map<std::string, std::vector<int64_t>> reshape_tensors = {};
  std::map<std::string, ggml_type> retype_tensors = {};
  std::vector<PlannedTensor> add_tensors = {};

  enum class Data {
    kRandom,  // as planned
    kSparse,  // the file has its full size but is zeros, as a hole: any shape costs no disk
    kNone,    // the file ends after the header
  };
  Data data = Data::kRandom;
};

/// Writes the file, replacing one that exists.
/// `on_chunk` (may be empty) is called every megabyte or so, and may throw to stop.
/// Errors: kInvalidArgument (a plan that cannot be expressed in GGUF), kUnavailable (disk).
void write_gguf(GgufPlan plan, const GgufMutations& mutations, const std::string& path,
                const std::function<void()>& on_chunk = {});

/// Cuts the file to its first `n_bytes` bytes.
void truncate_file(const std::string& path, size_t n_bytes);

/// Replaces the first occurrence of `from` in the file by `to`. REQUIRES: equal lengths.
/// Reaches what a well-behaved writer refuses, such as two tensors of one name.
void patch_file(const std::string& path, const std::string& from, const std::string& to);

}  // namespace plateau::synth
