#include "engine/usage_report.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/plural.h"
#include "engine/media_plan.h"

namespace plateau::engine {
namespace {

/// Half-open ranges of token rows and columns on a picture's own grid, or on those of a film's
/// slices.
struct TokenBox {
  int plane_begin = 0;
  int plane_end = 0;
  int col_begin = 0;
  int col_end = 0;
  int row_begin = 0;
  int row_end = 0;

  bool holds(const kv::TokenInfo& info) const {
    return info.plane >= plane_begin && info.plane < plane_end && info.w >= col_begin &&
           info.w < col_end && info.h >= row_begin && info.h < row_end;
  }
  int64_t n_tokens() const {
    return int64_t{plane_end - plane_begin} * (col_end - col_begin) * (row_end - row_begin);
  }
};

/// The tokens of a grid of `n` along `side` pixels that [begin, begin + length) touches.
std::pair<int, int> touched(double begin, double length, int64_t side, int n) {
  const double scale = static_cast<double>(n) / static_cast<double>(side);
  const double first = std::clamp(std::floor(begin * scale), 0.0, static_cast<double>(n - 1));
  const double last =
      std::clamp(std::ceil((begin + length) * scale), first + 1.0, static_cast<double>(n));
  return {static_cast<int>(first), static_cast<int>(last)};
}

TokenBox tokens_of(const ImageRegion& region, const RequestPlan& plan) {
  int n_cols = 1;
  int n_rows = 1;
  const int plane = plan.prompt.own_planes()[static_cast<size_t>(region.image)];
  for (const Piece& piece : plan.prompt.pieces()) {
    const UnitLayout& unit = piece.layout;
    if (piece.kind != PieceKind::kVisual || unit.plane != plane) continue;
    n_cols = std::max(n_cols, unit.grid_w0 + unit.n_grid_cols);
    n_rows = std::max(n_rows, unit.grid_h0 + unit.n_grid_rows);
  }
  const PlannedImage& image = plan.images[static_cast<size_t>(region.image)];
  const media::ImageInfo& info = image.info;
  // A film's slices are planes in order.
  const auto [first, last] =
      image.film ? image.film->slices_within(region.start_s, region.end_s) : std::pair(0, 1);
  const auto [col_begin, col_end] = touched(region.x, region.width, info.width, n_cols);
  const auto [row_begin, row_end] = touched(region.y, region.height, info.height, n_rows);
  return {plane + first, plane + last, col_begin, col_end, row_begin, row_end};
}

}  // namespace

Usage planned_usage(const Request& request, const RequestPlan& plan, const LoadedModel& loaded) {
  Usage usage;
  usage.prompt_tokens = plan.prompt.n_tokens();
  usage.text_tokens = plan.prompt.n_text_tokens();
  usage.visual_tokens = plan.prompt.n_visual_tokens();
  usage.prompt_positions = plan.prompt.next_position();
  usage.blocks = static_cast<int64_t>(plan.blocks.size());
  usage.kv_budget = plan.policy ? request.kv.budget : 0;
  usage.kv_arena_tokens = kv::padded_slots(plan.budget.n_arena);
  usage.kv_bytes =
      loaded.language_model.config().kv_bytes_per_token(kv::to_ggml(loaded.options.cache_type_k),
                                                        kv::to_ggml(loaded.options.cache_type_v)) *
      usage.kv_arena_tokens;
  const auto count_weights = [&](const model::WeightBytes& bytes) {
    usage.weights_bytes += bytes.mapped + bytes.allocated;
    usage.weights_mapped_bytes += bytes.mapped;
  };
  for (const auto& bytes : loaded.language_model.weight_bytes()) count_weights(bytes);
  if (loaded.encoder) count_weights(loaded.encoder->weight_bytes());
  for (const PlannedImage& image : plan.images) {
    const model::VisionConfig& vision = loaded.encoder->config();
    usage.images.push_back(report_of(image, vision));
    for (std::string& note : image_notes(usage.images.back(), image, vision)) {
      usage.notes.push_back(std::move(note));
    }
  }
  if (!plan.images.empty() && loaded.encoder->config().is_mtmd()) {
    usage.notes.push_back(fmt::format(
        "pictures are encoded by llama.cpp's library, as there is no tower for {} projectors here: "
        "its memory grows with the picture and is not bounded",
        loaded.encoder->config().projector_type));
  }
  if (plan.policy && plan.policy->evicts_only_at_end()) {
    usage.notes.push_back(fmt::format(
        "{} holds the whole prompt before it evicts: memory is not bounded", request.kv.policy));
  }
  if (plan.protection.n_evictable_text > 0) {
    usage.notes.push_back(
        fmt::format("the oldest {} may be evicted: text beyond half the budget is not always kept",
                    counted(plan.protection.n_evictable_text, "text token")));
  }
  const int n_ctx_train = loaded.language_model.config().n_ctx_train;
  if (plan.prompt.next_position() > n_ctx_train) {
    usage.notes.push_back(
        fmt::format("the prompt has {} positions, the model was trained for {}: quality may suffer",
                    plan.prompt.next_position(), n_ctx_train));
  }
  return usage;
}

void report_kept(const RequestPlan& plan, const Sequence& sequence, bool want_kept_share,
                 Usage& usage) {
  const kv::SlotMap& slots = sequence.slots();
  const int n_pairs = slots.n_layer() * slots.n_head_kv();
  const std::vector<int>& own_planes = plan.prompt.own_planes();
  std::vector<int64_t> kept(usage.images.size(), 0);
  if (want_kept_share) {
    for (const Piece& piece : plan.prompt.pieces()) {
      if (piece.kind != PieceKind::kVisual) continue;
      const UnitLayout& unit = piece.layout;
      const auto medium = static_cast<size_t>(piece.medium);
      if (unit.plane != own_planes[medium] || usage.images[medium].video) continue;
      ImageReport& image = usage.images[medium];
      image.grid_cols = std::max(image.grid_cols, unit.grid_w0 + unit.n_grid_cols);
      image.grid_rows = std::max(image.grid_rows, unit.grid_h0 + unit.n_grid_rows);
    }
    for (ImageReport& image : usage.images) {
      image.kept_share.assign(
          static_cast<size_t>(image.grid_cols) * static_cast<size_t>(image.grid_rows), 0.0f);
    }
  }
  for (int il = 0; il < slots.n_layer(); ++il) {
    for (int head = 0; head < slots.n_head_kv(); ++head) {
      for (const int32_t token : slots.tokens(il, head)) {
        const kv::TokenInfo info = sequence.tokens().at(token);
        if (info.medium < 0) continue;
        const auto medium = static_cast<size_t>(info.medium);
        ++kept[medium];
        ImageReport& image = usage.images[medium];
        if (want_kept_share && !image.video && info.plane == own_planes[medium]) {
          const auto cell = static_cast<size_t>(info.h) * static_cast<size_t>(image.grid_cols) +
                            static_cast<size_t>(info.w);
          image.kept_share[cell] += 1.0f / static_cast<float>(n_pairs);
        }
      }
    }
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    usage.images[i].tokens_kept = (kept[i] + n_pairs / 2) / n_pairs;
  }
}

void report_regions(const RequestPlan& plan, const Sequence& sequence,
                    const std::vector<ImageRegion>& regions, Usage& usage) {
  const kv::SlotMap& slots = sequence.slots();
  for (const ImageRegion& region : regions) {
    const TokenBox box = tokens_of(region, plan);
    RegionReport& report = usage.regions.emplace_back();
    report.tokens = box.n_tokens();
    report.n_layer = slots.n_layer();
    report.n_head_kv = slots.n_head_kv();
    for (int il = 0; il < slots.n_layer(); ++il) {
      for (int head = 0; head < slots.n_head_kv(); ++head) {
        const auto tokens = slots.tokens(il, head);
        report.tokens_kept.push_back(
            static_cast<int32_t>(std::count_if(tokens.begin(), tokens.end(), [&](int32_t token) {
              return box.holds(sequence.tokens().at(token));
            })));
      }
    }
  }
}

BlockTrace trace_of(const Sequence& sequence, int block, int64_t n_before, int64_t tokens_done) {
  const kv::SlotMap& slots = sequence.slots();
  BlockTrace trace = {.block = block,
                      .tokens_done = tokens_done,
                      .n_layer = slots.n_layer(),
                      .n_head_kv = slots.n_head_kv(),
                      .tokens = {},
                      .positions = {}};
  for (int il = 0; il < slots.n_layer(); ++il) {
    for (int head = 0; head < slots.n_head_kv(); ++head) {
      const auto tokens = slots.tokens(il, head);
      trace.tokens.emplace_back(tokens.begin(), tokens.end());
    }
  }
  for (int64_t token = n_before; token < tokens_done; ++token) {
    const kv::Position position = sequence.tokens().at(token).position;
    trace.positions.push_back({position.t, position.h, position.w});
  }
  return trace;
}

}  // namespace plateau::engine
