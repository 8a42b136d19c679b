// FNV-1a, 64 bits: tells texts apart, but is no protection against anyone.
// Source: Fowler, Noll and Vo, draft-eastlake-fnv.
#pragma once

#include <cstdint>
#include <string_view>

namespace plateau {

inline uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace plateau
