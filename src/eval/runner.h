// Asks an engine one question under one setting, and judges the answer.
// Tested by tests/cli/eval_command_test.cc.
#pragma once

#include <functional>
#include <string>

#include "eval/dataset.h"
#include "eval/judge.h"
#include "eval/run_record.h"
#include "plateau/engine.h"

namespace plateau::eval {

enum class JudgeKind {
  kGenerated,     // what the model writes
  kOptionLetter,  // multiple choice: the likelihood of each option's letter
  kOptionText,    // multiple choice: the likelihood of each option's text, per token
};

/// By the names "generate", "likelihood" and "likelihood-text". Errors: kInvalidArgument.
JudgeKind parse_judge(const std::string& name);
std::string to_string(JudgeKind judge);

/// What all settings share.
struct RunnerOptions {
  Request base;  // messages hold no more than a system message; kv and image are the defaults
  JudgeKind judge = JudgeKind::kGenerated;
  OpenMatch match = OpenMatch::kEqual;
};

/// Whether any question could be asked so. Errors: kInvalidArgument naming the option.
void check_options(const Setting& setting, const RunnerOptions& options);

/// The question as the engine is asked it.
Request make_request(const SetQuestion& question, const Setting& setting,
                     const RunnerOptions& options);

/// A missing or damaged picture or film, a budget that this prompt cannot be put into, and whatever
/// else is wrong with this pair alone makes a record of an error. Throws kCancelled, and what is
/// wrong with the program or the machine (kInternal, kUnavailable).
ResultRecord run_question(Engine& engine, const SetQuestion& question, const Setting& setting,
                          const RunnerOptions& options, const std::function<bool()>& should_cancel);

/// Why a record, read from a file, cannot be of this question; empty: it can.
std::string contradiction(const ResultRecord& record, const SetQuestion& question);

}  // namespace plateau::eval
