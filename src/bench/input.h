// What is fed into a measurement: prompts of exact token counts and the embeddings that go with
// them. Tested by tests/bench/input_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/bench_point.h"
#include "engine/loaded_model.h"
#include "engine/request_plan.h"
#include "engine/visual_source.h"

namespace plateau::bench {

/// Text before and after the visual tokens of a synthetic prompt; the latter is the question.
inline constexpr int kTokensBefore = 16;
inline constexpr int kTokensAfter = 32;
/// Visual tokens of one unit where no encoder says how many; the last unit may have fewer.
inline constexpr int kTokensPerUnit = 256;

/// Where a measurement gets its visual embeddings from.
class BenchUnits : public engine::UnitSource {
 public:
  virtual double encode_ms() const { return 0; }
  /// Drawing random values: no part of any measurement.
  virtual double drawing_ms() const { return 0; }
};

/// kTokensBefore random text tokens, visual units of `unit_tokens`, kTokensAfter more of text.
engine::PromptPlan synthetic_prompt(int64_t n_visual_tokens, int unit_tokens, int n_vocab,
                                    engine::PositionRule rule = engine::PositionRule::kSequential);

/// `n` token ids below n_vocab, the same at each call.
std::vector<model::Token> random_tokens(int n, int n_vocab);

/// Of frames, the images hold the film, whose path is empty; InternVL's labels are left out.
/// Errors: those of plan_request; kInvalidArgument for tiles or frames without a projector.
engine::RequestPlan plan_point(const BenchPoint& point, const engine::LoadedModel& loaded);

/// `plan` and `loaded` must outlive the units.
std::unique_ptr<BenchUnits> open_units(const BenchPoint& point, const engine::RequestPlan& plan,
                                       engine::LoadedModel& loaded);

/// Reads the rows of a prompt in order, in portions of any size.
class RowReader {
 public:
  /// `text_rows`: embeddings of the prompt's text tokens in order, [n_embd, n_text_tokens].
  /// All must outlive the reader.
  RowReader(const engine::PromptPlan& prompt, std::span<const float> text_rows, int n_embd,
            BenchUnits& units);

  /// [n_embd, n]; fewer rows at the prompt's end.
  std::vector<float> next(int n);

 private:
  void read_piece();

  const engine::PromptPlan& prompt_;
  std::span<const float> text_rows_;
  size_t n_embd_;
  BenchUnits& units_;
  size_t next_piece_ = 0;
  size_t text_begin_ = 0;  // of the next text piece, in floats
  std::vector<float> held_;
};

}  // namespace plateau::bench
