// Rows on their way into the decoder: embeddings with their positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/token_info.h"

namespace plateau::engine {

struct Rows {
  std::vector<float> embeddings;        // [n_embd, n]
  std::vector<kv::Position> positions;  // [n]

  int n() const { return static_cast<int>(positions.size()); }

  void append(std::span<const float> more_embeddings,
              std::span<const kv::Position> more_positions) {
    embeddings.insert(embeddings.end(), more_embeddings.begin(), more_embeddings.end());
    positions.insert(positions.end(), more_positions.begin(), more_positions.end());
  }

  /// Drops the oldest rows until at most n_last are left.
  void keep_last(int n_last) {
    if (n() <= n_last || n() == 0) return;
    const size_t width = embeddings.size() / positions.size();
    const auto n_drop = static_cast<std::ptrdiff_t>(n() - n_last);
    positions.erase(positions.begin(), positions.begin() + n_drop);
    embeddings.erase(embeddings.begin(),
                     embeddings.begin() + n_drop * static_cast<std::ptrdiff_t>(width));
  }
};

}  // namespace plateau::engine
