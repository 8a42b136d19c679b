#include "cli/stats_json.h"

#include <nlohmann/json.hpp>

namespace plateau::cli {
namespace {

using nlohmann::ordered_json;

/// By part, all devices together.
ordered_json plan_bytes(const std::vector<MemoryPart>& memory) {
  ordered_json by_part = ordered_json::object();
  for (const MemoryPart& part : memory) {
    by_part[part.name] = by_part.value(part.name, int64_t{0}) + part.bytes;
  }
  by_part["total"] = total_bytes(memory);
  return by_part;
}

ordered_json images_json(const Usage& usage) {
  ordered_json images = ordered_json::array();
  for (const ImageReport& image : usage.images) {
    if (image.video) continue;
    images.push_back({{"path", image.path},
                      {"format", image.format},
                      {"original_width", image.width},
                      {"original_height", image.height},
                      {"used_width", image.used_width},
                      {"used_height", image.used_height},
                      {"tile_cols", image.n_cols},
                      {"tile_rows", image.n_rows},
                      {"tiles", image.n_tiles},
                      {"bands", image.n_bands},
                      {"tokens_made", image.tokens_made},
                      {"tokens_kept", image.tokens_kept}});
  }
  return images;
}

ordered_json videos_json(const Usage& usage) {
  ordered_json videos = ordered_json::array();
  for (const ImageReport& film : usage.images) {
    if (!film.video) continue;
    const VideoReport& video = *film.video;
    videos.push_back({{"path", film.path},
                      {"container", video.container},
                      {"codec", video.codec},
                      {"original_width", film.width},
                      {"original_height", film.height},
                      {"used_width", film.used_width},
                      {"used_height", film.used_height},
                      {"duration_s", video.duration_s},
                      {"start_s", video.start_s},
                      {"end_s", video.end_s},
                      {"fps", video.fps},
                      {"frames", video.n_frames},
                      {"slices", video.n_slices},
                      {"bands", film.n_bands},
                      {"damaged", video.n_damaged},
                      {"tokens_made", film.tokens_made},
                      {"tokens_kept", film.tokens_kept}});
  }
  return videos;
}

ordered_json budget_json(const Usage& usage) {
  return usage.kv_budget == 0 ? ordered_json("full") : ordered_json(usage.kv_budget);
}

/// Answers and file names are the user's bytes: whatever is no UTF-8 becomes U+FFFD.
std::string dump(const ordered_json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string stats_json(const Plan& plan, const Answer& answer, const ProcessStats& process) {
  const Usage& usage = answer.usage;
  return dump({
      {"answer", answer.text},
      {"stop_reason", answer.stop_reason == StopReason::kEndOfAnswer ? "end" : "length"},
      {"prompt_tokens", usage.prompt_tokens},
      {"text_tokens", usage.text_tokens},
      {"visual_tokens", usage.visual_tokens},
      {"blocks", usage.blocks},
      {"kv_budget", budget_json(usage)},
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
      {"plan_bytes", plan_bytes(plan.memory)},
      {"measured_bytes",
       {{"weights", usage.weights_bytes},
        {"kv", usage.kv_bytes},
        {"compute", usage.compute_bytes},
        {"encoder", usage.encoder_bytes},
        {"media", usage.media_bytes},
        {"anonymous", process.peak_anon_bytes},
        {"total", process.peak_anon_bytes + usage.weights_mapped_bytes}}},
      {"images", images_json(usage)},
      {"videos", videos_json(usage)},
      {"notes", usage.notes},
      {"concessions", plan.concessions},
  });
}

std::string plan_json(const Plan& plan) {
  ordered_json parts = ordered_json::array();
  for (const MemoryPart& part : plan.memory) {
    parts.push_back({{"name", part.name},
                     {"device", part.device},
                     {"bytes", part.bytes},
                     {"mapped", part.mapped}});
  }
  const Usage& usage = plan.usage;
  return dump({
      {"prompt_tokens", usage.prompt_tokens},
      {"text_tokens", usage.text_tokens},
      {"visual_tokens", usage.visual_tokens},
      {"positions", usage.prompt_positions},
      {"blocks", usage.blocks},
      {"kv_budget", budget_json(usage)},
      {"kv_arena_tokens", usage.kv_arena_tokens},
      {"memory", parts},
      {"total_bytes", total_bytes(plan.memory)},
      {"images", images_json(usage)},
      {"videos", videos_json(usage)},
      {"notes", usage.notes},
      {"concessions", plan.concessions},
  });
}

}  // namespace plateau::cli
