// Pictures of different sizes through a Qwen2.5-VL-type pair of the published widths, from the file
// to the answer, each in a process of its own: peak anonymous memory beside the plan. Output: one
// line of JSON per picture, with --against-mtmd a second one of llama.cpp's peak.
//
//   picture_bench --pictures 1024x1024,2048x2048,8165x6124 --spare 1GiB -t 2
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/byte_size.h"
#include "cached_file.h"
#include "in_child.h"
#include "measure_mtmd.h"
#include "measure_run.h"
#include "media/fixtures.h"
#include "plateau/error.h"
#include "wide_qwen.h"

namespace {

using namespace plateau;

struct BenchOptions {
  std::vector<std::string> pictures = {"224x224", "1024x1024", "4096x4096"};
  std::string spare;
  int n_threads = 2;
  int budget = 1024;
  int block = 512;
  int64_t max_tokens = 0;
  bool against_mtmd = false;
};

const std::string kQuestion = "What is seen?";

/// Noise, the worst that a JPEG can hold.
std::string picture_path(const std::string& size) {
  return cached_file(fmt::format("plateau-noise-{}.jpg", size), [&](const std::string& path) {
    const size_t x = size.find('x');
    if (x == std::string::npos) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[--pictures] expected sizes such as 4096x2160, got {}", size));
    }
    media::testing::write_jpeg(
        media::testing::noise(std::stoi(size.substr(0, x)), std::stoi(size.substr(x + 1))), path);
  });
}

void measure(const BenchOptions& o, const std::string& size) {
  Request request;
  request.messages = {{"user", {ImagePart{picture_path(size)}, TextPart{kQuestion}}}};
  request.max_new_tokens = 4;
  request.kv.budget = o.budget;
  request.kv.block = o.block;
  request.image.max_tokens = o.max_tokens;
  const int64_t spare = o.spare.empty() ? 0 : parse_byte_size(o.spare, "--spare");
  const MeasuredRun run = measure_run(wide_qwen(o.n_threads), request, spare);
  fmt::print(
      "{{\"picture\": \"{}\", \"used\": [{}, {}], \"bands\": {}, {}, \"changed\": \"{}\"}}\n", size,
      run.usage.images[0].used_width, run.usage.images[0].used_height, run.usage.images[0].n_bands,
      json_fields(run), fmt::join(run.concessions, "; "));
}

void measure_llama(const BenchOptions& o, const std::string& size) {
  const MtmdRun run =
      measure_mtmd(wide_qwen(o.n_threads), picture_path(size), kQuestion, o.max_tokens);
  fmt::print(
      "{{\"picture\": \"{}\", \"engine\": \"llama.cpp\", \"prompt_tokens\": {}, "
      "\"peak_anon_bytes\": {}}}\n",
      size, run.prompt_tokens, run.peak_anon_bytes);
}

}  // namespace

int main(int argc, char** argv) {
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);  // as the program does: freed buffers leave the process
  CLI::App app("Memory against the size of a picture");
  BenchOptions o;
  app.add_option("--pictures", o.pictures, "Sizes of the pictures, as WxH")->delimiter(',');
  app.add_option("--spare", o.spare, "Memory allowed beyond the weights, such as 1GiB");
  app.add_option("--kv-budget", o.budget);
  app.add_option("--block", o.block);
  app.add_option("--image-max-tokens", o.max_tokens, "Shrink larger pictures; 0: as the file says");
  app.add_flag("--against-mtmd", o.against_mtmd, "The same through llama.cpp; not all survive");
  app.add_option("-t,--threads", o.n_threads);
  CLI11_PARSE(app, argc, argv);
  bool ok = true;
  for (const std::string& size : o.pictures) {
    ok = ok && in_child([&] { wide_qwen(1), picture_path(size); }) &&
         in_child([&] { measure(o, size); });
    // What ends llama.cpp is no fault of this bench.
    if (ok && o.against_mtmd && !in_child([&] { measure_llama(o, size); })) {
      fmt::print("{{\"picture\": \"{}\", \"engine\": \"llama.cpp\", \"failed\": true}}\n", size);
    }
  }
  return ok ? 0 : 1;
}
