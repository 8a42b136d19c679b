// The vocabulary of the tiny models: byte-level BPE as Qwen2 has it, with the special tokens of the
// families that Plateau promises.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plateau::synth {

struct TinyVocab {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;       // llama.cpp's: 1 normal, 3 control, 5 unused
  std::vector<std::string> merges;  // "left right", in order of rank
  uint32_t end_of_text = 0;         // <|endoftext|>: bos and padding
  uint32_t end_of_turn = 0;         // <|im_end|>: eos
};

/// The 256 bytes, ten special tokens and a few words; padded with unused tokens to `n_vocab`, or to
/// a multiple of 32 when that is 0. `extra` are further control tokens, behind the words.
/// Errors: kInvalidArgument when n_vocab is too small.
TinyVocab make_tiny_vocab(int n_vocab = 0, const std::vector<std::string>& extra = {});

/// The chat template that goes with it (ChatML without a default system message).
extern const char kTinyChatTemplate[];

}  // namespace plateau::synth
