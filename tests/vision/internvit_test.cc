// The tower against a plain reading of the published model, and against llama.cpp's.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "plateau/error.h"
#include "reference_internvit.h"
#include "support/compare.h"
#include "support/mtmd_oracle.h"
#include "support/synth.h"
#include "support/temp_dir.h"
#include "vision/encoder.h"

namespace plateau::synth {

static void PrintTo(const TinyVision& vision, std::ostream* out) {
  *out << (vision.rms_qk_norm ? "rms " : "layer norm ") << ggml_type_name(vision.type);
}

}  // namespace plateau::synth

namespace plateau::test {

namespace {

// Between our tower and the reference lie: K and V rounded to f16, ggml's GELU (the tanh form, from
// a table of f16) for the published one (the error function), and f32 sums.
constexpr double kReferenceNmse = 1e-6;
// Weights in f16 or q8_0 also round the other operand of each product.
constexpr double kReferenceNmseF16 = 1e-5;
constexpr double kReferenceNmseQ8 = 1e-3;
// Between our tower and llama.cpp's stands only the place of the class token in the sequence, which
// changes the order of attention's sums.
constexpr double kMtmdNmse = 1e-6;
// Files in the wrong order differ by far more than any rounding.
constexpr double kClearlyDifferent = 1e-3;

media::Rgb8 to_tile(const RgbPicture& picture) {
  return {picture.width, picture.height, picture.pixels};
}

std::vector<float> encode(const std::string& path, const std::vector<RgbPicture>& pictures) {
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  vision::Encoder encoder(path, backends);
  std::vector<media::Rgb8> tiles;
  for (const RgbPicture& picture : pictures) tiles.push_back(to_tile(picture));
  return encoder.encode(tiles);
}

TEST(NormalizePixels, IsThePlainFormulaInPlanes) {
  media::Rgb8 tile = {.width = 3, .height = 2, .pixels = {}};
  for (int i = 0; i < 3 * 3 * 2; ++i) tile.pixels.push_back(static_cast<uint8_t>(i * 15));
  model::VisionConfig config;
  config.image_mean = {0.485F, 0.456F, 0.406F};
  config.image_std = {0.229F, 0.224F, 0.225F};
  std::vector<float> out(3 * 3 * 2);
  vision::normalize_pixels(tile, config, out);
  for (size_t channel = 0; channel < 3; ++channel) {
    for (size_t i = 0; i < 6; ++i) {
      const double want =
          (tile.pixels[3 * i + channel] / 255.0 - double{config.image_mean[channel]}) /
          double{config.image_std[channel]};
      EXPECT_NEAR(out[channel * 6 + i], want, 1e-6);
    }
  }
  out.pop_back();
  EXPECT_THROW(vision::normalize_pixels(tile, config, out), Error);
}

class InternVit : public testing::TestWithParam<TinyVision> {
 protected:
  InternVit() { write_tiny_vision(GetParam(), path_); }
  RgbPicture picture(uint64_t seed) const {
    return random_picture(GetParam().tile, GetParam().tile, seed);
  }
  TempDir dir_;
  std::string path_ = dir_.file("mmproj.gguf");
};

TEST_P(InternVit, IsThePublishedModel) {
  const ReferenceInternVit reference(path_);
  const double bound = GetParam().type == GGML_TYPE_F32   ? kReferenceNmse
                       : GetParam().type == GGML_TYPE_F16 ? kReferenceNmseF16
                                                          : kReferenceNmseQ8;
  for (const uint64_t seed : {1U, 2U}) {
    const std::vector<float> want = reference.encode(picture(seed).pixels);
    EXPECT_EQ(want.size(),
              static_cast<size_t>(tokens_per_tile(GetParam()) * GetParam().projection_dim));
    const auto result = nmse_at_most(encode(path_, {picture(seed)}), want, bound);
    EXPECT_TRUE(result);
    RecordProperty("nmse_" + std::to_string(seed), result.message());
  }
}

TEST_P(InternVit, TilesOfABatchAreEncodedAsIfAlone) {
  const std::vector<RgbPicture> pictures = {picture(1), picture(2), picture(3)};
  std::vector<float> one_by_one;
  for (const RgbPicture& p : pictures) {
    const std::vector<float> tile = encode(path_, {p});
    one_by_one.insert(one_by_one.end(), tile.begin(), tile.end());
  }
  EXPECT_TRUE(bit_equal(encode(path_, pictures), one_by_one));
}

TEST_P(InternVit, AnEncoderForgetsTheTileBefore) {
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  vision::Encoder encoder(path_, backends);
  const media::Rgb8 first = to_tile(picture(1)), second = to_tile(picture(2));
  const std::vector<float> before = encoder.encode({&first, 1});
  EXPECT_GT(nmse(encoder.encode({&second, 1}), before), kClearlyDifferent);
  EXPECT_TRUE(bit_equal(encoder.encode({&first, 1}), before));
  EXPECT_GT(encoder.peak_bytes(), 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, InternVit,
                         testing::Values(TinyVision{.type = GGML_TYPE_F32},
                                         TinyVision{.rms_qk_norm = true, .type = GGML_TYPE_F32},
                                         TinyVision{.type = GGML_TYPE_F16},
                                         TinyVision{.type = GGML_TYPE_Q8_0},
                                         TinyVision{.tile = 84,  // an odd number of tokens per side
                                                    .n_embd = 96,
                                                    .n_layer = 3,
                                                    .n_head = 3,
                                                    .scale_factor = 2,
                                                    .projection_dim = 32,
                                                    .type = GGML_TYPE_F32}),
                         [](const auto& param) {
                           return (param.param.rms_qk_norm ? std::string("Rms")
                                                           : std::string("LayerNorm")) +
                                  ggml_type_name(param.param.type) + "_" +
                                  std::to_string(param.param.tile);
                         });

// llama.cpp's graph puts the class token last and gives it the last row of the position table,
// whereas published files hold its row first. Both readers agree on their own order of one table,
// and only on that.
TEST(ClassToken, StandsFirst) {
  for (const bool f16 : {false, true}) {
    TinyVision vision = {.type = f16 ? GGML_TYPE_F16 : GGML_TYPE_F32};
    const TempDir dir;
    const std::string text = dir.file("text.gguf");
    const std::string published = dir.file("published.gguf"), permuted = dir.file("permuted.gguf");
    write_tiny_text({}, text);
    vision.class_first = true;
    write_tiny_vision(vision, published);
    vision.class_first = false;
    write_tiny_vision(vision, permuted);
    const RgbPicture picture = random_picture(vision.tile, vision.tile, /*seed=*/1);

    const std::vector<float> ours = encode(published, {picture});
    const auto mtmd = [&](const std::string& path) {
      return MtmdOracle(text, path).encode_tile(picture.pixels, vision.tile);
    };
    const auto result = nmse_at_most(ours, mtmd(permuted), kMtmdNmse);
    EXPECT_TRUE(result) << ggml_type_name(vision.type);
    RecordProperty(std::string("nmse_") + ggml_type_name(vision.type), result.message());
    EXPECT_GT(nmse(ours, mtmd(published)), kClearlyDifferent);
    EXPECT_GT(nmse(encode(permuted, {picture}), ours), kClearlyDifferent);
    const std::vector<float> reference = ReferenceInternVit(published).encode(picture.pixels);
    EXPECT_GT(nmse(mtmd(published), reference), kClearlyDifferent);
  }
}

TEST(Pico, TheBundledTowerIsThePublishedModel) {
  const std::string path = PLATEAU_SOURCE_DIR "/models/pico/pico-internvl-mmproj.gguf";
  const ReferenceInternVit reference(path);
  const RgbPicture picture = random_picture(reference.tile(), reference.tile(), /*seed=*/1);
  const auto result =
      nmse_at_most(encode(path, {picture}), reference.encode(picture.pixels), kReferenceNmseF16);
  EXPECT_TRUE(result);
  RecordProperty("nmse", result.message());
}

}  // namespace
}  // namespace plateau::test
