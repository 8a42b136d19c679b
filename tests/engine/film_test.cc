// Films through the engine, for both families: what is looked at, where it stands in the prompt,
// and that it is what the frames by themselves would be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/media_plan.h"
#include "engine/request_plan.h"
#include "engine/visual_source.h"
#include "media/fixtures.h"
#include "media/video.h"
#include "plateau/engine.h"
#include "support/expect_error.h"
#include "support/film_writer.h"
#include "support/synth.h"
#include "vision/encode_plan.h"

namespace plateau::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

enum class Family { kInternVl, kQwen };

class Film : public testing::Test {
 protected:
  static std::string model(const char* name) {
    return std::string(PLATEAU_SOURCE_DIR) + "/models/pico/" + name;
  }

  EngineOptions options(Family family) {
    EngineOptions options;
    options.n_threads = 1;
    options.model_path = model("pico-internvl-text.gguf");
    options.mmproj_path = model("pico-internvl-mmproj.gguf");
    if (family == Family::kQwen) {
      options.model_path = dir_.file("text.gguf");
      options.mmproj_path = dir_.file("mmproj.gguf");
      write_tiny_text({.arch = "qwen2vl"}, options.model_path);
      write_tiny_qwen_vision({}, options.mmproj_path);
    }
    return options;
  }

  /// One frame a second, the clock on each; lossless.
  std::string film(int64_t n_frames, int width = 84, int height = 56) {
    const std::string path = dir_.file("film.mov");
    write_film(path,
               {.container = "mov",
                .encoder = "png",
                .pixel_format = "rgb24",
                .width = width,
                .height = height,
                .tick_den = 1},
               n_frames, [](int64_t i, FilmCanvas& canvas) { draw_clock(i * 37 + 5, canvas); });
    return path;
  }

  /// The same frame as a picture.
  std::string still(int64_t i, int width = 84, int height = 56) {
    FilmCanvas canvas{width, height, 3, {}};
    canvas.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
    draw_clock(i * 37 + 5, canvas);
    const std::string path = dir_.file("still" + std::to_string(i) + ".png");
    media::testing::write_png({width, height, canvas.pixels}, path);
    return path;
  }

  static Request ask(std::vector<ContentPart> content) {
    Request request;
    content.emplace_back(TextPart{"What is it?"});
    request.messages = {{"user", std::move(content)}};
    request.max_new_tokens = 4;
    request.continuations = {"4"};
    return request;
  }

  media::testing::TempDir dir_;
};

TEST_F(Film, CountsOfBothFamilies) {
  const struct {
    Family family;
    int64_t n_frames, n_slices, n_tokens;
  } cases[] = {{Family::kInternVl, 5, 5, 5 * 4},
               {Family::kInternVl, 1, 1, 4},
               {Family::kQwen, 6, 3, 3 * 6},
               {Family::kQwen, 5, 3, 3 * 6},
               {Family::kQwen, 1, 1, 6}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.n_frames);
    const std::string path = film(c.n_frames);
    const Usage usage = Engine::open(options(c.family)).run(ask({VideoPart{path}})).usage;
    ASSERT_EQ(usage.images.size(), 1U);
    const ImageReport& report = usage.images[0];
    ASSERT_TRUE(report.video.has_value());
    EXPECT_EQ(report.video->n_frames, c.n_frames);
    EXPECT_EQ(report.video->n_slices, c.n_slices);
    EXPECT_EQ(report.video->container, "mov");
    EXPECT_EQ(report.video->codec, "png");
    EXPECT_DOUBLE_EQ(report.video->duration_s, static_cast<double>(c.n_frames));
    EXPECT_DOUBLE_EQ(report.video->fps, 1.0);
    EXPECT_EQ(report.video->n_damaged, 0);
    EXPECT_EQ(report.width, 84);
    EXPECT_EQ(report.height, 56);
    EXPECT_EQ(report.used_width, c.family == Family::kQwen ? 84 : 112);
    EXPECT_EQ(report.tokens_made, c.n_tokens);
    EXPECT_EQ(report.tokens_kept, c.n_tokens);
    EXPECT_EQ(usage.visual_tokens, c.n_tokens);
    EXPECT_EQ(usage.encoded_tiles, c.n_slices);
    const bool is_odd = c.family == Family::kQwen && c.n_frames % 2 == 1;
    EXPECT_EQ(is_odd, testing::Matches(Contains(HasSubstr("repeated")))(usage.notes));
  }
}

// method.md: t = start + floor(slice * second_per_grid * tokens_per_second), h and w as in a
// picture.
TEST_F(Film, PositionsOfSlices) {
  Engine engine = Engine::open(options(Family::kQwen));
  const std::string path = film(9);
  for (const double fps : {1.0, 0.5, 0.7}) {
    Request request = ask({VideoPart{path}});
    request.video.fps = fps;
    std::vector<std::array<int32_t, 3>> positions;
    RequestCallbacks callbacks;
    callbacks.on_block_kept = [&](const BlockTrace& trace) {
      positions.insert(positions.end(), trace.positions.begin(), trace.positions.end());
    };
    const Usage usage = engine.run(request, callbacks).usage;
    const int64_t n_slices = usage.images[0].video->n_slices;
    EXPECT_EQ(n_slices, (static_cast<int64_t>(std::ceil(9 * fps)) + 1) / 2);
    // The first token of which the components differ ends the first row's first column.
    const auto second = std::find_if(positions.begin(), positions.end(),
                                     [](const auto& p) { return p[0] != p[2]; });
    ASSERT_NE(second, positions.end());
    const auto first = second - 1;
    const int32_t start = (*first)[0];
    int32_t last_t = 0;
    for (int64_t i = 0; i < n_slices * 6; ++i) {
      const auto slice = static_cast<double>(i / 6);
      const auto t = static_cast<int32_t>(std::floor(slice * (2 / fps) * 2 + 1e-9));
      const auto cell = static_cast<int32_t>(i % 6);
      EXPECT_THAT(first[i], ElementsAre(start + t, start + cell / 3, start + cell % 3)) << i;
      last_t = t;
    }
    const int32_t next = start + std::max(last_t, 2) + 1;
    EXPECT_THAT(first[n_slices * 6], ElementsAre(next, next, next));  // <|vision_end|>
  }
}

// As the published family lays a film out, which by hand is a row of named pictures.
TEST_F(Film, NumberedFramesAreThePicturesByHand) {
  Engine engine = Engine::open(options(Family::kInternVl));
  const std::string path = film(3, 112, 112);
  std::vector<ContentPart> by_hand;
  std::string list;
  for (int i = 0; i < 3; ++i) {
    const std::string picture = still(i, 112, 112);
    by_hand.emplace_back(TextPart{"Frame" + std::to_string(i + 1) + ": "});
    by_hand.emplace_back(ImagePart{picture});
    list += picture + "\t" + std::to_string(2 * i) + "\n";
  }
  const Answer want = engine.run(ask(by_hand));
  for (const VideoPart& part :
       {VideoPart{path}, VideoPart{dir_.write("list.txt", list), /*is_frame_list=*/true}}) {
    const Answer got = engine.run(ask({part}));
    EXPECT_EQ(got.text, want.text);
    EXPECT_EQ(got.usage.prompt_tokens, want.usage.prompt_tokens);
    EXPECT_EQ(got.continuations[0].log_prob, want.continuations[0].log_prob);
  }
}

// Qwen2.5-VL has no such layout of pictures; its slices are compared with the tower's own output.
TEST_F(Film, SlicesAreThePairsOfFramesByHand) {
  const std::string path = film(5);
  engine::LoadedModel loaded(options(Family::kQwen), {});
  const engine::RequestPlan plan = engine::plan_request(ask({VideoPart{path}}), loaded);
  engine::VisualSource source(*loaded.encoder, plan.images, {}, 1);
  media::VideoReader reader(path, plan.images[0].film->frames, {}, {.width = 84, .height = 56});
  for (int slice = 0; slice < 3; ++slice) {
    const media::Rgb8 even = reader.next()->picture;
    const media::Rgb8 odd = slice < 2 ? reader.next()->picture : even;
    media::FrameBands first(even), second(odd);
    media::PixelBands* const frames[] = {&first, &second};
    const std::vector<float> want =
        loaded.encoder->encode({.n_rows = 2, .n_cols = 3}, frames, 1024, {});
    const std::span<const float> got = source.unit(0, slice);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin(), want.end())) << slice;
  }
  EXPECT_EQ(source.units_done(), 3);
}

TEST_F(Film, AListOfPicturesIsTheFilm) {
  Engine engine = Engine::open(options(Family::kQwen));
  const std::string path = film(4);
  std::string list;
  for (int i = 0; i < 4; ++i) list += still(i) + "\t" + std::to_string(i) + "\n";
  const VideoPart listed{dir_.write("list.txt", list), /*is_frame_list=*/true};
  const Answer want = engine.run(ask({VideoPart{path}}));
  const Answer got = engine.run(ask({listed}));
  EXPECT_EQ(got.continuations[0].log_prob, want.continuations[0].log_prob);
  EXPECT_EQ(got.usage.prompt_positions, want.usage.prompt_positions);
  EXPECT_EQ(got.usage.images[0].video->container, "list");
  EXPECT_DOUBLE_EQ(got.usage.images[0].video->fps, 1.0);
}

TEST_F(Film, CapsLowerTheSizeOrTheNumberOfFramesAndSaySo) {
  const std::string path = film(10, 280, 280);  // 100 tokens a slice
  Engine qwen = Engine::open(options(Family::kQwen));
  const auto usage_of = [&](Engine& engine, const VideoOptions& video, int64_t max_visual = 0) {
    Request request = ask({VideoPart{path}});
    request.video = video;
    request.image.max_visual_tokens = max_visual;
    return engine.run(request).usage;
  };
  EXPECT_EQ(usage_of(qwen, {}).visual_tokens, 500);
  EXPECT_THAT(usage_of(qwen, {}).notes, Not(Contains(HasSubstr("resized"))));
  const Usage small = usage_of(qwen, {.max_tokens = 130});
  EXPECT_LE(small.visual_tokens, 130);
  EXPECT_EQ(small.images[0].video->n_frames, 10);
  EXPECT_THAT(small.notes, Contains(HasSubstr("frames resized from 280x280")));
  EXPECT_LE(usage_of(qwen, {}, 130).visual_tokens, 130);
  EXPECT_EQ(usage_of(qwen, {.max_frame_tokens = 25}).visual_tokens, 5 * 25);
  const Usage few = usage_of(qwen, {.max_tokens = 3});
  EXPECT_EQ(few.visual_tokens, 3);
  EXPECT_EQ(few.images[0].video->n_frames, 6);
  const Usage spread = usage_of(qwen, {.max_frames = 4});
  EXPECT_EQ(spread.images[0].video->n_frames, 4);
  EXPECT_DOUBLE_EQ(spread.images[0].video->fps, 0.4);
  EXPECT_THAT(spread.notes, Contains(HasSubstr("10 frames at 1 per second are more than 4")));
  const Usage part = usage_of(qwen, {.start_s = 2, .end_s = 6});
  EXPECT_EQ(part.images[0].video->n_frames, 4);

  Engine internvl = Engine::open(options(Family::kInternVl));
  const Usage fewer = usage_of(internvl, {.max_tokens = 17});
  EXPECT_EQ(fewer.images[0].video->n_frames, 4);
  EXPECT_EQ(fewer.visual_tokens, 16);
  EXPECT_THAT(fewer.notes, Contains(HasSubstr("more than 4")));
  expect_error([&] { usage_of(internvl, {.max_tokens = 3}); }, ErrorCode::kInvalidArgument,
               {"--max-video-tokens"});
}

TEST_F(Film, PicturesAndFilmsKeepTheirOrder) {
  const std::string path = film(3);
  for (const Family family : {Family::kInternVl, Family::kQwen}) {
    EngineOptions engine_options = options(family);
    engine_options.embedding_cache_bytes = 1 << 20;
    Engine engine = Engine::open(engine_options);
    Request request = ask({ImagePart{still(0)}, VideoPart{path}, ImagePart{still(1)}});
    const Usage usage = engine.run(request).usage;
    ASSERT_EQ(usage.images.size(), 3U);
    EXPECT_FALSE(usage.images[0].video);
    EXPECT_TRUE(usage.images[1].video);
    EXPECT_FALSE(usage.images[2].video);
    for (const ImageReport& report : usage.images) {
      EXPECT_EQ(report.tokens_kept, report.tokens_made);
    }
    // The pictures are in the cache of embeddings now, the film is not.
    const Usage again = engine.run(request).usage;
    EXPECT_EQ(again.encoded_tiles, usage.images[1].video->n_slices);
    // A budget, blocks of one slice, and shares for the pictures alone.
    request.kv = {.budget = 40, .block_unit = BlockUnit::kFrame};
    if (family == Family::kInternVl) request.kv.budget = 60;
    request.want_kept_share = true;
    const Usage evicted = engine.run(request).usage;
    EXPECT_LE(evicted.kv_kept_max, evicted.kv_arena_tokens);
    EXPECT_FALSE(evicted.images[0].kept_share.empty());
    EXPECT_THAT(evicted.images[1].kept_share, IsEmpty());
  }
}

TEST_F(Film, FrameBlocksHoldOneSlice) {
  Engine engine = Engine::open(options(Family::kQwen));
  const std::string path = film(8);
  Request request = ask({VideoPart{path}});
  request.kv.block_unit = BlockUnit::kFrame;
  const Answer framed = engine.run(request);
  EXPECT_GE(framed.usage.blocks, 4);
  request.kv = {};
  const Answer whole = engine.run(request);
  EXPECT_NEAR(framed.continuations[0].log_prob, whole.continuations[0].log_prob, 1e-3);
}

TEST_F(Film, BandsOfASliceHoldItsFrames) {
  const std::string path = film(4, 28 * 12, 28 * 20);
  EngineOptions engine_options = options(Family::kQwen);
  const model::VisionConfig config =
      model::read_vision_config(model::GgufFile::open(engine_options.mmproj_path));
  engine_options.encoder_memory =
      vision::encoder_scratch_bytes(config, 20, 12, {.group = 128, .n_frames = 2}) - 1;
  const Usage usage = Engine::open(engine_options).run(ask({VideoPart{path}})).usage;
  EXPECT_GT(usage.images[0].n_bands, 1);
  EXPECT_EQ(usage.visual_tokens, 2 * 240);
  EXPECT_EQ(usage.images[0].tokens_kept, 480);
  EXPECT_EQ(usage.encoded_tiles, 2 * usage.images[0].n_bands);
  EXPECT_LE(usage.encoder_bytes, engine_options.encoder_memory);
  EXPECT_THAT(usage.notes, Contains(HasSubstr("bands")));
}

TEST_F(Film, IsCancelledWithin) {
  for (const Family family : {Family::kInternVl, Family::kQwen}) {
    Engine engine = Engine::open(options(family));
    const std::string path = film(40);
    int64_t n_units = 0;
    RequestCallbacks callbacks;
    Request request = ask({VideoPart{path}});
    request.kv.block_unit = BlockUnit::kFrame;
    callbacks.on_progress = [&](const Progress& progress) { n_units = progress.tiles_done; };
    callbacks.should_cancel = [&] { return n_units >= 6; };
    expect_error([&] { engine.run(request, callbacks); }, ErrorCode::kCancelled, {""});
    EXPECT_LT(n_units, 20);
    n_units = 0;
    EXPECT_EQ(engine.run(ask({VideoPart{film(2)}})).usage.images.size(), 1U);
  }
}

TEST_F(Film, ARegionOutsideTheFilmsTimeIsRefused) {
  Engine engine = Engine::open(options(Family::kInternVl));
  Request request = ask({VideoPart{film(9)}});
  request.video.max_frames = 2;  // the last moment is part of the film, though not looked at
  request.max_new_tokens = 1;
  request.regions = {{.width = 1e9, .height = 1e9, .start_s = 8.5, .end_s = 20}};
  EXPECT_EQ(engine.run(request).usage.regions[0].tokens, 0);
  request.regions[0].start_s = 9;
  try {
    engine.run(request);
    ADD_FAILURE() << "was answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("expected a part of the 9 s of"));
  }
}

// Which tokens a region has: those of the slices whose frames are due in its time, and of them
// those that its box touches. What is kept of them is counted from the trace.
TEST_F(Film, RegionsAreFollowedInTheirTime) {
  for (const Family family : {Family::kInternVl, Family::kQwen}) {
    const bool is_qwen = family == Family::kQwen;
    Engine engine = Engine::open(options(family));
    Request request = ask({VideoPart{film(9)}});
    request.kv.budget = 40;
    request.kv.block = 8;
    request.kv.bulk = false;
    const ImageRegion everything = {.width = 1e9, .height = 1e9};
    ImageRegion fifth = everything;  // frame 5, or the slice of frames 4 and 5
    fifth.start_s = 5;
    fifth.end_s = 6;
    ImageRegion corner = {.width = 28, .height = 28, .start_s = 3, .end_s = 5};
    ImageRegion unseen = everything;
    unseen.start_s = 5.25;
    unseen.end_s = 5.75;
    request.regions = {everything, fifth, corner, unseen};
    std::vector<std::vector<int32_t>> last;
    std::vector<std::array<int32_t, 3>> positions;
    RequestCallbacks callbacks;
    callbacks.on_block_kept = [&](const BlockTrace& trace) {
      last = trace.tokens;
      positions.insert(positions.end(), trace.positions.begin(), trace.positions.end());
    };
    const Usage usage = engine.run(request, callbacks).usage;
    ASSERT_EQ(usage.regions.size(), 4U);
    EXPECT_EQ(usage.regions[0].tokens, is_qwen ? 5 * 6 : 9 * 4);
    EXPECT_EQ(usage.regions[1].tokens, is_qwen ? 6 : 4);
    EXPECT_EQ(usage.regions[2].tokens, 2);  // two slices, one token of each
    EXPECT_EQ(usage.regions[3].tokens, 0);
    for (const int32_t kept : usage.regions[3].tokens_kept) EXPECT_EQ(kept, 0);
    int64_t n_kept = 0;
    for (const int32_t kept : usage.regions[0].tokens_kept) n_kept += kept;
    const auto n_pairs = static_cast<int64_t>(usage.regions[0].tokens_kept.size());
    EXPECT_EQ((n_kept + n_pairs / 2) / n_pairs, usage.images[0].tokens_kept);
    EXPECT_LT(n_kept, n_pairs * usage.regions[0].tokens);
    if (!is_qwen) continue;
    // The third slice: its tokens are the 13th to 18th of the film.
    const auto second = std::find_if(positions.begin(), positions.end(),
                                     [](const auto& p) { return p[0] != p[2]; });
    const auto first = static_cast<int32_t>(second - positions.begin()) - 1;
    for (size_t pair = 0; pair < last.size(); ++pair) {
      const auto n = std::count_if(last[pair].begin(), last[pair].end(), [&](int32_t token) {
        return token >= first + 12 && token < first + 18;
      });
      EXPECT_EQ(usage.regions[1].tokens_kept[pair], n) << pair;
    }
  }
}

TEST_F(Film, BadOnesAreRefused) {
  Engine engine = Engine::open(options(Family::kInternVl));
  const auto run = [&](const VideoPart& part, const VideoOptions& video = {}) {
    Request request = ask({part});
    request.video = video;
    engine.run(request);
  };
  using enum ErrorCode;
  expect_error([&] { run({dir_.file("none.mp4")}); }, kNotFound, {"none.mp4"});
  expect_error([&] { run({dir_.write("text.mp4", "no film")}); }, kUnsupported, {"text.mp4"});
  expect_error([&] { run({dir_.write("list.txt", "none.png\n"), true}); }, kNotFound, {"none.png"});
  const std::string path = film(3);
  expect_error([&] { run({path}, {.fps = 0}); }, kInvalidArgument, {"--fps"});
  expect_error([&] { run({path}, {.fps = std::nan("")}); }, kInvalidArgument, {"--fps"});
  expect_error([&] { run({path}, {.max_frames = -1}); }, kInvalidArgument, {"--max-frames"});
  expect_error([&] { run({path}, {.max_tokens = -1}); }, kInvalidArgument, {"--max-video-tokens"});
  expect_error([&] { run({path}, {.start_s = -1}); }, kInvalidArgument, {"--video-start"});
  expect_error([&] { run({path}, {.start_s = 2, .end_s = 1}); }, kInvalidArgument, {"--video-end"});
  expect_error([&] { run({path}, {.start_s = 9}); }, kInvalidArgument, {"within the film"});
  Request region = ask({VideoPart{path}});
  region.regions = {{.width = 9, .height = 9, .start_s = 2, .end_s = 2}};
  expect_error([&] { engine.run(region); }, kInvalidArgument, {"ends after it starts"});
  region.regions = {{.x = 84, .width = 9, .height = 9}};
  expect_error([&] { engine.run(region); }, kInvalidArgument, {"84x56"});
  EngineOptions blind = options(Family::kInternVl);
  blind.mmproj_path.clear();
  expect_error([&] { Engine::open(blind).run(ask({VideoPart{path}})); }, kInvalidArgument,
               {"--mmproj"});
}

// The layout of ten hours at one frame a second, which is planned before anything is decoded.
TEST_F(Film, TheLayoutOfTenHoursIsLight) {
  engine::FilmPlan film;
  film.frames = {.n_frames = 36'000, .step_s = 1};
  const engine::VisualLayout slice = {.units = {{.n_grid_rows = 16, .n_grid_cols = 16}}};
  const engine::VisualLayout numbered = engine::numbered_layout(film, slice);
  ASSERT_EQ(numbered.slice_labels.size(), 36'000U);
  EXPECT_EQ(numbered.slice_labels.front(), "Frame1: ");
  EXPECT_EQ(numbered.slice_labels.back(), "\nFrame36000: ");
  film.frames_per_slice = 2;
  const engine::VisualLayout timed = engine::timed_layout(film, slice);
  ASSERT_EQ(timed.slice_t.size(), 18'000U);
  EXPECT_EQ(timed.slice_t.back(), 4 * 17'999);
  engine::PromptPlan prompt(engine::PositionRule::kMultimodal);
  prompt.add_medium(timed);
  EXPECT_EQ(prompt.n_visual_tokens(), 18'000 * 256);
  const engine::Piece last = prompt.pieces()[17'999];
  EXPECT_EQ(last.layout.t, 4 * 17'999);
  EXPECT_EQ(last.layout.plane, 17'999);
  EXPECT_LT(prompt.n_bytes(), 100'000);  // not by the token
}

}  // namespace
}  // namespace plateau::test
