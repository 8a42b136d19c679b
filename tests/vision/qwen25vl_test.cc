// The tower against llama.cpp's on the same file, against a plain reading of the published model,
// and against its own plan of memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "media/token_grid.h"
#include "plateau/error.h"
#include "reference_qwen25vl.h"
#include "support/compare.h"
#include "support/mtmd_oracle.h"
#include "support/synth.h"
#include "support/temp_dir.h"
#include "vision/encoder.h"

namespace plateau::synth {

static void PrintTo(const TinyQwenVision& vision, std::ostream* out) {
  *out << ggml_type_name(vision.type) << " " << vision.n_layer << "/" << vision.full_every;
}

}  // namespace plateau::synth

namespace plateau::test {
namespace {

constexpr int kToken = 28;
// llama.cpp attends with K and V in f16 everywhere, and has GELU's tanh form where we have the
// published error function.
constexpr double kMtmdNmse = 1e-5;
constexpr double kReferenceNmse = 1e-6;
constexpr double kReferenceNmseF16 = 1e-5;
// Groups differ in how products are cut, which changes the order of sums.
constexpr double kGroupNmse = 1e-10;
constexpr double kClearlyDifferent = 1e-3;

media::Rgb8 to_rgb8(const RgbPicture& picture) {
  return {picture.width, picture.height, picture.pixels};
}

struct Encoding {
  std::vector<float> embeddings;
  int64_t peak_bytes = 0;
};

Encoding encode(const std::string& path, const std::vector<RgbPicture>& frames, int group = 1024,
                int rows_per_unit = 0) {
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  vision::Encoder encoder(path, backends);
  std::vector<media::Rgb8> pixels;
  for (const RgbPicture& frame : frames) pixels.push_back(to_rgb8(frame));
  std::vector<media::FrameBands> bands(pixels.begin(), pixels.end());
  std::vector<media::PixelBands*> sources;
  for (media::FrameBands& band : bands) sources.push_back(&band);
  const int n_rows = frames[0].height / kToken;
  if (rows_per_unit == 0) rows_per_unit = n_rows;
  Encoding result;
  for (int row = 0; row < n_rows; row += rows_per_unit) {
    const vision::PatchArea area = {.first_row = row,
                                    .n_rows = std::min(rows_per_unit, n_rows - row),
                                    .n_cols = frames[0].width / kToken};
    const std::vector<float> part = encoder.encode(area, sources, group, {});
    result.embeddings.insert(result.embeddings.end(), part.begin(), part.end());
  }
  result.peak_bytes = encoder.peak_bytes();
  return result;
}

RgbPicture picture_of(int n_rows, int n_cols, uint64_t seed = 1) {
  return random_picture(n_cols * kToken, n_rows * kToken, seed);
}

class Qwen25Vl : public testing::TestWithParam<TinyQwenVision> {
 protected:
  Qwen25Vl() {
    write_tiny_text({}, text_);
    write_tiny_qwen_vision(GetParam(), path_);
  }
  TempDir dir_;
  std::string text_ = dir_.file("text.gguf"), path_ = dir_.file("mmproj.gguf");
};

// (With full_every 1, whose window mask nothing reads, llama.cpp aborts; 0 says the same.)
// One window, one token, a row, a column, whole windows only, edges of every kind.
TEST_P(Qwen25Vl, IsLlamaCppsTower) {
  MtmdOracle oracle(text_, path_, {.image_min_tokens = 1, .image_max_tokens = 4096});
  for (const auto& [n_rows, n_cols] :
       {std::pair(4, 4), {1, 1}, {1, 9}, {9, 1}, {8, 8}, {7, 5}, {13, 6}, {4, 11}, {19, 23}}) {
    const RgbPicture picture = picture_of(n_rows, n_cols);
    const std::vector<std::vector<float>> want = oracle.encode(picture);
    ASSERT_EQ(want.size(), 1U);
    for (const int group : {128, 1024}) {
      const auto result =
          nmse_at_most(encode(path_, {picture}, group).embeddings, want[0], kMtmdNmse);
      EXPECT_TRUE(result) << n_rows << " x " << n_cols << " tokens, group " << group;
    }
  }
}

TEST_P(Qwen25Vl, IsThePublishedModel) {
  const ReferenceQwen25Vl reference(path_);
  const double bound = GetParam().type == GGML_TYPE_F32 ? kReferenceNmse : kReferenceNmseF16;
  for (const auto& [n_rows, n_cols] : {std::pair(5, 6), {1, 2}}) {
    const RgbPicture picture = picture_of(n_rows, n_cols);
    EXPECT_TRUE(nmse_at_most(encode(path_, {picture}).embeddings,
                             reference.encode(picture.pixels, picture.pixels, n_rows, n_cols),
                             bound))
        << n_rows << " x " << n_cols;
    const RgbPicture next = picture_of(n_rows, n_cols, /*seed=*/2);
    EXPECT_TRUE(nmse_at_most(encode(path_, {picture, next}).embeddings,
                             reference.encode(picture.pixels, next.pixels, n_rows, n_cols), bound))
        << n_rows << " x " << n_cols << ", two frames";
  }
}

TEST_P(Qwen25Vl, TwoFramesOfAFilmAreOneSlice) {
  MtmdOracle oracle(text_, path_, {.image_min_tokens = 1, .image_max_tokens = 4096});
  const std::vector<RgbPicture> frames = {picture_of(7, 5, 1), picture_of(7, 5, 2)};
  const std::vector<std::vector<float>> want = oracle.encode_film(frames);
  ASSERT_EQ(want.size(), 1U);
  const std::vector<float> got = encode(path_, frames).embeddings;
  EXPECT_TRUE(nmse_at_most(got, want[0], kMtmdNmse));
  EXPECT_GT(nmse(got, encode(path_, {frames[0]}).embeddings), kClearlyDifferent);
  EXPECT_TRUE(bit_equal(encode(path_, {frames[0], frames[0]}).embeddings,
                        encode(path_, {frames[0]}).embeddings));
}

TEST_P(Qwen25Vl, TheGroupChangesNothing) {
  const RgbPicture picture = picture_of(18, 21);
  const std::vector<float> want = encode(path_, {picture}, 1 << 20).embeddings;
  for (const int group : {128, 200, 512}) {
    EXPECT_TRUE(nmse_at_most(encode(path_, {picture}, group).embeddings, want, kGroupNmse))
        << group;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Qwen25Vl,
    testing::Values(TinyQwenVision{.type = GGML_TYPE_F32}, TinyQwenVision{.type = GGML_TYPE_F16},
                    TinyQwenVision{.n_layer = 3, .full_every = 3, .type = GGML_TYPE_F16},
                    TinyQwenVision{.n_layer = 3, .full_every = 2, .type = GGML_TYPE_F32},
                    TinyQwenVision{.n_embd = 96,
                                   .n_layer = 2,
                                   .n_head = 3,
                                   .n_ff = 64,
                                   .full_every = 0,
                                   .type = GGML_TYPE_F32},
                    TinyQwenVision{
                        .n_embd = 160, .n_layer = 2, .n_head = 2, .type = GGML_TYPE_F16}),
    [](const auto& param) {
      return ggml_type_name(param.param.type) + std::string("_") +
             std::to_string(param.param.n_embd) + "_" + std::to_string(param.param.n_layer) + "_" +
             std::to_string(param.param.full_every);
    });

// Where both shrink, enlarge or keep: llama.cpp has the family's rule, too, but always a cap.
TEST(SizeRule, IsLlamaCpps) {
  const TempDir dir;
  write_tiny_text({.arch = "qwen2vl"}, dir.file("text.gguf"));  // else no grid is told
  write_tiny_qwen_vision({}, dir.file("mmproj.gguf"));
  constexpr int kMinTokens = 4, kMaxTokens = 1280;
  const MtmdOracle oracle(dir.file("text.gguf"), dir.file("mmproj.gguf"),
                          {.image_min_tokens = kMinTokens, .image_max_tokens = kMaxTokens});
  const std::pair<int, int> sizes[] = {
      {28, 28},   {1, 1},       {27, 257},    {257, 27},    {30, 40},    {41, 43},     {42, 70},
      {100, 100}, {224, 224},   {300, 200},   {640, 480},   {1280, 720}, {1000, 1000}, {1001, 999},
      {999, 10},  {1920, 1080}, {1080, 1920}, {1500, 1500}, {2000, 300}, {56, 2000}};
  for (const auto& [width, height] : sizes) {
    const media::TokenGrid grid =
        media::plan_token_grid(width, height,
                               {.token_size = kToken,
                                .min_pixels = int64_t{kMinTokens} * kToken * kToken,
                                .max_tokens = kMaxTokens});
    EXPECT_EQ(std::pair(grid.n_rows, grid.n_cols), oracle.token_grid(width, height))
        << width << " x " << height;
  }
}

class Qwen25VlBands : public testing::Test {
 protected:
  void write(const TinyQwenVision& vision) { write_tiny_qwen_vision(vision, path_); }
  TempDir dir_;
  std::string path_ = dir_.file("mmproj.gguf");
};

// Where no layer attends to the whole picture, bands are the picture: true positions, same order.
TEST_F(Qwen25VlBands, AreExactWithoutFullAttention) {
  write({.n_layer = 3, .full_every = 8, .type = GGML_TYPE_F32});
  const RgbPicture picture = picture_of(14, 6);
  const std::vector<float> whole = encode(path_, {picture}).embeddings;
  for (const int rows : {4, 8, 12}) {
    EXPECT_TRUE(nmse_at_most(encode(path_, {picture}, 1024, rows).embeddings, whole, kGroupNmse))
        << rows;
  }
}

// One graph for all layers, the deepest that a file may ask for.
TEST_F(Qwen25VlBands, ATowerOfAnyDepthIsOneGraph) {
  write({.n_embd = 32,
         .n_layer = 256,
         .n_head = 2,
         .n_ff = 16,
         .full_every = 0,
         .type = GGML_TYPE_F32});
  const std::vector<float> full = encode(path_, {picture_of(3, 3)}).embeddings;
  write({.n_embd = 32,
         .n_layer = 255,
         .n_head = 2,
         .n_ff = 16,
         .full_every = 256,
         .type = GGML_TYPE_F32});
  const std::vector<float> windows = encode(path_, {picture_of(3, 3)}).embeddings;
  EXPECT_EQ(full.size(), 9U * 64U);
  EXPECT_EQ(windows.size(), full.size());
}

// With full attention, a band is what it would be as the picture's only part at its true rows: the
// first band equals the upper part alone, and all stay near the whole.
TEST_F(Qwen25VlBands, SeeOnlyThemselvesInFullAttention) {
  write({.type = GGML_TYPE_F32});
  const RgbPicture picture = picture_of(12, 6);
  RgbPicture top = picture;
  top.height = 8 * kToken;
  top.pixels.resize(3 * static_cast<size_t>(top.width) * static_cast<size_t>(top.height));
  const std::vector<float> whole = encode(path_, {picture}).embeddings;
  std::vector<float> bands = encode(path_, {picture}, 1024, 8).embeddings;
  ASSERT_EQ(bands.size(), whole.size());
  EXPECT_GT(nmse(bands, whole), 0);
  EXPECT_LT(nmse(bands, whole), 0.5);
  bands.resize(encode(path_, {top}).embeddings.size());
  EXPECT_TRUE(bit_equal(bands, encode(path_, {top}).embeddings));
}

TEST_F(Qwen25VlBands, ProgressGrowsToOneAndCancellingStops) {
  write({.type = GGML_TYPE_F16});
  model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  vision::Encoder encoder(path_, backends);
  const media::Rgb8 picture = to_rgb8(picture_of(9, 9));
  const auto run = [&](const std::function<void(double)>& on_progress) {
    media::FrameBands bands(picture);
    media::PixelBands* const source = &bands;
    return encoder.encode({.first_row = 0, .n_rows = 9, .n_cols = 9}, {&source, 1}, /*group=*/128,
                          on_progress);
  };
  std::vector<double> shares;
  const std::vector<float> want = run([&](double share) { shares.push_back(share); });
  ASSERT_GT(shares.size(), 8U);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_DOUBLE_EQ(shares.back(), 1.0);

  backends.set_cancel_poll([&] { return shares.empty(); });
  shares.clear();
  try {
    run({});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  backends.set_cancel_poll({});
  EXPECT_TRUE(bit_equal(run({}), want));  // an encoder is usable afterwards
}

TEST_F(Qwen25VlBands, DamageInTheMiddleOfAPictureIsTheCallersError) {
  write({.type = GGML_TYPE_F16});
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  vision::Encoder encoder(path_, backends);
  class Broken final : public media::PixelBands {
   public:
    int width() const override { return 8 * kToken; }
    int height() const override { return 12 * kToken; }
    std::span<const uint8_t> next(int n_rows) override {
      if (++n_calls_ == 3) throw Error(ErrorCode::kCorrupt, "[image] ends early");
      pixels_.assign(3 * static_cast<size_t>(width()) * static_cast<size_t>(n_rows), 100);
      return pixels_;
    }

   private:
    int n_calls_ = 0;
    std::vector<uint8_t> pixels_;
  } broken;
  media::PixelBands* const source = &broken;
  EXPECT_THROW(encoder.encode({.first_row = 0, .n_rows = 12, .n_cols = 8}, {&source, 1}, 128, {}),
               Error);
}

// The plan is a promise: never below what is held, and not far above it.
class PlannedBytes : public testing::Test {
 protected:
  void check(const TinyQwenVision& vision, int n_rows, int n_cols, int group, int n_frames) {
    SCOPED_TRACE(testing::PrintToString(std::vector{n_rows, n_cols, group, n_frames}));
    const model::VisionConfig config = model::read_vision_config(model::GgufFile::open(path_));
    const std::vector<RgbPicture> frames(static_cast<size_t>(n_frames), picture_of(n_rows, n_cols));
    const int64_t planned = vision::encoder_scratch_bytes(
        config, n_rows, n_cols, {.group = group, .n_frames = n_frames, .n_threads = 1});
    const int64_t held = encode(path_, frames, group).peak_bytes;
    EXPECT_LE(held, planned);
    EXPECT_GE(static_cast<double>(held) * 1.15, static_cast<double>(planned))
        << vision.n_embd << ": " << held << " held, " << planned << " planned";
  }
  TempDir dir_;
  std::string path_ = dir_.file("mmproj.gguf");
};

TEST_F(PlannedBytes, CoverWhatIsHeld) {
  // Of the published proportions, at a quarter of the width.
  const TinyQwenVision vision = {.n_embd = 320,
                                 .n_layer = 2,
                                 .n_head = 4,
                                 .n_ff = 856,
                                 .projection_dim = 896,
                                 .type = GGML_TYPE_F16};
  write_tiny_qwen_vision(vision, path_);
  for (const auto& [n_rows, n_cols] : {std::pair(16, 16), {33, 21}, {5, 60}}) {
    for (const int group : {128, 1024}) check(vision, n_rows, n_cols, group, /*n_frames=*/1);
  }
  check(vision, 16, 16, 1024, /*n_frames=*/2);
}

// Twelve KiB for each patch of the published width, at any size.
TEST_F(PlannedBytes, GrowByTwelveKibibytesAPatchAtMost) {
  const TinyQwenVision vision = {.n_embd = 1280,
                                 .n_layer = 2,
                                 .n_head = 16,
                                 .n_ff = 320,
                                 .projection_dim = 3584,
                                 .type = GGML_TYPE_F16};
  write_tiny_qwen_vision(vision, path_, {.data = GgufMutations::Data::kSparse});
  const int64_t small = encode(path_, {picture_of(16, 16)}, 256).peak_bytes;
  const int64_t large = encode(path_, {picture_of(24, 32)}, 256).peak_bytes;
  const int64_t n_more = 4 * (24 * 32 - 16 * 16);
  EXPECT_LE(large - small, n_more * 12 * 1024);
  EXPECT_GT(large - small, n_more * 8 * 1024);
}

}  // namespace
}  // namespace plateau::test
