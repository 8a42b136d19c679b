#include "synth/gguf_plan.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <type_traits>

#include "base/check.h"
#include "ggml-cpp.h"
#include "gguf.h"
#include "synth/weight_stream.h"

namespace plateau::synth {
namespace {

// Values generated at a time; a multiple of four, see WeightStream::fill.
constexpr int64_t kChunkValues = 1 << 20;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

template <typename T>
void set_array(gguf_context* gguf, const char* key, gguf_type type, const std::vector<T>& values) {
  gguf_set_arr_data(gguf, key, type, values.data(), values.size());
}

void set_key(gguf_context* gguf, const std::string& name, const GgufValue& value) {
  const char* key = name.c_str();
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) gguf_set_val_bool(gguf, key, v);
        if constexpr (std::is_same_v<T, uint32_t>) gguf_set_val_u32(gguf, key, v);
        if constexpr (std::is_same_v<T, int32_t>) gguf_set_val_i32(gguf, key, v);
        if constexpr (std::is_same_v<T, uint64_t>) gguf_set_val_u64(gguf, key, v);
        if constexpr (std::is_same_v<T, int64_t>) gguf_set_val_i64(gguf, key, v);
        if constexpr (std::is_same_v<T, float>) gguf_set_val_f32(gguf, key, v);
        if constexpr (std::is_same_v<T, double>) gguf_set_val_f64(gguf, key, v);
        if constexpr (std::is_same_v<T, std::string>) gguf_set_val_str(gguf, key, v.c_str());
        if constexpr (std::is_same_v<T, std::vector<uint32_t>>) {
          set_array(gguf, key, GGUF_TYPE_UINT32, v);
        }
        if constexpr (std::is_same_v<T, std::vector<int32_t>>) {
          set_array(gguf, key, GGUF_TYPE_INT32, v);
        }
        if constexpr (std::is_same_v<T, std::vector<float>>) {
          set_array(gguf, key, GGUF_TYPE_FLOAT32, v);
        }
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          std::vector<const char*> strings;
          for (const std::string& s : v) strings.push_back(s.c_str());
          gguf_set_arr_str(gguf, key, strings.data(), strings.size());
        }
      },
      value);
}

// gguf asserts this one while writing; patch_file reaches a file that has it wrong.
void check_alignment(const std::string& name, const GgufValue& value) {
  if (name != GGUF_KEY_GENERAL_ALIGNMENT) return;
  const uint32_t* alignment = std::get_if<uint32_t>(&value);
  if (alignment == nullptr || !std::has_single_bit(*alignment)) {
    throw_error(ErrorCode::kInvalidArgument, "[gguf_plan] expected {} to be a power of two", name);
  }
}

PlannedTensor& find_tensor(GgufPlan& plan, const std::string& name) {
  const auto found = std::find_if(plan.tensors.begin(), plan.tensors.end(),
                                  [&](const PlannedTensor& t) { return t.name == name; });
  if (found == plan.tensors.end()) {
    throw_error(ErrorCode::kInvalidArgument, "[gguf_plan] expected a planned tensor, got {}", name);
  }
  return *found;
}

void apply(const GgufMutations& mutations, GgufPlan& plan) {
  for (const auto& [name, ne] : mutations.reshape_tensors) find_tensor(plan, name).ne = ne;
  for (const auto& [name, type] : mutations.retype_tensors) find_tensor(plan, name).type = type;
  for (const std::string& name : mutations.omit_tensors) {
    plan.tensors.erase(plan.tensors.begin() + (&find_tensor(plan, name) - plan.tensors.data()));
  }
  for (const PlannedTensor& tensor : mutations.add_tensors) plan.tensors.push_back(tensor);
  for (const std::string& name : mutations.omit_keys) {
    if (std::erase_if(plan.keys, [&](const auto& key) { return key.first == name; }) == 0) {
      throw_error(ErrorCode::kInvalidArgument, "[gguf_plan] expected a planned key, got {}", name);
    }
  }
  for (const auto& [name, value] : mutations.set_keys) {
    const auto found = std::find_if(plan.keys.begin(), plan.keys.end(),
                                    [&, &key = name](const auto& k) { return k.first == key; });
    if (found != plan.keys.end()) {
      found->second = value;
    } else {
      plan.keys.emplace_back(name, value);
    }
  }
}

// What ggml and gguf assert, checked first: a test must fail, not abort the whole binary.
void check_tensor(const PlannedTensor& t) {
  const bool dims = !t.ne.empty() && t.ne.size() <= GGML_MAX_DIMS &&
                    std::all_of(t.ne.begin(), t.ne.end(), [](int64_t n) { return n > 0; });
  if (!dims || t.name.size() >= GGML_MAX_NAME || t.ne[0] % ggml_blck_size(t.type) != 0) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "[gguf_plan] expected a name below {} bytes, 1 to {} positive dimensions and rows of "
        "whole {} blocks, got tensor {}",
        GGML_MAX_NAME, GGML_MAX_DIMS, ggml_type_name(t.type), t.name);
  }
}

class TensorWriter {
 public:
  TensorWriter(std::FILE* file, const std::function<void()>& on_chunk)
      : file_(file), on_chunk_(on_chunk) {}

  void write(const PlannedTensor& tensor, uint64_t seed) {
    const int64_t n_per_row = tensor.ne[0];
    int64_t n_rows = 1;
    for (size_t i = 1; i < tensor.ne.size(); ++i) n_rows *= tensor.ne[i];
    // A row count that is a multiple of four keeps every chunk but the last one so, too.
    int64_t rows_at_once = std::max<int64_t>(4, kChunkValues / n_per_row / 4 * 4);
    if (tensor.rotate_rows != 0) rows_at_once = n_rows;

    WeightStream stream(tensor.name, seed);
    for (int64_t row = 0; row < n_rows; row += rows_at_once) {
      const int64_t n = std::min(rows_at_once, n_rows - row);
      values_.resize(static_cast<size_t>(n * n_per_row));
      stream.fill(values_, tensor.mean, tensor.deviation);
      std::rotate(values_.begin(), values_.begin() + tensor.rotate_rows * n_per_row, values_.end());
      bytes_.resize(ggml_row_size(tensor.type, n_per_row) * static_cast<size_t>(n));
      ggml_quantize_chunk(tensor.type, values_.data(), bytes_.data(), 0, n, n_per_row, nullptr);
      put(bytes_);
      if (on_chunk_) on_chunk_();
    }
  }

  void pad_to(size_t n_bytes) {
    if (n_written_ < n_bytes) put(std::vector<uint8_t>(n_bytes - n_written_, 0));
  }

  void flush() {
    if (std::fflush(file_) != 0) {
      throw_error(ErrorCode::kUnavailable, "[gguf_plan] the file cannot be written; disk full?");
    }
  }

 private:
  void put(const std::vector<uint8_t>& bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
      throw_error(ErrorCode::kUnavailable, "[gguf_plan] expected to write {} bytes; disk full?",
                  bytes.size());
    }
    n_written_ += bytes.size();
  }

  std::FILE* file_;
  const std::function<void()>& on_chunk_;
  size_t n_written_ = 0;  // of tensor data
  std::vector<float> values_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

void write_gguf(GgufPlan plan, const GgufMutations& mutations, const std::string& path,
                const std::function<void()>& on_chunk) {
  apply(mutations, plan);
  const gguf_context_ptr gguf(gguf_init_empty());
  for (const auto& [name, value] : plan.keys) {
    check_alignment(name, value);
    set_key(gguf.get(), name, value);
  }

  const ggml_init_params params = {ggml_tensor_overhead() * (plan.tensors.size() + 1), nullptr,
                                   /*no_alloc=*/true};
  const ggml_context_ptr shapes(ggml_init(params));
  std::set<std::string> names;
  for (const PlannedTensor& tensor : plan.tensors) {
    check_tensor(tensor);
    if (!names.insert(tensor.name).second) {
      throw_error(ErrorCode::kInvalidArgument, "[gguf_plan] expected unique names, got {} twice",
                  tensor.name);
    }
    ggml_tensor* shape = ggml_new_tensor(shapes.get(), tensor.type,
                                         static_cast<int>(tensor.ne.size()), tensor.ne.data());
    ggml_set_name(shape, tensor.name.c_str());
    gguf_add_tensor(gguf.get(), shape);
  }
  if (!gguf_write_to_file(gguf.get(), path.c_str(), /*only_meta=*/true)) {
    throw_error(ErrorCode::kUnavailable, "[gguf_plan] expected a writable file, got {}", path);
  }

  if (mutations.data == GgufMutations::Data::kNone || plan.tensors.empty()) return;
  const size_t alignment = gguf_get_alignment(gguf.get());
  const int64_t last = gguf_get_n_tensors(gguf.get()) - 1;
  const size_t n_data_bytes = GGML_PAD(
      gguf_get_tensor_offset(gguf.get(), last) + gguf_get_tensor_size(gguf.get(), last), alignment);
  if (mutations.data == GgufMutations::Data::kSparse) {
    std::filesystem::resize_file(path, gguf_get_meta_size(gguf.get()) + n_data_bytes);
    return;
  }
  const File file(std::fopen(path.c_str(), "ab"));
  if (file == nullptr) {
    throw_error(ErrorCode::kUnavailable, "[gguf_plan] expected a writable file, got {}", path);
  }
  TensorWriter writer(file.get(), on_chunk);
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    writer.pad_to(gguf_get_tensor_offset(gguf.get(), static_cast<int64_t>(i)));
    writer.write(plan.tensors[i], plan.seed);
  }
  writer.pad_to(n_data_bytes);
  writer.flush();
}

void truncate_file(const std::string& path, size_t n_bytes) {
  PLATEAU_CHECK(n_bytes <= std::filesystem::file_size(path));
  std::filesystem::resize_file(path, n_bytes);
}

void patch_file(const std::string& path, const std::string& from, const std::string& to) {
  PLATEAU_CHECK(from.size() == to.size());
  std::ifstream in(path, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const size_t at = content.find(from);
  if (at == std::string::npos) {
    throw_error(ErrorCode::kNotFound, "[gguf_plan] expected {} in {}", from, path);
  }
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(at));
  out.write(to.data(), static_cast<std::streamsize>(to.size()));
}

}  // namespace plateau::synth
