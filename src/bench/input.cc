#include "bench/input.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"
#include "base/release.h"
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

void fill_with_noise(uint32_t seed, media::Rgb8& picture) {
  std::minstd_rand rng(seed);
  for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(rng() >> 8);
}

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
      tiles[i] = {side, side, std::vector<uint8_t>(static_cast<size_t>(side) * side * 3)};
      fill_with_noise(static_cast<uint32_t>(unit) + static_cast<uint32_t>(i) + 1U, tiles[i]);
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

/// Qwen2.5-VL: frames in pairs, each pair encoded as the film's plan says.
class RandomSlices final : public BenchUnits {
 public:
  RandomSlices(vision::Encoder& encoder, const engine::PlannedImage& film)
      : encoder_(encoder),
        film_(film),
        plan_(std::get<engine::PatchPlan>(film.cut)),
        n_frames_(film.film->frames_per_slice) {}

  std::span<const float> unit(int /*image*/, int unit) override {
    if (unit == held_) return embeddings_;
    const int band = unit % plan_.encode.n_units;
    if (band == 0) draw(unit / plan_.encode.n_units);
    std::vector<media::PixelBands*> frames;
    for (media::FrameBands& bands : bands_) frames.push_back(&bands);
    const Stopwatch encoding;
    release(embeddings_);
    embeddings_ = encoder_.encode(plan_.area(band), frames, plan_.encode.group, {});
    encode_ms_ += encoding.ms();
    held_ = unit;
    return embeddings_;
  }

  double encode_ms() const override { return encode_ms_; }
  double drawing_ms() const override { return drawing_ms_; }

 private:
  void draw(int slice) {
    const Stopwatch drawing;
    bands_.clear();
    frames_.resize(static_cast<size_t>(n_frames_));
    for (int i = 0; i < n_frames_; ++i) {
      media::Rgb8& frame = frames_[static_cast<size_t>(i)];
      frame.width = film_.used_width();
      frame.height = film_.used_height();
      frame.pixels.resize(static_cast<size_t>(frame.width) * static_cast<size_t>(frame.height) * 3);
      // Of an odd number the last frame stands twice.
      const int64_t number = int64_t{slice} * n_frames_ + i;
      fill_with_noise(static_cast<uint32_t>(std::min(number, film_.film->frames.n_frames - 1)) + 1U,
                      frame);
      bands_.emplace_back(frame);
    }
    drawing_ms_ += drawing.ms();
  }

  vision::Encoder& encoder_;
  const engine::PlannedImage& film_;
  const engine::PatchPlan& plan_;
  int n_frames_;  // per slice
  std::vector<media::Rgb8> frames_;
  std::vector<media::FrameBands> bands_;
  int held_ = -1;
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

/// A film that is looked at once a second, without a file.
engine::PlannedImage film_of(const BenchPoint& point, const engine::LoadedModel& loaded) {
  const model::VisionConfig& vision = loaded.encoder->config();
  engine::PlannedImage film;
  film.info.width = point.frame_width;
  film.info.height = point.frame_height;
  engine::FilmPlan& plan = film.film.emplace();
  plan.info.width = point.frame_width;
  plan.info.height = point.frame_height;
  plan.frames = {
      .n_frames = point.n_input, .step_s = 1, .end_s = static_cast<double>(point.n_input)};
  plan.fps = 1;
  plan.frames_per_slice = vision.frames_per_unit;
  if (vision.is_internvl()) {
    film.cut = media::TileGrid{.tile_size = vision.internvl().tile_size};
    return film;
  }
  const media::TokenGrid grid =
      media::plan_token_grid(point.frame_width, point.frame_height,
                             {.token_size = vision.token_size(),
                              .min_pixels = vision.qwen25vl().min_pixels,
                              .max_tokens = point.request.video.max_frame_tokens});
  film.cut = engine::PatchPlan{
      grid, vision::plan_encode(vision, grid.n_rows, grid.n_cols, vision.frames_per_unit,
                                loaded.options.encoder_memory, loaded.backends.n_threads())};
  return film;
}

void require_encoder(const engine::LoadedModel& loaded, const char* option) {
  if (loaded.encoder) return;
  throw_error(ErrorCode::kInvalidArgument,
              "[{}] expected a vision projector, got none; try --mmproj or --tokens", option);
}

/// kTokensBefore random text tokens, the medium, kTokensAfter more of text.
engine::PromptPlan prompt_around(const engine::VisualLayout& layout, int n_vocab,
                                 engine::PositionRule rule) {
  const std::vector<model::Token> text = random_tokens(kTokensBefore + kTokensAfter, n_vocab);
  engine::PromptPlan prompt(rule);
  prompt.add_text({text.begin(), text.begin() + kTokensBefore});
  if (!layout.units.empty()) prompt.add_medium(layout);
  prompt.add_text({text.begin() + kTokensBefore, text.end()});
  return prompt;
}

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
  const int side = static_cast<int>(std::lround(std::sqrt(unit_tokens)));
  engine::VisualLayout layout;
  for (int64_t begin = 0; begin < n_visual_tokens; begin += unit_tokens) {
    const int n = static_cast<int>(std::min<int64_t>(unit_tokens, n_visual_tokens - begin));
    const int rows = n == side * side ? side : 1;
    const auto n_units = static_cast<int>(layout.units.size());
    layout.units.push_back(
        {.n_grid_rows = rows, .n_grid_cols = n / rows, .grid_h0 = n_units * side});
  }
  return prompt_around(layout, n_vocab, rule);
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
  if (point.input == InputKind::kFrames) {
    require_encoder(loaded, "--frames");
    if (loaded.encoder->config().is_mtmd()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[--frames] expected a projector that takes films, got {}; try --image",
                  loaded.encoder->config().projector_type);
    }
    engine::PlannedImage film = film_of(point, loaded);
    engine::VisualLayout layout = engine::layout_of(film, loaded.encoder->config());
    layout.slice_labels.clear();
    layout.slice_t.resize(static_cast<size_t>(film.film->n_slices()), 0);  // InternVL has no times
    engine::RequestPlan plan = engine::plan_prompt(request, prompt_around(layout, n_vocab, rule));
    plan.images.push_back(std::move(film));
    return plan;
  }
  require_encoder(loaded, "--tiles");
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
    case InputKind::kFrames:
      if (loaded.encoder->config().is_internvl()) {
        return std::make_unique<RandomTiles>(*loaded.encoder, static_cast<int>(point.n_input),
                                             loaded.encoder_batch());
      }
      return std::make_unique<RandomSlices>(*loaded.encoder, plan.images.front());
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
