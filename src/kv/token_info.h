// What the cache knows of a token besides its keys and values.
#pragma once

#include <cstdint>

namespace plateau::kv {

struct TokenInfo {
  int32_t position = 0;       // rotary position (the temporal one for M-RoPE)
  int32_t plane = -1;         // which picture plane its grid coordinates lie in; -1: text
  int32_t h = 0;              // row on the plane's token grid
  int32_t w = 0;              // column on it
  int32_t image = -1;         // which picture of the prompt; -1: text
  bool is_protected = false;  // never evicted
};

}  // namespace plateau::kv
