#include "engine/request_plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/media_plan.h"
#include "engine/prompt_builder.h"

namespace plateau::engine {
namespace {

constexpr int kDefaultBlock = 1024;
constexpr int kMaxBlock = 1 << 16;
// The bulk stage's blocks: larger ones gain no speed and cost compute buffer.
constexpr int kBulkBlock = 2048;
constexpr int64_t kMaxTokens = INT32_MAX / 4;
constexpr int64_t kMaxContinuation = 4096;

void require(bool condition, const char* option, const char* expected, int64_t got) {
  if (!condition) {
    throw_error(ErrorCode::kInvalidArgument, "[{}] expected {}, got {}", option, expected, got);
  }
}

/// Continuations stand where the answer would: right behind the prompt, as text of their own.
std::vector<std::vector<model::Token>> tokenize_continuations(const Request& request,
                                                              const model::Vocab& vocab) {
  std::vector<std::vector<model::Token>> result;
  for (const std::string& text : request.continuations) {
    result.push_back(vocab.tokenize(text, /*parse_special=*/false));
    const auto n_tokens = static_cast<int64_t>(result.back().size());
    require(n_tokens >= 1 && n_tokens <= kMaxContinuation, "continuations",
            "texts of 1 to 4096 tokens", n_tokens);
  }
  static_assert(kMaxContinuation == 4096, "the number in the message");
  return result;
}

void check_regions(const Request& request, const std::vector<PlannedImage>& images) {
  for (const ImageRegion& region : request.regions) {
    require(region.image >= 0 && region.image < static_cast<int64_t>(images.size()), "regions",
            "the index of a picture of the request", region.image);
    if (images[static_cast<size_t>(region.image)].film && !(region.start_s < region.end_s)) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[regions] expected a part of {} that ends after it starts, got {} to {} s",
                  images[static_cast<size_t>(region.image)].path, region.start_s, region.end_s);
    }
    const media::ImageInfo& info = images[static_cast<size_t>(region.image)].info;
    const auto& film = images[static_cast<size_t>(region.image)].film;
    if (film && !film->shows(region.start_s, region.end_s)) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[regions] expected a part of the {:.6g} s of {}, got {} to {} s", film->length_s,
                  images[static_cast<size_t>(region.image)].path, region.start_s, region.end_s);
    }
    // Written so that NaN fails.
    const bool meets = region.width > 0 && region.height > 0 &&
                       region.x < static_cast<double>(info.width) &&
                       region.y < static_cast<double>(info.height) && region.x + region.width > 0 &&
                       region.y + region.height > 0;
    if (!meets) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[regions] expected a box that meets the {}x{} pixels of {}, got {}x{} at {}, {}",
                  info.width, info.height, images[static_cast<size_t>(region.image)].path,
                  region.width, region.height, region.x, region.y);
    }
  }
}

void refuse_pictures_without_encoder(const Request& request) {
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content) {
      if (std::holds_alternative<ImagePart>(part)) {
        throw_error(ErrorCode::kInvalidArgument,
                    "[--image] expected a vision projector for a picture, got none; try --mmproj");
      }
      if (std::holds_alternative<VideoPart>(part)) {
        throw_error(ErrorCode::kInvalidArgument,
                    "[--video] expected a vision projector for a film, got none; try --mmproj");
      }
    }
  }
}

/// Tokens per block as asked for, in the largest picture's units.
int block_size(const KvOptions& options, const PromptPlan& prompt) {
  int unit = 1;
  int grid_row = 1;
  for (const Piece& piece : prompt.pieces()) {
    if (piece.kind != PieceKind::kVisual) continue;
    unit = std::max(unit, piece.n_tokens());
    grid_row = std::max(grid_row, piece.layout.n_grid_cols);
  }
  switch (options.block_unit) {
    case BlockUnit::kTile:
      return unit;
    case BlockUnit::kRow:
      return grid_row;
    case BlockUnit::kFrame:
      return static_cast<int>(std::min<int64_t>(kMaxBlock, largest_frame(prompt)));
    case BlockUnit::kTokens:
      break;
  }
  if (options.block > 0) return options.block;
  return std::max(1, kDefaultBlock / unit) * unit;
}

std::unique_ptr<kv::Policy> choose_policy(const KvOptions& kv) {
  if (kv.policy == kv::kFullPolicy) return nullptr;
  auto policy = kv::make_policy(kv.policy, kv.policy_options);  // a wrong name is always an error
  return kv.budget > 0 ? std::move(policy) : nullptr;
}

/// Plans what follows from prompt and policy.
void plan_cache(const Request& request, RequestPlan& plan);

}  // namespace

void check_request_options(const Request& request) {
  require(request.max_new_tokens >= 1 && request.max_new_tokens <= kMaxTokens, "-n",
          "1 to 536870911 tokens", request.max_new_tokens);
  static_assert(kMaxTokens == 536870911, "the number in the message");
  require(request.image.max_tiles >= 0, "--max-tiles", "0 or more tiles", request.image.max_tiles);
  require(request.image.max_visual_tokens >= 0, "--max-visual-tokens", "0 or more tokens",
          request.image.max_visual_tokens);
  require(request.image.min_tokens >= 0, "--image-min-tokens", "0 or more tokens",
          request.image.min_tokens);
  require(request.image.max_tokens == 0 || request.image.max_tokens >= request.image.min_tokens,
          "--image-max-tokens", "0, or at least --image-min-tokens", request.image.max_tokens);
  require(request.image.max_tokens >= 0, "--image-max-tokens", "0 or more tokens",
          request.image.max_tokens);
  require(request.image.max_pixels >= 1, "--max-image-pixels", "at least 1 pixel",
          request.image.max_pixels);
  check_video_options(request.video);
  require(request.kv.budget >= 0 && request.kv.budget <= kMaxTokens, "--kv-budget",
          "1 to 536870911 tokens or full", request.kv.budget);
  require(request.kv.budget == 0 || request.kv.policy != kv::kFullPolicy, "--kv-budget",
          "full with --policy full, which keeps everything", request.kv.budget);
  require(request.kv.block >= 0 && request.kv.block <= kMaxBlock, "--block", "0 to 65536 tokens",
          request.kv.block);
}

RequestPlan plan_request(const Request& request, const LoadedModel& loaded) {
  check_request_options(request);
  RequestPlan plan;
  plan.policy = choose_policy(request.kv);

  std::vector<VisualLayout> layouts;
  if (loaded.encoder) {
    const model::VisionConfig& vision = loaded.encoder->config();
    plan.images = plan_images(
        request, *loaded.encoder,
        {.memory_bytes = loaded.options.encoder_memory, .n_threads = loaded.backends.n_threads()},
        loaded.film_probes);
    for (const PlannedImage& image : plan.images) layouts.push_back(layout_of(image, vision));
  } else {
    refuse_pictures_without_encoder(request);
  }
  check_regions(request, plan.images);
  plan.continuations = tokenize_continuations(request, loaded.language_model.vocab());
  const model::ModelConfig& config = loaded.language_model.config();
  const bool has_own_markers = loaded.encoder && loaded.encoder->config().is_mtmd();
  plan.prompt = build_prompt(
      request.messages, layouts, *loaded.chat_template, loaded.language_model.vocab(),
      {.markers = has_own_markers ? VisualMarkers{} : markers_of(config.architecture),
       .positions = config.has_mrope() ? PositionRule::kMultimodal : PositionRule::kSequential});
  plan_cache(request, plan);
  return plan;
}

RequestPlan plan_prompt(const Request& request, PromptPlan prompt) {
  check_request_options(request);
  RequestPlan plan;
  plan.policy = choose_policy(request.kv);
  plan.prompt = std::move(prompt);
  plan_cache(request, plan);
  return plan;
}

namespace {

void plan_cache(const Request& request, RequestPlan& plan) {
  const KvOptions& kv = request.kv;
  int n_decode = request.max_new_tokens;
  for (const auto& tokens : plan.continuations) {
    n_decode = std::max(n_decode, static_cast<int>(tokens.size()));
  }
  if (plan.prompt.n_tokens() + n_decode > kMaxTokens) {
    throw_error(ErrorCode::kResourceExhausted, "[prompt] expected at most {} tokens, got {}",
                kMaxTokens, plan.prompt.n_tokens() + n_decode);
  }
  if (plan.prompt.next_position() + n_decode > kMaxTokens) {
    throw_error(ErrorCode::kResourceExhausted, "[prompt] expected at most {} positions, got {}",
                kMaxTokens, plan.prompt.next_position() + n_decode);
  }

  const int budget = plan.policy ? kv.budget : 0;
  plan.protection = protect(plan.prompt, budget, kv.policy_options.window);
  const int n_protected = plan.protection.n_protected;
  if (n_protected > budget && budget > 0 && !kv.strict) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "[--kv-budget] expected at least {} tokens, those that are always kept (the first "
        "ones, picture markers, and the latest text up to half the budget or --window), got "
        "{}",
        smallest_budget(plan.prompt, kv.policy_options.window), budget);
  }
  const bool at_end = plan.policy && plan.policy->evicts_only_at_end();
  if (kv.strict && at_end) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--strict] expected a policy that evicts while prefilling, got {}", kv.policy);
  }
  int n_block = block_size(kv, plan.prompt);
  const bool is_default = kv.block == 0 && kv.block_unit == BlockUnit::kTokens;
  if (kv.strict && is_default && budget > 0) {
    // What is kept and the next block share the budget.
    n_block = std::min(n_block, std::max(1, (budget - n_protected) / 2));
  }
  const bool has_bulk = kv.bulk && budget > 0 && !at_end;
  plan.blocks = plan_blocks(plan.prompt, {.n_block = n_block,
                                          .n_bulk = has_bulk ? kBulkBlock : 0,
                                          .budget = budget,
                                          .whole_frames = kv.block_unit == BlockUnit::kFrame});

  std::vector<int> block_rows;
  for (const BlockPlan& block : plan.blocks) block_rows.push_back(block.n_tokens());
  const bool proxies = plan.policy && plan.policy->needs_question();
  plan.budget = kv::plan_budget({.block_rows = block_rows,
                                 .budget = budget,
                                 .strict = kv.strict,
                                 .evict_only_at_end = at_end,
                                 .n_proxy = proxies ? kv.policy_options.window : 0,
                                 .n_decode = n_decode,
                                 .n_protected = n_protected});
  plan.n_recent = std::min(kv.policy_options.window, (plan.budget.n_decode_keep - n_protected) / 2);
  for (const auto& tokens : plan.continuations) {
    // The last token is asked about, not run.
    const int room = plan.budget.n_arena - plan.budget.steps.back().n_after + 1;
    if (static_cast<int>(tokens.size()) > room) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[continuations] expected at most {} tokens beside the kept ones, got {}; try a "
                  "larger --block",
                  room, tokens.size());
    }
  }
}

}  // namespace

}  // namespace plateau::engine
