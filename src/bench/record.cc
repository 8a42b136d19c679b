#include "bench/record.h"

#include <nlohmann/json.hpp>

#include "kv/policy.h"

namespace plateau::bench {
namespace {

using nlohmann::ordered_json;

std::string to_line(const ordered_json& json) {
  // File names are the user's bytes: whatever is no UTF-8 becomes U+FFFD.
  return json.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
}

double rounded(double value) {
  // Four significant digits behind any that a clock can tell.
  return std::stod(fmt::format("{:.6g}", value));
}

ordered_json to_json(const Spread& spread) {
  return {{"median", rounded(spread.median)},
          {"min", rounded(spread.min)},
          {"max", rounded(spread.max)}};
}

ordered_json to_json(const std::optional<Spread>& spread) {
  return spread ? to_json(*spread) : ordered_json(nullptr);
}

const char* to_string(CacheType type) {
  switch (type) {
    case CacheType::kF16:
      return "f16";
    case CacheType::kQ8_0:
      return "q8_0";
    case CacheType::kF32:
      return "f32";
  }
  return "f16";
}

const char* to_string(InputKind input) {
  switch (input) {
    case InputKind::kTokens:
      return "tokens";
    case InputKind::kTiles:
      return "tiles";
    case InputKind::kFrames:
      return "frames";
    case InputKind::kImage:
      return "image";
  }
  return "tokens";
}

ordered_json block_of(const KvOptions& kv) {
  switch (kv.block_unit) {
    case BlockUnit::kTile:
      return "tile";
    case BlockUnit::kRow:
      return "row";
    case BlockUnit::kFrame:
      return "frame";
    case BlockUnit::kTokens:
      break;
  }
  return kv.block;
}

ordered_json point_fields(const std::string& run, const BenchPoint& point) {
  const KvOptions& kv = point.request.kv;
  const bool is_full = kv.budget == 0;
  ordered_json json = {{"type", "bench"}, {"run", run}, {"input", to_string(point.input)}};
  if (point.input == InputKind::kImage) {
    json["image"] = point.image;
  } else {
    json["n_input"] = point.n_input;
  }
  if (point.input == InputKind::kFrames) {
    json["frame_size"] = {point.frame_width, point.frame_height};
  }
  json["kv_budget"] = is_full ? ordered_json("full") : ordered_json(kv.budget);
  json["policy"] = is_full ? kv::kFullPolicy : kv.policy;
  json["block"] = block_of(kv);
  json["bulk"] = kv.bulk;
  json["strict"] = kv.strict;
  json["cache_type_k"] = to_string(point.engine.cache_type_k);
  json["cache_type_v"] = to_string(point.engine.cache_type_v);
  json["threads"] = point.engine.n_threads;
  json["decode_tokens"] = point.n_decode;
  json["repeats"] = point.n_repeats;
  json["isolated"] = point.isolated;
  return json;
}

}  // namespace

std::string fingerprint_line(const Fingerprint& f) {
  return to_line({{"type", "fingerprint"},
                  {"run", f.run},
                  {"date", f.date},
                  {"command", f.command},
                  {"cpu", f.cpu},
                  {"cores", f.n_cores},
                  {"ram_bytes", f.ram_bytes},
                  {"kernel", f.kernel},
                  {"compiler", f.compiler},
                  {"build_type", f.build_type},
                  {"version", f.version},
                  {"commit", f.commit},
                  {"llama_cpp", f.llama_cpp},
                  {"model",
                   {{"file", f.model_file},
                    {"bytes", f.model_bytes},
                    {"metadata_hash", f.metadata_hash},
                    {"arch", f.arch},
                    {"n_layer", f.n_layer},
                    {"n_layer_published", f.n_layer_published},
                    {"n_embd", f.n_embd},
                    {"n_head", f.n_head},
                    {"n_head_kv", f.n_head_kv},
                    {"head_dim", f.head_dim},
                    {"n_ff", f.n_ff},
                    {"n_vocab", f.n_vocab},
                    {"weight_type", f.weight_type}}}});
}

std::string measurement_line(const std::string& run, const BenchPoint& point,
                             const Measurement& m) {
  ordered_json json = point_fields(run, point);
  json["prompt_tokens"] = m.first.n_prompt;
  json["visual_tokens"] = m.first.n_visual;
  json["blocks"] = m.first.n_blocks;
  json["largest_block"] = m.first.n_largest_block;
  json["ttft_ms"] = to_json(m.ttft_ms);
  json["encode_ms"] = to_json(m.encode_ms);
  json["prefill_ms"] = to_json(m.prefill_ms);
  json["score_ms"] = to_json(m.score_ms);
  json["select_ms"] = to_json(m.select_ms);
  json["compact_ms"] = to_json(m.compact_ms);
  json["prompt_tok_s"] = rounded(1000.0 * static_cast<double>(m.first.n_prompt) / m.ttft_ms.median);
  json["decode_tok_s"] = to_json(m.decode_tok_s);
  json["arena_tokens"] = m.first.n_arena;
  json["kept_tokens"] = m.first.n_kept;
  json["kv_bytes"] = m.first.kv_bytes;
  json["kv_bytes_planned"] = m.first.planned_kv_bytes;
  json["compute_bytes"] = m.first.compute_bytes;
  json["compute_bytes_planned"] = m.planned_compute_bytes;
  json["encoder_bytes"] = m.first.encoder_bytes;
  json["weights_bytes"] = m.weights_bytes;
  json["loaded_anon_bytes"] = m.loaded_anon_bytes;
  json["peak_anon_bytes"] = m.peak_anon_bytes;
  json["peak_anon_bytes_planned"] =
      m.planned_peak_anon_bytes ? ordered_json(*m.planned_peak_anon_bytes) : ordered_json(nullptr);
  json["peak_rss_bytes"] = m.peak_rss_bytes;
  if (m.profile) {
    json["profile"] = {{"linear_ms", rounded(m.profile->linear_ms)},
                       {"attention_ms", rounded(m.profile->attention_ms)},
                       {"signals_ms", rounded(m.profile->signals_ms)},
                       {"other_ms", rounded(m.profile->other_ms)},
                       {"prefill_ms", rounded(m.profile->prefill_ms)}};
  }
  if (m.llama) {
    json["llama_cpp"] = {{"ubatch", m.llama->n_ubatch},
                         {"ttft_ms", to_json(m.llama->ttft_ms)},
                         {"decode_tok_s", to_json(m.llama->decode_tok_s)}};
    json["speedup"] = {{"ttft", to_json(m.llama->ttft_ratio)},
                       {"decode", to_json(m.llama->decode_ratio)}};
  }
  return to_line(json);
}

std::string failure_line(const std::string& run, const BenchPoint& point,
                         const std::string& message) {
  ordered_json json = point_fields(run, point);
  json["error"] = message;
  return to_line(json);
}

}  // namespace plateau::bench
