#pragma once

#include <utility>
#include <vector>

namespace plateau {

/// Empties a vector and gives its memory back, now. `v = {}` and clear() keep it.
template <typename T>
void release(std::vector<T>& vector) {
  std::vector<T>().swap(vector);
}

}  // namespace plateau
