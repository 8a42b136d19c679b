#include "synth/tiny_vocab.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace plateau::synth {
namespace {

constexpr int32_t kNormal = 1, kControl = 3, kUnused = 5;

constexpr const char* kSpecial[] = {
    "<|endoftext|>", "<|im_start|>",     "<|im_end|>",     "<img>",         "</img>",
    "<IMG_CONTEXT>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"};

constexpr const char* kWords[] = {
    "user",   "assistant", "What", "Which", " number", " is",   " on",   " the", " in",  " image",
    " frame", " cat",      " dog", " star", " ring",   " tree", " fish", " car", " moon"};

// GPT-2 shows every byte as a printable character: those that are printable in Latin-1 as
// themselves, the others, in order, as U+0100 and up.
std::array<std::string, 256> byte_tokens() {
  std::array<std::string, 256> tokens;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
    const int code = printable ? byte : next++;
    std::string& token = tokens[static_cast<size_t>(byte)];
    if (code < 0x80) {
      token = static_cast<char>(code);
    } else {  // two bytes of UTF-8 reach all codes up to U+07FF
      token = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
    }
  }
  return tokens;
}

template <typename T>
bool contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

const char kTinyChatTemplate[] =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}";

TinyVocab make_tiny_vocab(int n_vocab, const std::vector<std::string>& extra) {
  const std::array<std::string, 256> bytes = byte_tokens();
  TinyVocab vocab;
  vocab.tokens.assign(bytes.begin(), bytes.end());
  vocab.types.assign(bytes.size(), kNormal);
  for (const char* token : kSpecial) {
    vocab.tokens.emplace_back(token);
    vocab.types.push_back(kControl);
  }
  vocab.end_of_text = static_cast<uint32_t>(bytes.size());
  vocab.end_of_turn = vocab.end_of_text + 2;

  for (const std::string word : kWords) {
    std::string merged;
    for (const char c : word) {
      const std::string& piece = bytes[static_cast<unsigned char>(c)];
      if (!merged.empty()) {
        const std::string merge = merged + ' ' + piece;
        if (!contains(vocab.merges, merge)) vocab.merges.push_back(merge);
      }
      merged += piece;
      if (!contains(vocab.tokens, merged)) {
        vocab.tokens.push_back(merged);
        vocab.types.push_back(kNormal);
      }
    }
  }

  for (const std::string& token : extra) {
    vocab.tokens.push_back(token);
    vocab.types.push_back(kControl);
  }

  const size_t natural = vocab.tokens.size();
  const size_t n = n_vocab == 0 ? (natural + 31) / 32 * 32 : static_cast<size_t>(n_vocab);
  if (n_vocab < 0 || n < natural) {
    throw_error(ErrorCode::kInvalidArgument, "[tiny_vocab] expected n_vocab of at least {}, got {}",
                natural, n_vocab);
  }
  while (vocab.tokens.size() < n) {
    vocab.tokens.push_back(fmt::format("<|unused{}|>", vocab.tokens.size()));
    vocab.types.push_back(kUnused);
  }
  return vocab;
}

}  // namespace plateau::synth
