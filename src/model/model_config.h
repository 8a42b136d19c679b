// What a text model's GGUF says, validated: every number that a graph is built from is known to be
// sane, so that no assertion of ggml or llama.cpp can be reached from a file.
// Tested by tests/model/model_config_test.cc, model_tensors_test.cc and model_tokenizer_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/gguf_file.h"

namespace plateau::model {

enum class Architecture { kLlama, kQwen2, kQwen2VL, kQwen3 };

struct ModelConfig {
  Architecture architecture = Architecture::kQwen3;
  std::string arch_name;  // general.architecture
  std::string name;       // general.name, may be empty
  int n_layer = 0;
  int n_embd = 0;
  int n_head = 0;
  int n_head_kv = 0;  // divides n_head
  int head_dim = 0;   // of keys and values alike; even
  int n_ff = 0;
  int n_vocab = 0;
  int n_ctx_train = 0;
  float rope_freq_base = 10000.0f;
  float rope_freq_scale = 1.0f;  // 1 / linear scaling factor
  /// M-RoPE: how many of the head_dim / 2 frequency pairs turn with t, h, w, one after another;
  /// the last is 0. All 0 with 1-D rotary embedding.
  std::array<int, 4> rope_sections = {0, 0, 0, 0};
  float rms_eps = 1e-6f;
  bool tied_embeddings = false;  // no output.weight: the token embedding is used
  bool has_chat_template = false;

  /// Positions have three components (t, h, w).
  bool has_mrope() const { return architecture == Architecture::kQwen2VL; }

  /// Bytes that one token's keys and values take over all layers.
  int64_t kv_bytes_per_token(ggml_type type_k, ggml_type type_v) const;
};

/// Reads and checks metadata, tokenizer and the shape of every tensor that the decoder uses.
/// Errors: kUnsupported (architecture or rope scaling by name), kCorrupt (file, key, expected,
/// found).
ModelConfig read_model_config(const GgufFile& file);

/// The architectures that read_model_config accepts, comma separated, for messages.
std::string supported_architectures();

}  // namespace plateau::model
