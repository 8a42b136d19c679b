// Films of different lengths through a Qwen2.5-VL-type pair of the published widths (few layers:
// memory does not depend on depth), each in a process of its own: peak anonymous memory beside the
// plan. Output: one line of JSON per film.
//
//   film_bench --seconds 60,600,3600,36000 -t 2
#include <fmt/format.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "base/memory.h"
#include "base/stopwatch.h"
#include "cached_file.h"
#include "plateau/engine.h"
#include "plateau/error.h"
#include "plateau/plan.h"
#include "support/film_writer.h"
#include "support/synth.h"

namespace {

using namespace plateau;

struct BenchOptions {
  std::vector<int64_t> seconds = {60, 600, 3600};
  int n_threads = 2;
  int budget = 128;
  int block = 128;
  int64_t frame_tokens = 16;
};

/// So that one film's memory is not another's. Returns whether the work went well.
bool in_child(const std::function<void()>& work) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      fmt::print(stderr, "film_bench: {}\n", error.what());
      std::_Exit(1);
    }
    std::fflush(stdout);
    std::_Exit(0);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

std::string text_path() {
  return cached_file("plateau-film-text.gguf", [](const std::string& path) {
    test::write_tiny_text({.arch = "qwen2vl",
                           .n_layer = 1,
                           .n_embd = 2048,
                           .n_head = 16,
                           .n_head_kv = 2,
                           .head_dim = 128,
                           .n_ff = 11008},
                          path);
  });
}

std::string mmproj_path() {
  return cached_file("plateau-film-mmproj.gguf", [](const std::string& path) {
    test::write_tiny_qwen_vision({.n_embd = 1280,
                                  .n_layer = 2,
                                  .n_head = 16,
                                  .n_ff = 3420,
                                  .full_every = 2,
                                  .projection_dim = 2048},
                                 path);
  });
}

std::string film_path(int64_t seconds) {
  return cached_file(fmt::format("plateau-film-{}.mkv", seconds), [&](const std::string& path) {
    test::write_film(
        path, {.container = "matroska", .width = 160, .height = 120, .tick_den = 1, .gop = 60},
        seconds,
        [](int64_t i, test::FilmCanvas& canvas) { test::draw_clock(i & 0xfffff, canvas); });
  });
}

void measure(const BenchOptions& o, int64_t seconds) {
  EngineOptions options;
  options.model_path = text_path();
  options.mmproj_path = mmproj_path();
  options.n_threads = o.n_threads;
  options.device = "CPU";
  Request request;
  request.messages = {{"user", {VideoPart{film_path(seconds)}, TextPart{"What is seen?"}}}};
  request.max_new_tokens = 4;
  request.kv.budget = o.budget;
  request.kv.block = o.block;
  request.video.max_frame_tokens = o.frame_tokens;

  const Plan planned = plan(options, request);
  int64_t planned_anon = 0;
  for (const MemoryPart& part : planned.memory) planned_anon += part.mapped ? 0 : part.bytes;
  AnonWatch anon;
  const Stopwatch watch;
  const Usage usage = Engine::open(options).run(request).usage;
  fmt::print(
      "{{\"seconds\": {}, \"frames\": {}, \"prompt_tokens\": {}, \"kv_bytes\": {}, "
      "\"peak_anon_bytes\": {}, \"planned_anon_bytes\": {}, \"planned_by_measured\": {:.3f}, "
      "\"wall_s\": {:.0f}}}\n",
      seconds, usage.images[0].video->n_frames, usage.prompt_tokens, usage.kv_bytes,
      anon.peak_bytes(), planned_anon,
      static_cast<double>(planned_anon) / static_cast<double>(anon.peak_bytes()),
      watch.ms() / 1000);
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
    ok = ok && in_child([&] { text_path(), mmproj_path(), film_path(seconds); }) &&
         in_child([&] { measure(o, seconds); });
  }
  return ok ? 0 : 1;
}
