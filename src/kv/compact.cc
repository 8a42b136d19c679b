#include "kv/compact.h"

#include <cstring>

#include "base/check.h"

namespace plateau::kv {
namespace {

/// The first kept slot that moves; before it, slot i holds row i already.
size_t first_moved(const std::vector<int32_t>& kept) {
  size_t i = 0;
  while (i < kept.size() && kept[i] == static_cast<int32_t>(i)) ++i;
  return i;
}

}  // namespace

void compact_in_place(ggml_tensor* arena, const KeptSlots& kept) {
  auto* base = static_cast<char*>(arena->data);
  for (size_t head = 0; head < kept.size(); ++head) {
    char* rows = base + head * arena->nb[2];
    for (size_t i = first_moved(kept[head]); i < kept[head].size(); ++i) {
      std::memcpy(rows + i * arena->nb[1], rows + static_cast<size_t>(kept[head][i]) * arena->nb[1],
                  arena->nb[1]);
    }
  }
}

void compact_staged(ggml_tensor* arena, const KeptSlots& kept) {
  const size_t row = arena->nb[1];
  std::vector<char> staging;
  for (size_t head = 0; head < kept.size(); ++head) {
    const size_t first = first_moved(kept[head]);
    if (first == kept[head].size()) continue;
    const auto end = static_cast<size_t>(kept[head].back()) + 1;
    staging.resize((end - first) * row);
    const size_t offset = head * arena->nb[2] + first * row;
    ggml_backend_tensor_get(arena, staging.data(), offset, staging.size());
    for (size_t i = first; i < kept[head].size(); ++i) {
      std::memmove(staging.data() + (i - first) * row,
                   staging.data() + (static_cast<size_t>(kept[head][i]) - first) * row, row);
    }
    ggml_backend_tensor_set(arena, staging.data(), offset, (kept[head].size() - first) * row);
  }
}

void compact_layer(KvCache& cache, int il, const KeptSlots& kept) {
  for (ggml_tensor* arena : {cache.k(il), cache.v(il)}) {
    PLATEAU_CHECK(static_cast<int64_t>(kept.size()) == arena->ne[2]);
    if (ggml_backend_buffer_is_host(arena->buffer)) {
      compact_in_place(arena, kept);
    } else {
      compact_staged(arena, kept);
    }
  }
}

}  // namespace plateau::kv
