// A Qwen2.5-VL-type pair of random weights with the widths of the published 3B model and few
// layers, as memory does not depend on depth.
#pragma once

#include "plateau/options.h"

namespace plateau {

/// On the CPU. Writes the files (0.3 GB) on the first call.
EngineOptions wide_qwen(int n_threads);

}  // namespace plateau
