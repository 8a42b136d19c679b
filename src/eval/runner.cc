#include "eval/runner.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "base/memory.h"
#include "base/stopwatch.h"
#include "engine/request_plan.h"
#include "eval/readers/readers.h"

namespace plateau::eval {
namespace {

/// What the engine takes; the one place that knows.
ContentPart media_part(const MediaItem& item) {
  switch (item.kind) {
    case MediaKind::kVideo:
      return VideoPart{item.path};
    case MediaKind::kFrames:
      return VideoPart{item.path, /*is_frame_list=*/true};
    case MediaKind::kImage:
      break;
  }
  return ImagePart{item.path};
}

Request request_under(const Setting& setting, const RunnerOptions& options) {
  Request request = options.base;
  request.kv.policy = setting.policy;
  request.kv.budget = setting.budget;
  request.kv.block_unit = setting.block_unit;
  request.kv.block = setting.block;
  request.kv.bulk = setting.bulk;
  request.kv.strict = setting.strict;
  request.image.max_visual_tokens = setting.resize;
  return request;
}

std::string expected_answer(const SetQuestion& question) {
  if (question.is_multiple_choice()) {
    return question.has_letters ? option_letter(question.right_choice)
                                : question.choices[static_cast<size_t>(question.right_choice)];
  }
  std::string text;
  for (const std::string& answer : question.answers) {
    text += (text.empty() ? "" : question.is_list ? ", " : " | ") + answer;
  }
  return text;
}

/// Of the files that the question names; none when one is gone.
std::optional<int64_t> media_bytes(const SetQuestion& question) {
  int64_t sum = 0;
  for (const MediaItem& item : question.media) {
    std::error_code error;
    if (std::filesystem::is_directory(item.path, error)) continue;
    const auto size = std::filesystem::file_size(item.path, error);
    if (error) return {};
    sum += static_cast<int64_t>(size);
  }
  return sum;
}

std::optional<KeptNeedle> kept_needle(const std::vector<RegionReport>& regions) {
  if (regions.empty()) return {};
  KeptNeedle kept;
  const auto n_layer = static_cast<size_t>(regions.front().n_layer);
  const auto n_head = static_cast<size_t>(regions.front().n_head_kv);
  kept.any_share.resize(n_layer);
  kept.token_share.resize(n_layer);
  const double n = static_cast<double>(n_head) * static_cast<double>(regions.size());
  for (const RegionReport& region : regions) {
    kept.tokens += region.tokens;
    if (region.tokens == 0) continue;  // no frame that was looked at shows it: nothing was kept
    for (size_t pair = 0; pair < region.tokens_kept.size(); ++pair) {
      const int32_t n_kept = region.tokens_kept[pair];
      kept.any_share[pair / n_head] += (n_kept > 0 ? 1.0 : 0.0) / n;
      kept.token_share[pair / n_head] +=
          static_cast<double>(n_kept) / static_cast<double>(region.tokens) / n;
    }
  }
  return kept;
}

Verdict judge(const SetQuestion& question, const Answer& answer, const RunnerOptions& options,
              std::vector<double>& log_probs) {
  if (answer.continuations.empty()) return judge_text(question, answer.text, options.match);
  std::vector<double> likelihoods;
  for (const ContinuationLikelihood& continuation : answer.continuations) {
    log_probs.push_back(continuation.log_prob);
    likelihoods.push_back(continuation.log_prob / continuation.n_tokens);
  }
  return judge_likelihood(question, likelihoods);
}

/// To microseconds, so that a record is the same whether it was read from a file or not.
double rounded(double ms) { return std::round(ms * 1000) / 1000; }

void answer(Engine& engine, const SetQuestion& question, const RunnerOptions& options,
            const Request& request, const std::function<bool()>& should_cancel,
            ResultRecord& record) {
  // Freed arenas of the setting before would count against this one.
  ::malloc_trim(0);
  AnonWatch anon;
  const Stopwatch watch;
  RequestCallbacks callbacks;
  callbacks.should_cancel = should_cancel;
  const Answer answer = engine.run(request, callbacks);
  record.total_ms = rounded(watch.ms());
  record.peak_anon_bytes = anon.peak_bytes();
  const Usage& usage = answer.usage;
  record.answer = answer.text;
  const Verdict verdict = judge(question, answer, options, record.log_probs);
  record.score = verdict.score;
  record.right = verdict.right();
  if (question.is_multiple_choice()) record.choice = verdict.choice;
  record.needle = kept_needle(usage.regions);
  record.media_bytes = media_bytes(question).value_or(0);
  record.prompt_tokens = usage.prompt_tokens;
  record.visual_tokens = usage.visual_tokens;
  record.blocks = usage.blocks;
  record.kept_tokens = usage.prompt_tokens - usage.evicted_tokens;
  record.kv_bytes = usage.kv_bytes;
  record.encoded_tiles = usage.encoded_tiles;
  record.encode_ms = rounded(usage.encode_ms);
  record.prefill_ms = rounded(usage.prefill_ms);
  record.ttft_ms = rounded(usage.ttft_ms);
}

}  // namespace

Request make_request(const SetQuestion& question, const Setting& setting,
                     const RunnerOptions& options) {
  Request request = request_under(setting, options);
  Message user{"user", {}};
  for (const PromptPart& part : question.prompt) {
    if (part.media >= 0) {
      user.content.push_back(media_part(question.media[static_cast<size_t>(part.media)]));
    } else {
      user.content.emplace_back(TextPart{part.text});
    }
  }
  request.messages.push_back(std::move(user));
  for (const NeedleBox& needle : question.needles) {
    request.regions.push_back({.image = needle.media,
                               .x = needle.x,
                               .y = needle.y,
                               .width = needle.width,
                               .height = needle.height,
                               .start_s = needle.start_s,
                               .end_s = needle.end_s});
  }
  if (options.judge != JudgeKind::kGenerated && question.is_multiple_choice()) {
    const bool by_text = options.judge == JudgeKind::kOptionText;
    for (size_t i = 0; i < question.choices.size(); ++i) {
      const std::string& text = question.choices[i];
      // An option without text is a picture, which only its letter stands for.
      const bool use_text = !text.empty() && (by_text || !question.has_letters);
      request.continuations.push_back(use_text ? text : option_letter(static_cast<int>(i)));
    }
    request.max_new_tokens = 1;
  }
  return request;
}

JudgeKind parse_judge(const std::string& name) {
  for (const JudgeKind judge :
       {JudgeKind::kGenerated, JudgeKind::kOptionLetter, JudgeKind::kOptionText}) {
    if (name == to_string(judge)) return judge;
  }
  throw_error(ErrorCode::kInvalidArgument,
              "[--judge] expected generate, likelihood or likelihood-text, got '{}'", name);
}

std::string to_string(JudgeKind judge) {
  switch (judge) {
    case JudgeKind::kGenerated:
      return "generate";
    case JudgeKind::kOptionLetter:
      return "likelihood";
    case JudgeKind::kOptionText:
      return "likelihood-text";
  }
  return "";
}

void check_options(const Setting& setting, const RunnerOptions& options) {
  engine::check_request_options(request_under(setting, options));
}

ResultRecord run_question(Engine& engine, const SetQuestion& question, const Setting& setting,
                          const RunnerOptions& options,
                          const std::function<bool()>& should_cancel) {
  ResultRecord record;
  record.id = question.id;
  record.kind = question.kind;
  record.setting = setting;
  record.expected = expected_answer(question);
  try {
    const Request request = make_request(question, setting, options);
    answer(engine, question, options, request, should_cancel, record);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kInternal ||
        error.code() == ErrorCode::kUnavailable) {
      throw;
    }
    record.is_error = true;
    record.error_code = std::string(to_string(error.code()));
    record.error_message = error.what();
  }
  return record;
}

std::string contradiction(const ResultRecord& record, const SetQuestion& question) {
  if (record.kind != question.kind) {
    return fmt::format("field kind: expected '{}', as in the set, got '{}'", question.kind,
                       record.kind);
  }
  if (record.is_error) return "";
  const std::string expected = expected_answer(question);
  if (record.expected != expected) {
    return fmt::format("field expected: expected '{}', as in the set, got '{}'", expected,
                       record.expected);
  }
  const std::optional<int64_t> bytes = media_bytes(question);
  if (bytes && record.media_bytes != *bytes) {
    return fmt::format(
        "field media_bytes: expected {}, the size of this question's pictures and films, got {}; "
        "they have changed since it was asked: choose another file, or delete this one",
        *bytes, record.media_bytes);
  }
  if (record.choice.has_value() != question.is_multiple_choice()) {
    return fmt::format("field choice: expected {}, got {}",
                       question.is_multiple_choice() ? "an option's index" : "null",
                       record.choice ? fmt::format("{}", *record.choice) : "null");
  }
  if (!record.choice) return "";
  const auto n_choices = static_cast<int>(question.choices.size());
  if (*record.choice >= n_choices) {
    return fmt::format("field choice: expected less than {}, got {}", n_choices, *record.choice);
  }
  const bool is_right = *record.choice == question.right_choice;
  if (record.right != is_right) {
    return fmt::format("field right: expected {} for the choice {}, got {}", is_right,
                       *record.choice, record.right);
  }
  return "";
}

}  // namespace plateau::eval
