#include "engine/decode.h"

#include "base/stopwatch.h"
#include "base/utf8.h"

namespace plateau::engine {

DecodeResult decode(std::vector<float> logits, const DecodeOptions& options,
                    const kv::BudgetPlan& budget, const model::Vocab& vocab,
                    model::Sampler& sampler, Sequence& sequence,
                    const std::function<void()>& on_first,
                    const std::function<void(const std::string&)>& on_text) {
  DecodeResult result;
  Utf8Stream text;
  Stopwatch since_first;
  for (int i = 0; i < options.max_new_tokens; ++i) {
    const model::Token token = sampler.sample(logits);
    if (i == 0) {
      on_first();
      since_first = Stopwatch();
    }
    ++result.n_tokens;
    if (vocab.is_end_of_generation(token)) {
      result.stop_reason = StopReason::kEndOfAnswer;
      break;
    }
    on_text(text.push(vocab.piece(token)));
    if (i + 1 == options.max_new_tokens) break;

    const Rows row = {sequence.runner().embed(std::span(&token, 1)),
                      {kv::Position::sequential(static_cast<int32_t>(options.first_position + i))}};
    const int n_past = sequence.n_held() + 1;
    const int n_keep = n_past >= budget.n_decode_limit ? budget.n_decode_keep : n_past;
    logits = sequence.append_generated(row, n_keep, options.n_recent);
  }
  on_text(text.flush());
  result.ms = since_first.ms();
  return result;
}

}  // namespace plateau::engine
