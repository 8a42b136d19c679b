#include "bench/input.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"
#include "base/stopwatch.h"
#include "engine/media_plan.h"
#include "synth/weight_stream.h"

namespace plateau::bench {
namespace {

constexpr const char* kQuestion = "Describe the picture.";

class RandomUnits final : public BenchUnits {
 public:
  RandomUnits(const engine::PromptPlan& prompt, int n_embd) : n_embd_(n_embd) {
    for (const engine::Piece& piece : prompt.pieces()) {
      if (piece.kind == engine::PieceKind::kVisual) n_tokens_.push_back(piece.n_tokens());
    }
  }

  std::span<const float> unit(int /*image*/, int unit) override {
    const Stopwatch watch;
    values_.resize(static_cast<size_t>(n_tokens_[static_cast<size_t>(unit)]) *
                   static_cast<size_t>(n_embd_));
    synth::WeightStream(fmt::format("unit {}", unit), /*seed=*/1).fill(values_, 0.0F, 1.0F);
    drawing_ms_ += watch.ms();
    return values_;
  }

  double drawing_ms() const override { return drawing_ms_; }

 private:
  int n_embd_;
  std::vector<int> n_tokens_;  // by unit
  std::vector<float> values_;
  double drawing_ms_ = 0;
};

class RandomTiles final : public BenchUnits {
 public:
  RandomTiles(vision::Encoder& encoder, int n_tiles, int batch)
      : encoder_(encoder), n_tiles_(n_tiles), batch_(batch) {}

  std::span<const float> unit(int /*image*/, int unit) override {
    if (unit < first_ || unit >= first_ + n_held_) encode_from(unit);
    const size_t size = embeddings_.size() / static_cast<size_t>(n_held_);
    return std::span(embeddings_).subspan(static_cast<size_t>(unit - first_) * size, size);
  }

  double encode_ms() const override { return encode_ms_; }
  double drawing_ms() const override { return drawing_ms_; }

 private:
  void encode_from(int unit) {
    const Stopwatch drawing;
    const int side = encoder_.config().internvl().tile_size;
    std::vector<media::Rgb8> tiles(static_cast<size_t>(std::min(batch_, n_tiles_ - unit)));
    for (size_t i = 0; i < tiles.size(); ++i) {
      std::minstd_rand rng(static_cast<uint32_t>(unit) + static_cast<uint32_t>(i) + 1U);
      tiles[i] = {side, side, std::vector<uint8_t>(static_cast<size_t>(side) * side * 3)};
      for (uint8_t& value : tiles[i].pixels) value = static_cast<uint8_t>(rng() >> 8);
    }
    drawing_ms_ += drawing.ms();
    const Stopwatch encoding;
    embeddings_ = encoder_.encode(tiles);
    encode_ms_ += encoding.ms();
    first_ = unit;
    n_held_ = static_cast<int>(tiles.size());
  }

  vision::Encoder& encoder_;
  int n_tiles_;
  int batch_;
  int first_ = 0;
  int n_held_ = 0;
  std::vector<float> embeddings_;
  double encode_ms_ = 0;
  double drawing_ms_ = 0;
};

class PictureUnits final : public BenchUnits {
 public:
  PictureUnits(engine::LoadedModel& loaded, const BenchPoint& point,
               const engine::RequestPlan& plan)
      : source_(*loaded.encoder, plan.images, engine::to_limits(point.request.image),
                loaded.encoder_batch()) {}

  std::span<const float> unit(int image, int unit) override { return source_.unit(image, unit); }
  double encode_ms() const override { return source_.encode_ms(); }

 private:
  engine::VisualSource source_;
};

}  // namespace

std::vector<model::Token> random_tokens(int n, int n_vocab) {
  std::minstd_rand rng(1);
  std::vector<model::Token> tokens(static_cast<size_t>(n));
  for (model::Token& token : tokens) {
    token = static_cast<model::Token>(rng() % static_cast<uint32_t>(n_vocab));
  }
  return tokens;
}

engine::PromptPlan synthetic_prompt(int64_t n_visual_tokens, int unit_tokens, int n_vocab,
                                    engine::PositionRule rule) {
  const std::vector<model::Token> text = random_tokens(kTokensBefore + kTokensAfter, n_vocab);
  const int side = static_cast<int>(std::lround(std::sqrt(unit_tokens)));
  engine::VisualLayout layout;
  for (int64_t begin = 0; begin < n_visual_tokens; begin += unit_tokens) {
    const int n = static_cast<int>(std::min<int64_t>(unit_tokens, n_visual_tokens - begin));
    const int rows = n == side * side ? side : 1;
    const auto n_units = static_cast<int>(layout.units.size());
    layout.units.push_back(
        {.n_grid_rows = rows, .n_grid_cols = n / rows, .grid_h0 = n_units * side});
  }
  engine::PromptPlan prompt(rule);
  prompt.add_text({text.begin(), text.begin() + kTokensBefore});
  if (!layout.units.empty()) prompt.add_medium(layout);
  prompt.add_text({text.begin() + kTokensBefore, text.end()});
  return prompt;
}

engine::RequestPlan plan_point(const BenchPoint& point, const engine::LoadedModel& loaded) {
  Request request = point.request;
  request.max_new_tokens = std::max(1, point.n_decode);
  const int n_vocab = loaded.language_model.config().n_vocab;
  const engine::PositionRule rule = loaded.language_model.config().has_mrope()
                                        ? engine::PositionRule::kMultimodal
                                        : engine::PositionRule::kSequential;
  if (point.input == InputKind::kImage) {
    request.messages = {{"user", {ImagePart{point.image}, TextPart{kQuestion}}}};
    return engine::plan_request(request, loaded);
  }
  if (point.input == InputKind::kTokens) {
    return engine::plan_prompt(request,
                               synthetic_prompt(point.n_input, kTokensPerUnit, n_vocab, rule));
  }
  if (!loaded.encoder) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--tiles] expected a vision projector, got none; try --mmproj or --tokens");
  }
  if (!loaded.encoder->config().is_internvl()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--tiles] expected a projector that takes tiles, got {}; try --image",
                loaded.encoder->config().projector_type);
  }
  const int per_tile = loaded.encoder->config().tokens_per_tile();
  return engine::plan_prompt(request,
                             synthetic_prompt(point.n_input * per_tile, per_tile, n_vocab, rule));
}

std::unique_ptr<BenchUnits> open_units(const BenchPoint& point, const engine::RequestPlan& plan,
                                       engine::LoadedModel& loaded) {
  switch (point.input) {
    case InputKind::kTokens:
      return std::make_unique<RandomUnits>(plan.prompt, loaded.language_model.config().n_embd);
    case InputKind::kTiles:
      return std::make_unique<RandomTiles>(*loaded.encoder, static_cast<int>(point.n_input),
                                           loaded.encoder_batch());
    case InputKind::kImage:
      break;
  }
  return std::make_unique<PictureUnits>(loaded, point, plan);
}

RowReader::RowReader(const engine::PromptPlan& prompt, std::span<const float> text_rows, int n_embd,
                     BenchUnits& units)
    : prompt_(prompt), text_rows_(text_rows), n_embd_(static_cast<size_t>(n_embd)), units_(units) {}

void RowReader::read_piece() {
  const engine::Piece& piece = prompt_.pieces()[next_piece_++];
  const size_t size = static_cast<size_t>(piece.n_tokens()) * n_embd_;
  std::span<const float> rows;
  if (piece.kind == engine::PieceKind::kVisual) {
    rows = units_.unit(piece.medium, piece.unit);
  } else {
    rows = text_rows_.subspan(text_begin_, size);
    text_begin_ += size;
  }
  PLATEAU_CHECK(rows.size() == size);
  held_.insert(held_.end(), rows.begin(), rows.end());
}

std::vector<float> RowReader::next(int n) {
  const size_t wanted = static_cast<size_t>(n) * n_embd_;
  while (held_.size() < wanted && next_piece_ < prompt_.pieces().size()) read_piece();
  const auto taken = static_cast<std::ptrdiff_t>(std::min(wanted, held_.size()));
  std::vector<float> rows(held_.begin(), held_.begin() + taken);
  held_.erase(held_.begin(), held_.begin() + taken);
  return rows;
}

}  // namespace plateau::bench
