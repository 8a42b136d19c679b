// Qwen2.5-VL's vision tower against the pinned llama.cpp's in one process: same file, same threads,
// alternating runs.
//
//   encoder_bench compare --tokens 1024,4096        time of both, their ratio, peak memory of both
//   encoder_bench bound --width 8660 --height 5774 --memory 1GiB    ours alone, within a bound
//
// The file is random, of the published width; layers are few so that runs end. Output: one line of
// JSON per measurement. CPU time is printed beside wall-clock time: on a machine that does other
// work, it is the more telling.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>

#include "base/byte_size.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/stopwatch.h"
#include "cached_file.h"
#include "media/token_grid.h"
#include "support/compare.h"
#include "support/mtmd_oracle.h"
#include "support/synth.h"
#include "vision/encode_plan.h"
#include "vision/encoder.h"

namespace {

using namespace plateau;

constexpr int kTokenSize = 28;

struct BenchOptions {
  std::vector<int> tokens = {1024, 4096};
  int n_layer = 8;
  int full_every = 4;
  int n_threads = 2;
  int repeats = 3;
  int width = 8660;
  int height = 5774;
  std::string memory = "1GiB";
};

std::string vision_path(const BenchOptions& o) {
  return cached_file(fmt::format("plateau-qwen25vl-{}-{}.gguf", o.n_layer, o.full_every),
                     [&](const std::string& path) {
                       test::write_tiny_qwen_vision({.n_embd = 1280,
                                                     .n_layer = o.n_layer,
                                                     .n_head = 16,
                                                     .n_ff = 3420,
                                                     .full_every = o.full_every,
                                                     .projection_dim = 2048},
                                                    path);
                     });
}

/// llama.cpp's library wants a text model of that width.
std::string text_path() {
  return cached_file("plateau-text-2048.gguf", [](const std::string& path) {
    test::write_tiny_text(
        {.n_layer = 1, .n_embd = 2048, .n_head = 16, .n_head_kv = 2, .head_dim = 128}, path);
  });
}

struct Measured {
  double wall_ms = 0;
  double cpu_ms = 0;
  int64_t peak_bytes = 0;  // anonymous memory above what was there before
};

template <typename F>
Measured measure(F&& f) {
  Measured result;
  const int64_t before = anon_bytes();
  AnonWatch anon;
  const std::clock_t cpu = std::clock();
  const Stopwatch watch;
  f();
  result.wall_ms = watch.ms();
  result.cpu_ms = 1000.0 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  result.peak_bytes = anon.peak_bytes() - before;
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<float> encode(vision::Encoder& encoder, const test::RgbPicture& picture, int group) {
  const media::Rgb8 pixels = {picture.width, picture.height, picture.pixels};
  media::FrameBands bands(pixels);
  media::PixelBands* const frame = &bands;
  return encoder.encode(
      {.first_row = 0, .n_rows = picture.height / kTokenSize, .n_cols = picture.width / kTokenSize},
      {&frame, 1}, group, {});
}

void compare(const BenchOptions& o) {
  const std::string path = vision_path(o);
  for (const int n_tokens : o.tokens) {
    const int side = static_cast<int>(std::sqrt(n_tokens)) * kTokenSize;
    const test::RgbPicture picture = test::random_picture(side, side, /*seed=*/1);
    const model::Backends backends(model::Device::cpu(), o.n_threads);
    vision::Encoder encoder(path, backends);
    test::MtmdOracle oracle(
        text_path(), path,
        {.n_threads = o.n_threads, .image_min_tokens = 1, .image_max_tokens = 1 << 16});
    const vision::EncodePlan plan = vision::plan_encode(encoder.config(), side / kTokenSize,
                                                        side / kTokenSize, 1, 0, o.n_threads);
    std::vector<double> wall, cpu, ours_ms, mtmd_ms;
    int64_t ours_peak = 0, mtmd_peak = 0;
    double nmse = 0;
    for (int i = 0; i < o.repeats; ++i) {
      std::vector<float> ours, theirs;
      const Measured a = measure([&] { ours = encode(encoder, picture, plan.group); });
      const Measured b = measure([&] { theirs = oracle.encode(picture)[0]; });
      ours_ms.push_back(a.wall_ms);
      mtmd_ms.push_back(b.wall_ms);
      wall.push_back(b.wall_ms / a.wall_ms);
      cpu.push_back(b.cpu_ms / a.cpu_ms);
      ours_peak = std::max(ours_peak, a.peak_bytes);
      mtmd_peak = std::max(mtmd_peak, b.peak_bytes);
      nmse = test::nmse(ours, theirs);
    }
    fmt::print(
        "{{\"tokens\": {}, \"ours_ms\": [{:.0f}], \"mtmd_ms\": [{:.0f}], \"speedup_wall\": {:.2f}, "
        "\"speedup_cpu\": {:.2f}, \"nmse\": {:.2g}, \"ours_peak_mib\": {:.0f}, "
        "\"ours_held_mib\": {:.0f}, \"ours_planned_mib\": {:.0f}, \"mtmd_peak_mib\": {:.0f}}}\n",
        side / kTokenSize * (side / kTokenSize), fmt::join(ours_ms, ", "), fmt::join(mtmd_ms, ", "),
        median(wall), median(cpu), nmse, static_cast<double>(ours_peak) / (1 << 20),
        static_cast<double>(encoder.peak_bytes()) / (1 << 20),
        static_cast<double>(plan.bytes) / (1 << 20), static_cast<double>(mtmd_peak) / (1 << 20));
    std::fflush(stdout);
  }
}

/// A picture that is never there as a whole: noise, row by row.
class NoiseBands final : public media::PixelBands {
 public:
  NoiseBands(int width, int height) : width_(width), height_(height) {}
  int width() const override { return width_; }
  int height() const override { return height_; }
  std::span<const uint8_t> next(int n_rows) override {
    band_.resize(static_cast<size_t>(n_rows) * static_cast<size_t>(width_) * 3);
    for (uint8_t& value : band_) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      value = static_cast<uint8_t>(state_ >> 56);
    }
    return band_;
  }

 private:
  int width_, height_;
  uint64_t state_ = 1;
  std::vector<uint8_t> band_;
};

void bound(const BenchOptions& o) {
  const model::Backends backends(model::Device::cpu(), o.n_threads);
  vision::Encoder encoder(vision_path(o), backends);
  const media::TokenGrid grid =
      media::plan_token_grid(o.width, o.height, {.token_size = kTokenSize});
  const int64_t memory = parse_byte_size(o.memory, "--memory");
  const vision::EncodePlan plan = vision::plan_encode(encoder.config(), grid.n_rows, grid.n_cols,
                                                      /*n_frames=*/1, memory, o.n_threads);
  NoiseBands bands(static_cast<int>(grid.width()), static_cast<int>(grid.height()));
  media::PixelBands* const frame = &bands;
  int64_t n_values = 0;
  const Measured measured = measure([&] {
    for (int row = 0; row < grid.n_rows; row += plan.rows_per_unit) {
      const std::vector<float> part =
          encoder.encode({.first_row = row,
                          .n_rows = std::min(plan.rows_per_unit, grid.n_rows - row),
                          .n_cols = grid.n_cols},
                         {&frame, 1}, plan.group, {});
      n_values += static_cast<int64_t>(part.size());
    }
  });
  fmt::print(
      "{{\"tokens\": {}, \"patches\": {}, \"bands\": {}, \"group\": {}, \"bound_mib\": {:.0f}, "
      "\"planned_mib\": {:.0f}, \"held_mib\": {:.0f}, \"anon_peak_mib\": {:.0f}, \"wall_s\": "
      "{:.0f}, "
      "\"cpu_s\": {:.0f}, \"values\": {}}}\n",
      grid.n_tokens(), 4 * grid.n_tokens(), plan.n_units, plan.group,
      static_cast<double>(memory) / (1 << 20), static_cast<double>(plan.bytes) / (1 << 20),
      static_cast<double>(encoder.peak_bytes()) / (1 << 20),
      static_cast<double>(measured.peak_bytes) / (1 << 20), measured.wall_ms / 1000,
      measured.cpu_ms / 1000, n_values);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Vision encoder benchmark");
  BenchOptions o;
  CLI::App* compare_command = app.add_subcommand("compare", "Against llama.cpp");
  CLI::App* bound_command = app.add_subcommand("bound", "A large picture within a bound");
  app.require_subcommand(1);
  for (CLI::App* command : {compare_command, bound_command}) {
    command->add_option("--layers", o.n_layer);
    command->add_option("--full-every", o.full_every);
    command->add_option("-t,--threads", o.n_threads);
  }
  compare_command->add_option("--tokens", o.tokens)->delimiter(',');
  compare_command->add_option("--repeats", o.repeats);
  bound_command->add_option("--width", o.width);
  bound_command->add_option("--height", o.height);
  bound_command->add_option("--memory", o.memory);
  CLI11_PARSE(app, argc, argv);
  try {
    compare_command->parsed() ? compare(o) : bound(o);
  } catch (const Error& error) {
    fmt::print(stderr, "encoder_bench: {}\n", error.what());
    return 1;
  }
}
