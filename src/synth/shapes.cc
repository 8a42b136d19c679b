#include "synth/shapes.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <vector>

#include "base/check.h"
#include "base/nearest.h"

namespace plateau::synth {
namespace {

namespace fs = std::filesystem;

// Part of the file names: a file of another version has other content.
constexpr int kVersion = 1;

const std::map<std::string, ggml_type> kWeightTypes = {
    {"f16", GGML_TYPE_F16}, {"q4_0", GGML_TYPE_Q4_0}, {"q8_0", GGML_TYPE_Q8_0}};

/// InternViT-300M with the projector of InternVL 2.5, 3 and 3.5 to a decoder of this width: tiles
/// of 448 pixels, 256 tokens each.
TinyVision internvit_300m(int n_embd_text) {
  return {.tile = 448,
          .patch = 14,
          .n_embd = 1024,
          .n_layer = 24,
          .n_head = 16,
          .n_ff = 4096,
          .scale_factor = 2,
          .projection_dim = n_embd_text,
          .type = GGML_TYPE_F16};
}

/// The widths of a published decoder; all have 128 values per head but the smallest.
struct Decoder {
  const char* arch;
  int n_layer, n_embd, n_head, n_head_kv, n_ff, n_vocab;
  bool tied;
};

TinyTextModel decoder(const Decoder& d) {
  return {.arch = d.arch,
          .n_layer = d.n_layer,
          .n_embd = d.n_embd,
          .n_head = d.n_head,
          .n_head_kv = d.n_head_kv,
          .head_dim = 128,
          .n_ff = d.n_ff,
          .n_vocab = d.n_vocab,
          .tied = d.tied};
}

std::vector<Shape> make_shapes() {
  return {
      {"0.5b", "Qwen2.5-0.5B and InternViT-300M, as in InternVL2.5-1B", half_billion_shape(),
       internvit_300m(896)},
      {"internvl3.5-1b", "Qwen3-0.6B and InternViT-300M",
       decoder({"qwen3", 28, 1024, 16, 8, 3072, 151936, true}), internvit_300m(1024)},
      {"2b", "Qwen2-1.5B, as in Qwen2-VL-2B",
       decoder({"qwen2", 28, 1536, 12, 2, 8960, 151936, true}), std::nullopt},
      {"internvl3.5-2b", "Qwen3-1.7B and InternViT-300M",
       decoder({"qwen3", 28, 2048, 16, 8, 6144, 151936, true}), internvit_300m(2048)},
      {"qwen2.5-vl-3b", "Qwen2.5-3B; the decoder only",
       decoder({"qwen2", 36, 2048, 16, 2, 11008, 151936, true}), std::nullopt},
      {"internvl3.5-4b", "Qwen3-4B and InternViT-300M",
       decoder({"qwen3", 36, 2560, 32, 8, 9728, 151936, true}), internvit_300m(2560)},
      {"qwen2.5-vl-7b", "Qwen2.5-7B; the decoder only",
       decoder({"qwen2", 28, 3584, 28, 4, 18944, 152064, false}), std::nullopt},
      {"internvl3.5-8b", "Qwen3-8B and InternViT-300M",
       decoder({"qwen3", 36, 4096, 32, 8, 12288, 151936, false}), internvit_300m(4096)},
  };
}

int64_t n_data_bytes(const GgufPlan& plan) {
  int64_t n_bytes = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    int64_t n_rows = 1;
    for (size_t i = 1; i < tensor.ne.size(); ++i) n_rows *= tensor.ne[i];
    n_bytes += n_rows * static_cast<int64_t>(ggml_row_size(tensor.type, tensor.ne[0]));
  }
  return n_bytes;
}

/// Removes what was not renamed.
struct PartFile {
  fs::path path;
  ~PartFile() {
    std::error_code ec;
    fs::remove(path, ec);
  }
};

void make_folder(const std::string& folder) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec || ::access(folder.c_str(), W_OK) != 0) {
    throw_error(ErrorCode::kUnavailable,
                "[{}] the folder for random models cannot be written; try --shape-dir", folder);
  }
}

void check_room(const std::string& folder, const std::string& name, int64_t n_bytes) {
  std::error_code ec;
  const fs::space_info space = fs::space(folder, ec);
  if (ec || static_cast<int64_t>(space.available) > n_bytes) return;
  throw_error(ErrorCode::kResourceExhausted,
              "[{}] expected {} MiB of free disk space for {}, got {} MiB; try fewer --layers or "
              "another --shape-dir",
              folder, n_bytes >> 20, name, static_cast<int64_t>(space.available) >> 20);
}

bool make_file(const ShapeRequest& request, const GgufPlan& plan, const fs::path& path) {
  std::error_code ec;
  if (fs::is_regular_file(path, ec)) return false;
  make_folder(request.folder);
  const int64_t n_bytes = n_data_bytes(plan);
  check_room(request.folder, path.filename().string(), n_bytes);
  if (request.on_write) request.on_write(path.string(), n_bytes);
  const PartFile part{fmt::format("{}.{}.part", path.string(), ::getpid())};
  write_gguf(plan, {}, part.path.string(), [&] {
    if (request.should_cancel && request.should_cancel()) {
      throw_error(ErrorCode::kCancelled, "interrupted");
    }
  });
  fs::rename(part.path, path, ec);
  if (ec) throw_error(ErrorCode::kUnavailable, "[{}] cannot be written", path.string());
  return true;
}

}  // namespace

std::span<const Shape> shapes() {
  static const std::vector<Shape> all = make_shapes();
  return all;
}

const Shape& find_shape(const std::string& name) {
  std::vector<std::string> names;
  for (const Shape& shape : shapes()) {
    if (name == shape.name) return shape;
    names.emplace_back(shape.name);
  }
  throw_error(ErrorCode::kInvalidArgument, "[--shape] expected one of {}, got {}{}",
              fmt::join(names, ", "), name, did_you_mean(name, names));
}

ggml_type parse_weight_type(const std::string& name) {
  const auto type = kWeightTypes.find(name);
  if (type == kWeightTypes.end()) {
    throw_error(ErrorCode::kInvalidArgument, "[--type] expected f16, q4_0 or q8_0, got {}", name);
  }
  return type->second;
}

ShapeFile make_text_shape(const ShapeRequest& request) {
  const Shape& shape = find_shape(request.shape);
  TinyTextModel text = shape.text;
  const int n_published = text.n_layer;
  if (request.n_layer < 0 || request.n_layer > n_published) {
    throw_error(ErrorCode::kInvalidArgument, "[--layers] expected 1 to {} for {}, got {}",
                n_published, shape.name, request.n_layer);
  }
  text.type = parse_weight_type(request.type);
  if (request.n_layer > 0) text.n_layer = request.n_layer;
  const fs::path path =
      fs::path(request.folder) /
      fmt::format("{}-{}-{}l-v{}.gguf", shape.name, request.type, text.n_layer, kVersion);
  const bool was_made = make_file(request, plan_tiny_text(text), path);
  return {path.string(), was_made, text.n_layer, n_published};
}

ShapeFile make_vision_shape(const ShapeRequest& request) {
  const Shape& shape = find_shape(request.shape);
  if (!shape.vision) {
    throw_error(ErrorCode::kUnsupported,
                "[--shape] expected a shape with a vision tower, got {}; try --tokens, or --mmproj "
                "with a file",
                shape.name);
  }
  const fs::path path =
      fs::path(request.folder) / fmt::format("{}-mmproj-f16-v{}.gguf", shape.name, kVersion);
  const bool was_made = make_file(request, plan_tiny_vision(*shape.vision), path);
  return {path.string(), was_made, shape.vision->n_layer, shape.vision->n_layer};
}

}  // namespace plateau::synth
