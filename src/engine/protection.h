// Which tokens of a prompt are never evicted. Pure.
// Tested by tests/engine/protection_test.cc.
#pragma once

#include <cstdint>

#include "engine/prompt_plan.h"
#include "kv/token_info.h"

namespace plateau::engine {

/// The first tokens of a sequence hold attention that has nowhere else to go (StreamingLLM,
/// arXiv:2309.17453).
inline constexpr int kSinks = 4;

/// Always kept: the first kSinks tokens, markers of pictures and films, and text, but not the
/// labels of a film's pictures, of which there may be as many as there are frames. Text longer than
/// a limit keeps its latest tokens only; the rest competes by score.
struct Protection {
  bool is_needed = false;        // something may be evicted
  int64_t first_kept_text = 0;   // text from this token on is kept
  int64_t n_evictable_text = 0;  // text before it
  int n_protected = 0;

  bool covers(PieceKind kind, int64_t token) const {
    return is_needed && (token < kSinks || kind == PieceKind::kMarker ||
                         (kind == PieceKind::kText && token >= first_kept_text));
  }
};

/// The limit is half the budget, but at least `n_window` tokens. `budget` 0: nothing is evicted,
/// nothing needs protection.
Protection protect(const PromptPlan& prompt, int budget, int n_window);

/// The smallest budget that holds everything it protects (which grows with it).
int smallest_budget(const PromptPlan& prompt, int n_window);

/// A prompt's tokens as the cache sees them, worked out when asked.
class PromptTokens final : public kv::TokenTable {
 public:
  /// `prompt` must outlive the table.
  PromptTokens(const PromptPlan& prompt, const Protection& protection)
      : prompt_(prompt), protection_(protection) {}

  int64_t size() const override { return prompt_.n_tokens(); }
  kv::TokenInfo at(int64_t token) const override;

 private:
  const PromptPlan& prompt_;
  Protection protection_;
};

}  // namespace plateau::engine
