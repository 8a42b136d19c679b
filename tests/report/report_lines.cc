#include "report/report_lines.h"

#include <fstream>

namespace plateau::report::testing {
namespace {

json spread(double median) {
  return {{"median", median}, {"min", median * 0.9}, {"max", median * 1.1}};
}

}  // namespace

json fingerprint_line() {
  return {{"type", "fingerprint"},
          {"run", "r1"},
          {"date", "2026-01-02T03:04:05Z"},
          {"command", "plateau bench --shape 0.5b"},
          {"cpu", "Test CPU"},
          {"cores", 2},
          {"ram_bytes", int64_t{8} << 30},
          {"kernel", "Linux 6 x86_64"},
          {"compiler", "GNU 12"},
          {"build_type", "Release"},
          {"version", "0.1.0"},
          {"commit", "abcdef"},
          {"llama_cpp", "v1"},
          {"model",
           {{"file", "m.gguf"},
            {"bytes", 1000},
            {"metadata_hash", "fnv1a:0123456789abcdef"},
            {"arch", "qwen2"},
            {"n_layer", 4},
            {"n_layer_published", 24},
            {"n_embd", 896},
            {"weight_type", "q8_0"}}}};
}

json bench_line(int64_t visual_tokens, const json& budget, const json& changes) {
  json line = {{"type", "bench"},
               {"run", "r1"},
               {"input", "tokens"},
               {"n_input", visual_tokens},
               {"kv_budget", budget},
               {"policy", budget == "full" ? "full" : "snapkv"},
               {"block", 0},
               {"bulk", true},
               {"strict", false},
               {"cache_type_k", "f16"},
               {"cache_type_v", "f16"},
               {"threads", 2},
               {"isolated", true},
               {"visual_tokens", visual_tokens},
               {"ttft_ms", spread(1000)},
               {"encode_ms", spread(0)},
               {"prefill_ms", spread(990)},
               {"score_ms", spread(1)},
               {"select_ms", spread(2)},
               {"compact_ms", spread(3)},
               {"decode_tok_s", nullptr},
               {"kv_bytes", 12345},
               {"kv_bytes_planned", 12345},
               {"compute_bytes", 1000},
               {"peak_anon_bytes", int64_t{50} << 20}};
  line.update(changes);
  return line;
}

json eval_header() {
  return {{"type", "header"},     {"schema", "plateau-eval-1"}, {"identity", json::object()},
          {"model", "text.gguf"}, {"mmproj", "v.gguf"},         {"set", "needles"},
          {"questions", 3}};
}

json answer_line(const std::string& id, const std::string& policy, const json& budget, bool right,
                 const json& changes) {
  json line = {{"type", "result"},
               {"id", id},
               {"setting", budget == "full" ? "full" : policy + ":" + budget.dump()},
               {"policy", budget == "full" ? "full" : policy},
               {"budget", budget},
               {"resize", nullptr},
               {"block", "default"},
               {"bulk", true},
               {"strict", false},
               {"kind", "single"},
               {"score", right ? 1.0 : 0.0},
               {"right", right},
               {"needle", {{"tokens", 4}, {"any_share", 0.5}, {"token_share", 0.25}}},
               {"visual_tokens", 2588},
               {"kept_tokens", 256},
               {"kv_bytes", 4096},
               {"peak_anon_bytes", 1000000},
               {"prefill_ms", 700.0}};
  line.update(changes);
  return line;
}

std::string write_lines(const test::TempDir& dir, const std::string& name,
                        const std::vector<json>& lines) {
  std::ofstream file(dir.file(name));
  for (const json& line : lines) file << line.dump() << "\n";
  return dir.file(name);
}

}  // namespace plateau::report::testing
