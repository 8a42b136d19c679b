// Films of different lengths through a Qwen2.5-VL-type pair of the published widths (few layers:
// memory does not depend on depth), each in a process of its own: peak anonymous memory beside the
// plan. Output: one line of JSON per film.
//
//   film_bench --seconds 60,600,3600,36000 -t 2
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "cached_file.h"
#include "in_child.h"
#include "measure_run.h"
#include "support/film_writer.h"
#include "wide_qwen.h"

namespace {

using namespace plateau;

struct BenchOptions {
  std::vector<int64_t> seconds = {60, 600, 3600};
  int n_threads = 2;
  int budget = 128;
  int block = 128;
  int64_t frame_tokens = 16;
};

std::string film_path(int64_t seconds) {
  return cached_file(fmt::format("plateau-film-{}.mkv", seconds), [&](const std::string& path) {
    test::write_film(
        path, {.container = "matroska", .width = 160, .height = 120, .tick_den = 1, .gop = 60},
        seconds,
        [](int64_t i, test::FilmCanvas& canvas) { test::draw_clock(i & 0xfffff, canvas); });
  });
}

void measure(const BenchOptions& o, int64_t seconds) {
  Request request;
  request.messages = {{"user", {VideoPart{film_path(seconds)}, TextPart{"What is seen?"}}}};
  request.max_new_tokens = 4;
  request.kv.budget = o.budget;
  request.kv.block = o.block;
  request.video.max_frame_tokens = o.frame_tokens;
  const MeasuredRun run = measure_run(wide_qwen(o.n_threads), request);
  fmt::print("{{\"seconds\": {}, \"frames\": {}, {}}}\n", seconds,
             run.usage.images[0].video->n_frames, json_fields(run));
}

}  // namespace

int main(int argc, char** argv) {
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);  // as the program does: freed buffers leave the process
  CLI::App app("Memory against the length of a film");
  BenchOptions o;
  app.add_option("--seconds", o.seconds, "Lengths of the films, at one frame a second")
      ->delimiter(',');
  app.add_option("--kv-budget", o.budget);
  app.add_option("--block", o.block);
  app.add_option("--frame-tokens", o.frame_tokens, "Visual tokens per pair of frames at most");
  app.add_option("-t,--threads", o.n_threads);
  CLI11_PARSE(app, argc, argv);
  bool ok = true;
  for (const int64_t seconds : o.seconds) {
    ok = ok && in_child([&] { wide_qwen(1), film_path(seconds); }) &&
         in_child([&] { measure(o, seconds); });
  }
  return ok ? 0 : 1;
}
