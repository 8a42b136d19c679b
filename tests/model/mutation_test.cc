// Random damage to small files: every one either loads and computes, or is an Error. A crash is the
// failure. The sanitized build is where this test sees most.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "graph/block_runner.h"
#include "plateau/error.h"
#include "support/synth.h"
#include "support/temp_dir.h"
#include "vision/encoder.h"

namespace plateau {
namespace {

using test::GgufValue;

/// More rounds for a long run: a factor on the number of files.
int rounds(int n) {
  const char* factor = std::getenv("PLATEAU_MUTATION_ROUNDS");
  return factor == nullptr ? n : n * std::max(1, std::atoi(factor));
}

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  template <typename T>
  T pick(const std::vector<T>& values) {
    return values[random_() % values.size()];
  }

  GgufValue value() {
    constexpr auto kMax = std::numeric_limits<uint32_t>::max();
    switch (random_() % 8) {
      case 0:
        return pick<uint32_t>({0, 1, 2, 3, 7, 8, 31, 64, 255, 4096, 1U << 31, kMax});
      case 1:
        return pick<int32_t>({-1, 0, 1, 5, 16, INT32_MIN, INT32_MAX});
      case 2:
        return pick<uint64_t>({0, 4, uint64_t{1} << 40, UINT64_MAX});
      case 3:
        return pick<float>({0, -1, 1, 1e-30F, 1e30F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()});
      case 4:
        return pick<std::string>({"", "none", "yarn", "gpt2", "qwen2", "qwen3", "clip", "internvl",
                                  std::string(100000, 'x'), "\xFF\xFE", "{% for"});
      case 5:
        return random_() % 2 == 0;
      case 6:
        return std::vector<int32_t>(random_() % 5, pick<int32_t>({-1, 0, 1, 2, 4, INT32_MAX}));
      default:
        return std::vector<std::string>(random_() % 3, pick<std::string>({"", "a", "a b"}));
    }
  }

  /// A key of the plan, or one that some reader knows.
  std::string key(const test::GgufPlan& plan, const std::vector<std::string>& others) {
    if (random_() % 4 == 0) return pick(others);
    return pick(plan.keys).first;
  }

  test::GgufMutations mutations(const test::GgufPlan& plan,
                                const std::vector<std::string>& other_keys) {
    test::GgufMutations result;
    switch (random_() % 6) {
      case 0:
        result.omit_tensors.insert(pick(plan.tensors).name);
        break;
      case 1: {
        const test::PlannedTensor& tensor = pick(plan.tensors);
        std::vector<int64_t> ne = tensor.ne;
        ne[random_() % ne.size()] = pick<int64_t>({1, 2, 32, 64, 96, 1024});
        if (ne.front() % ggml_blck_size(tensor.type) == 0) result.reshape_tensors[tensor.name] = ne;
        break;
      }
      case 2: {
        const test::PlannedTensor& tensor = pick(plan.tensors);
        const auto type = pick<ggml_type>(
            {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0});
        if (tensor.ne.front() % ggml_blck_size(type) == 0)
          result.retype_tensors[tensor.name] = type;
        break;
      }
      case 3:
        result.omit_keys.insert(pick(plan.keys).first);
        break;
      default:
        result.set_keys[key(plan, other_keys)] = value();
        break;
    }
    if (random_() % 3 == 0) {
      const std::string name = key(plan, other_keys);
      if (!result.omit_keys.contains(name)) result.set_keys[name] = value();
    }
    return result;
  }

  /// Cuts the file, flips bytes of its header, or leaves it.
  void damage_bytes(const std::string& path) {
    const size_t n_bytes = std::filesystem::file_size(path);
    const size_t header = std::min<size_t>(n_bytes, 24000);
    switch (random_() % 4) {
      case 0:
        test::truncate_file(path, random_() % n_bytes);
        break;
      case 1: {
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        for (size_t i = 1 + random_() % 4; i > 0; --i) {
          file.seekp(static_cast<std::streamoff>(random_() % header));
          file.put(static_cast<char>(random_()));
        }
        break;
      }
      default:
        break;
    }
  }

  uint32_t next() { return static_cast<uint32_t>(random_()); }

 private:
  std::mt19937 random_;
};

struct Tally {
  int loaded = 0;
  int refused = 0;
};

void attempt(const std::function<void()>& load, Tally& tally) {
  try {
    load();
    ++tally.loaded;
  } catch (const Error& error) {
    ++tally.refused;
    // A broken invariant is our bug, whatever the file says.
    EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
  }
}

void run_text(const std::string& path) {
  const model::LanguageModel model = model::LanguageModel::load(path, {});
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  const std::vector<model::Token> tokens =
      model.vocab().tokenize("<|im_start|>user\nWhat cat?", /*parse_special=*/true);
  (void)model.vocab().bos_text();
  (void)model.vocab().eos_text();
  if (tokens.empty()) return;
  (void)model.vocab().piece(tokens.back());
  kv::KvCache cache(model, static_cast<int>(tokens.size()), CacheType::kF16, CacheType::kF16);
  graph::BlockRunner runner(model, backends, cache);
  const std::vector<float> rows = runner.embed(tokens);
  std::vector<kv::Position> positions;
  for (size_t i = 0; i < tokens.size(); ++i) {
    positions.push_back(kv::Position::sequential(static_cast<int32_t>(i)));
  }
  const auto result = runner.run({.embeddings = rows, .positions = positions, .want_logits = true});
  EXPECT_EQ(static_cast<int>(result.logits.size()), model.config().n_vocab);
}

/// Encodes what the file's tower takes: one tile, or a picture with windows of every shape.
size_t run_vision(const std::string& path, const model::Backends& backends) {
  vision::Encoder encoder(path, backends);
  if (encoder.config().is_internvl()) {
    const int side = encoder.config().internvl().tile_size;
    const size_t n_bytes = 3 * static_cast<size_t>(side) * static_cast<size_t>(side);
    const media::Rgb8 tile = {side, side, std::vector<uint8_t>(n_bytes, 100)};
    return encoder.encode({&tile, 1}).size();
  }
  constexpr int kTokens = 5;
  const int side = kTokens * encoder.config().token_size();
  const size_t n_bytes = 3 * static_cast<size_t>(side) * static_cast<size_t>(side);
  const media::Rgb8 picture = {side, side, std::vector<uint8_t>(n_bytes, 100)};
  media::FrameBands bands(picture);
  media::PixelBands* const frame = &bands;
  return encoder
      .encode({.first_row = 0, .n_rows = kTokens, .n_cols = kTokens}, {&frame, 1}, /*group=*/128,
              {})
      .size();
}

TEST(Mutation, DamagedTextModelsLoadOrAreRefused) {
  const std::vector<std::string> other_keys = {"rope.dimension_count",   "rope.scaling.type",
                                               "rope.scaling.factor",    "rope.scale_linear",
                                               "expert_count",           "attention.sliding_window",
                                               "attention.causal",       "attention.head_count_kv",
                                               "pooling_type",           "vocab_size",
                                               "embedding_length_out",   "nextn_predict_layers",
                                               "rope.dimension_sections"};
  const test::TempDir dir;
  const std::string path = dir.file("text.gguf");
  Mutator mutator(/*seed=*/1);
  Tally tally;
  const int n = rounds(600);
  for (int i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    const test::TinyTextModel model = {
        .arch = mutator.pick<std::string>({"qwen3", "qwen2", "qwen2vl", "llama"}),
        .n_layer = 1,
        .n_ff = 64,
        .tied = i % 3 == 0};
    std::vector<std::string> keys = {"tokenizer.ggml.unknown_token_id",
                                     "tokenizer.ggml.eot_token_id", "tokenizer.ggml.scores",
                                     "split.count", "tokenizer.ggml.add_eos_token"};
    for (const std::string& key : other_keys) keys.push_back(model.arch + "." + key);
    const test::GgufPlan plan = plan_tiny_text(model);
    write_gguf(plan, mutator.mutations(plan, keys), path);
    mutator.damage_bytes(path);
    attempt([&] { run_text(path); }, tally);
  }
  EXPECT_GT(tally.loaded, n / 50);  // else the damage is too coarse to reach far
  EXPECT_GT(tally.refused, n / 4);
}

TEST(Mutation, DamagedProjectorsLoadOrAreRefused) {
  const std::vector<std::string> keys = {"clip.use_silu", "clip.vision.attention.head_count_kv",
                                         "clip.has_audio_encoder", "clip.vision.projector_type"};
  const test::TempDir dir;
  const std::string path = dir.file("mmproj.gguf");
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  Mutator mutator(/*seed=*/2);
  Tally tally;
  const int n = rounds(300);
  for (int i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    const test::TinyVision vision = {.tile = 56, .n_layer = 1, .rms_qk_norm = i % 2 == 0};
    const test::GgufPlan plan = plan_tiny_vision(vision);
    write_gguf(plan, mutator.mutations(plan, keys), path);
    mutator.damage_bytes(path);
    attempt([&] { EXPECT_GT(run_vision(path, backends), 0U); }, tally);
  }
  EXPECT_GT(tally.loaded, n / 50);
  EXPECT_GT(tally.refused, n / 4);
}

TEST(Mutation, DamagedNativeSizeProjectorsLoadOrAreRefused) {
  const std::vector<std::string> keys = {"clip.use_gelu",
                                         "clip.vision.attention.head_count_kv",
                                         "clip.vision.window_size",
                                         "clip.has_audio_encoder",
                                         "clip.vision.projector_type",
                                         "clip.vision.image_max_pixels",
                                         "clip.vision.image_min_pixels",
                                         "clip.vision.spatial_merge_size"};
  const test::TempDir dir;
  const std::string path = dir.file("mmproj.gguf");
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  Mutator mutator(/*seed=*/3);
  Tally tally;
  const int n = rounds(300);
  for (int i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    const test::GgufPlan plan = test::plan_tiny_qwen_vision({.n_layer = 2});
    write_gguf(plan, mutator.mutations(plan, keys), path);
    mutator.damage_bytes(path);
    attempt([&] { EXPECT_GT(run_vision(path, backends), 0U); }, tally);
  }
  EXPECT_GT(tally.loaded, n / 50);
  EXPECT_GT(tally.refused, n / 4);
}

/// What libmtmd runs asserts where ours throws; nothing of a file may reach that.
size_t run_library_vision(const std::string& path, const model::Backends& backends,
                          const model::LanguageModel& text_model) {
  vision::Encoder encoder(path, backends, model::WeightUse::kCompute, &text_model);
  // A damaged file may have become one of another family.
  if (!encoder.config().is_mtmd()) return run_vision(path, backends);
  const int side = encoder.config().mtmd().chunk_size + 20;
  const size_t n_bytes = 3 * static_cast<size_t>(side) * static_cast<size_t>(side);
  size_t n_chunks = 0;
  for (const vision::MtmdPiece& piece : encoder.mtmd().lay_out({side, side})) {
    n_chunks += piece.tokens.empty() ? 1 : 0;
  }
  encoder.mtmd().open({side, side, std::vector<uint8_t>(n_bytes, 100)});
  return encoder.mtmd().encode(static_cast<int>(n_chunks) - 1, {}).size();
}

test::GgufPlan library_projector(int i) {
  if (i % 3 == 0) return test::plan_tiny_idefics3({.n_layer = 1, .longest_edge = 112});
  if (i % 6 == 1) {
    return test::plan_tiny_llava({.projector_type = "janus_pro", .n_layer = 1, .is_clip = false});
  }
  return test::plan_tiny_llava({.n_layer = 2,
                                .is_clip = i % 6 == 4,
                                .has_norms = i % 2 == 0,
                                .grid_sizes = {56, 112, 112, 112}});
}

TEST(Mutation, DamagedLibraryProjectorsLoadOrAreRefused) {
  const std::vector<std::string> keys = {"clip.use_gelu",
                                         "clip.use_silu",
                                         "clip.has_audio_encoder",
                                         "clip.has_gen_audio_encoder",
                                         "clip.minicpmv_version",
                                         "clip.vision.attention.head_count_kv",
                                         "clip.vision.attention.head_dim",
                                         "clip.vision.feature_layer",
                                         "clip.vision.image_grid_pinpoints",
                                         "clip.vision.mm_patch_merge_type",
                                         "clip.vision.preproc_image_size",
                                         "clip.vision.projector.scale_factor",
                                         "clip.vision.projector_type",
                                         "general.description"};
  const test::TempDir dir;
  const std::string path = dir.file("mmproj.gguf"), text = dir.file("text.gguf");
  test::write_tiny_text({.arch = "llama", .extra_tokens = test::idefics3_tokens()}, text);
  const model::LanguageModel text_model = model::LanguageModel::load(text, {});
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  Mutator mutator(/*seed=*/4);
  Tally tally;
  const int n = rounds(300);
  for (int i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    const test::GgufPlan plan = library_projector(i);
    write_gguf(plan, mutator.mutations(plan, keys), path);
    mutator.damage_bytes(path);
    attempt([&] { EXPECT_GT(run_library_vision(path, backends, text_model), 0U); }, tally);
  }
  EXPECT_GT(tally.loaded, n / 50);
  EXPECT_GT(tally.refused, n / 4);
}

// Every type that the format knows, on every matrix at once: the checks must admit only what ggml
// computes with.
TEST(Mutation, EveryTensorTypeComputesOrIsRefused) {
  const test::TempDir dir;
  const std::string path = dir.file("model.gguf");
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  Tally text, vision, native_size, library;
  const std::string text_path = dir.file("text.gguf");
  test::write_tiny_text({.n_embd = 256, .n_head = 16}, text_path);
  const model::LanguageModel text_model = model::LanguageModel::load(text_path, {});
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto type = static_cast<ggml_type>(i);
    if (ggml_blck_size(type) == 0) continue;  // removed from the format
    SCOPED_TRACE(ggml_type_name(type));
    test::GgufMutations mutations = {.data = test::GgufMutations::Data::kSparse};
    const test::TinyTextModel wide = {.n_layer = 1, .n_embd = 256, .n_head = 16, .n_ff = 256};
    for (const test::PlannedTensor& tensor : plan_tiny_text(wide).tensors) {
      if (tensor.ne.size() == 2) mutations.retype_tensors[tensor.name] = type;
    }
    write_tiny_text(wide, path, mutations);
    attempt([&] { run_text(path); }, text);

    mutations = {.data = test::GgufMutations::Data::kSparse};
    const test::TinyVision tower = {
        .tile = 56, .n_embd = 256, .n_layer = 1, .n_ff = 256, .projection_dim = 256};
    for (const test::PlannedTensor& tensor : plan_tiny_vision(tower).tensors) {
      if (tensor.ne.size() == 2 && tensor.name != "v.position_embd.weight") {
        mutations.retype_tensors[tensor.name] = type;
      }
    }
    write_tiny_vision(tower, path, mutations);
    attempt([&] { EXPECT_GT(run_vision(path, backends), 0U); }, vision);

    mutations = {.data = test::GgufMutations::Data::kSparse};
    const test::TinyQwenVision native = {
        .n_embd = 256, .n_layer = 2, .n_ff = 512, .projection_dim = 256};
    for (const test::PlannedTensor& tensor : plan_tiny_qwen_vision(native).tensors) {
      if (tensor.ne.size() == 2) mutations.retype_tensors[tensor.name] = type;
    }
    write_tiny_qwen_vision(native, path, mutations);
    attempt([&] { EXPECT_GT(run_vision(path, backends), 0U); }, native_size);

    mutations = {.data = test::GgufMutations::Data::kSparse};
    const test::TinyLlava llava = {.n_embd = 256, .n_layer = 2, .n_ff = 512, .projection_dim = 256};
    for (const test::PlannedTensor& tensor : plan_tiny_llava(llava).tensors) {
      if (tensor.ne.size() == 2 && tensor.name != "v.position_embd.weight") {
        mutations.retype_tensors[tensor.name] = type;
      }
    }
    write_tiny_llava(llava, path, mutations);
    attempt([&] { EXPECT_GT(run_library_vision(path, backends, text_model), 0U); }, library);
  }
  EXPECT_GT(text.loaded, 10);
  EXPECT_GT(text.refused, 4);
  EXPECT_EQ(text.loaded, vision.loaded);
  EXPECT_EQ(text.loaded, native_size.loaded);
  EXPECT_EQ(text.loaded, library.loaded);
}

}  // namespace
}  // namespace plateau
