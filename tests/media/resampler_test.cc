#include "media/resampler.h"

#include <gtest/gtest.h>

#include "media/fixtures.h"
#include "media/reference_resize.h"

namespace plateau::media {
namespace {

using testing::gradient;
using testing::noise;

// Fixed-point weights of 22 bits and the reference's doubles can only round apart at a tie, once in
// each of the two passes.
constexpr int kMaxDifference = 1;
constexpr double kMeanDifference = 0.01;

Rgb8 resize(const Rgb8& in, int width, int height) {
  Resampler resampler(in.width, in.height, width, height);
  Rgb8 out{width, height, {}};
  const auto row_bytes = static_cast<size_t>(width) * 3;
  out.pixels.resize(row_bytes * static_cast<size_t>(height));
  size_t to = 0;
  for (int y = 0; y < in.height; ++y) {
    resampler.push(in.pixels.data() + static_cast<size_t>(y) * static_cast<size_t>(in.width) * 3);
    for (; resampler.ready(); to += row_bytes) resampler.pop(out.pixels.data() + to);
  }
  EXPECT_TRUE(resampler.done());
  return out;
}

struct Case {
  int in_width, in_height, width, height;
  uint64_t pillow_hash;  // FNV-1a 64 of the bytes
};

// noise(in_width, in_height) resized by Pillow 9.4.0 with Image.BICUBIC.
constexpr Case kCases[] = {
    {37, 23, 64, 64, 0xa25ed06360bb1782u},     {64, 64, 37, 23, 0x1dfd67f83a7bec60u},
    {200, 3, 16, 48, 0x85824f6f5c3670d7u},     {1, 1, 8, 8, 0x5709e8ae4e763565u},
    {5, 100, 5, 33, 0x505e723985bc410bu},      {100, 5, 33, 5, 0xbefae26137d91726u},
    {301, 211, 448, 224, 0x9967714b6d82e0c6u}, {90, 70, 91, 69, 0xc1dc3e1896b6b40au},
};

class ResamplerCases : public ::testing::TestWithParam<Case> {};

TEST_P(ResamplerCases, EqualsPillowBitForBit) {
  const Case& c = GetParam();
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t byte : resize(noise(c.in_width, c.in_height), c.width, c.height).pixels) {
    hash = (hash ^ byte) * 0x100000001b3u;
  }
  EXPECT_EQ(hash, c.pillow_hash);
}

TEST_P(ResamplerCases, AgreesWithTheDefinition) {
  const Case& c = GetParam();
  for (const Rgb8& in : {noise(c.in_width, c.in_height), gradient(c.in_width, c.in_height)}) {
    const Rgb8 out = resize(in, c.width, c.height);
    const Rgb8 expected = testing::reference_resize(in, c.width, c.height);
    EXPECT_LE(testing::max_difference(out, expected), kMaxDifference);
    EXPECT_LE(testing::mean_difference(out, expected), kMeanDifference);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ResamplerCases, ::testing::ValuesIn(kCases));

TEST(Resampler, SameSizeIsTheSamePicture) {
  const Rgb8 in = noise(33, 17);
  EXPECT_EQ(resize(in, 33, 17).pixels, in.pixels);
}

}  // namespace
}  // namespace plateau::media
