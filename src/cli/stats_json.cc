#include "cli/stats_json.h"

#include <nlohmann/json.hpp>

namespace plateau::cli {

std::string stats_json(const Answer& answer, const ProcessStats& process) {
  using nlohmann::ordered_json;
  const Usage& usage = answer.usage;
  ordered_json images = ordered_json::array();
  for (const ImageReport& image : usage.images) {
    images.push_back({{"path", image.path},
                      {"format", image.format},
                      {"original_width", image.width},
                      {"original_height", image.height},
                      {"used_width", image.used_width},
                      {"used_height", image.used_height},
                      {"tile_cols", image.n_cols},
                      {"tile_rows", image.n_rows},
                      {"tiles", image.n_tiles},
                      {"tokens_made", image.tokens_made},
                      {"tokens_kept", image.tokens_kept}});
  }
  const ordered_json stats = {
      {"answer", answer.text},
      {"stop_reason", answer.stop_reason == StopReason::kEndOfAnswer ? "end" : "length"},
      {"prompt_tokens", usage.prompt_tokens},
      {"text_tokens", usage.text_tokens},
      {"visual_tokens", usage.visual_tokens},
      {"blocks", usage.blocks},
      {"kv_budget", usage.kv_budget == 0 ? ordered_json("full") : ordered_json(usage.kv_budget)},
      {"kv_arena_tokens", usage.kv_arena_tokens},
      {"kv_kept_max", usage.kv_kept_max},
      {"kv_bytes", usage.kv_bytes},
      {"evicted_tokens", usage.evicted_tokens},
      {"encode_ms", usage.encode_ms},
      {"prefill_ms", usage.prefill_ms},
      {"score_ms", usage.score_ms},
      {"select_ms", usage.select_ms},
      {"compact_ms", usage.compact_ms},
      {"ttft_ms", usage.ttft_ms},
      {"decode_tokens", usage.decode_tokens},
      {"decode_tok_s", usage.decode_tok_s},
      {"peak_rss_bytes", process.peak_rss_bytes},
      {"peak_anon_bytes", process.peak_anon_bytes},
      {"plan_bytes",
       {{"weights", process.weights_bytes},
        {"mmproj", process.mmproj_bytes},
        {"kv", usage.kv_bytes},
        {"compute", usage.compute_bytes},
        {"encoder", usage.encoder_bytes}}},
      {"images", images},
      {"notes", usage.notes},
  };
  // Answers and file names are the user's bytes: whatever is no UTF-8 becomes U+FFFD.
  return stats.dump(2, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace plateau::cli
