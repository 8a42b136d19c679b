// Random models (src/synth) under the names that tests use.
#pragma once

#include "synth/gguf_plan.h"
#include "synth/tiny_gguf.h"
#include "synth/tiny_mtmd.h"
#include "synth/tiny_vocab.h"
#include "synth/weight_stream.h"

namespace plateau::test {

using namespace plateau::synth;

}  // namespace plateau::test
