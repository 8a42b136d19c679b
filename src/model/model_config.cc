#include "model/model_config.h"

#include <cmath>
#include <unordered_set>

#include "base/check.h"
#include "model/tensor_check.h"

namespace plateau::model {
namespace {

constexpr int64_t kMaxLayers = 512;  // as many as libllama has room for
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxVocab = 1 << 24;
constexpr int64_t kMaxHeadDim = 512;  // the largest that ggml's flash attention kernels take

struct ArchitectureEntry {
  const char* name;
  Architecture architecture;
  bool qkv_bias;
  bool qk_norm;
  bool mrope;
};

constexpr ArchitectureEntry kArchitectures[] = {
    {"llama", Architecture::kLlama, /*qkv_bias=*/false, /*qk_norm=*/false, /*mrope=*/false},
    {"qwen2", Architecture::kQwen2, /*qkv_bias=*/true, /*qk_norm=*/false, /*mrope=*/false},
    {"qwen2vl", Architecture::kQwen2VL, /*qkv_bias=*/true, /*qk_norm=*/false, /*mrope=*/true},
    {"qwen3", Architecture::kQwen3, /*qkv_bias=*/false, /*qk_norm=*/true, /*mrope=*/false},
};

const ArchitectureEntry& find_architecture(const GgufFile& file, const std::string& name) {
  for (const ArchitectureEntry& entry : kArchitectures) {
    if (name == entry.name) return entry;
  }
  if (name == "clip") {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a text model, got a vision projector; try passing it as --mmproj",
                file.path());
  }
  throw_error(ErrorCode::kUnsupported, "[{}] expected general.architecture to be one of {}, got {}",
              file.path(), supported_architectures(), name);
}

/// A key that some architectures store per layer: all layers must agree.
int64_t uniform_int(const GgufFile& file, const std::string& key, int64_t min, int64_t max) {
  if (file.is_array(key)) {
    const auto values = file.find_int_array(key);
    for (const int64_t value : *values) {
      if (value != values->front() || value < min || value > max) {
        throw_error(ErrorCode::kUnsupported,
                    "[{}] expected key {} to be the same in every layer, between {} and {}, got {}",
                    file.path(), key, min, max, fmt::join(*values, ", "));
      }
    }
    if (values->empty()) {
      throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to hold a value, got an empty array",
                  file.path(), key);
    }
    return values->front();
  }
  return file.get_int(key, min, max);
}

float finite_positive(const GgufFile& file, const std::string& key, double value) {
  const auto narrow = static_cast<float>(value);
  if (!std::isfinite(narrow) || narrow <= 0.0f) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to be a positive number, got {}",
                file.path(), key, value);
  }
  return narrow;
}

void read_rope(const GgufFile& file, const std::string& prefix, ModelConfig& config) {
  const std::string base_key = prefix + "rope.freq_base";
  config.rope_freq_base =
      finite_positive(file, base_key, file.find_float(base_key).value_or(10000.0));
  // As libllama reads them: a factor without a type is linear, and there is an older name for it.
  const std::string type = file.find_string(prefix + "rope.scaling.type").value_or("linear");
  if (type != "none" && type != "linear") {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected {}rope.scaling.type to be none or linear, got {}", file.path(),
                prefix, type);
  }
  for (const char* part : {"rope.scale_linear", "rope.scaling.factor"}) {
    const std::string key = prefix + part;
    if (type != "linear" || !file.has(key)) continue;
    config.rope_freq_scale = 1.0f / finite_positive(file, key, file.get_float(key));
  }
  const std::string attn_key = prefix + "rope.scaling.attn_factor";
  const double attn_factor = file.find_float(attn_key).value_or(1.0);
  if (attn_factor != 1.0) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected key {} to be 1, got {}", file.path(),
                attn_key, attn_factor);
  }
  const int64_t n_rot =
      file.find_int(prefix + "rope.dimension_count", 1, kMaxHeadDim).value_or(config.head_dim);
  if (n_rot != config.head_dim) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected {}rope.dimension_count to equal the head size {}, got {}",
                file.path(), prefix, config.head_dim, n_rot);
  }
}

/// M-RoPE (Qwen2-VL, arXiv:2409.12191): the frequency pairs of a head, split between t, h and w.
void read_rope_sections(const GgufFile& file, const std::string& prefix, ModelConfig& config) {
  const std::string key = prefix + "rope.dimension_sections";
  const auto sections = file.find_int_array(key);
  if (!sections || sections->size() != config.rope_sections.size()) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to hold 4 numbers, got {}", file.path(),
                key, sections ? sections->size() : 0);
  }
  const int64_t n_pairs = config.head_dim / 2;
  int64_t sum = 0;
  for (size_t i = 0; i < sections->size(); ++i) {
    const int64_t section = (*sections)[i];
    if (section < 0 || section > n_pairs) sum = -1;
    if (sum < 0) break;
    config.rope_sections[i] = static_cast<int>(section);
    sum += section;
  }
  if (sum != n_pairs) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected key {} to split the {} frequency pairs of a head, got {}",
                file.path(), key, n_pairs, fmt::join(*sections, ", "));
  }
  if (config.rope_sections[3] != 0) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected the fourth number of key {} to be 0 (positions are t, h, w), got {}",
                file.path(), key, config.rope_sections[3]);
  }
}

void check_tokenizer(const GgufFile& file, const ModelConfig& config) {
  const std::string kind = file.get_string("tokenizer.ggml.model");
  if (kind != "gpt2") {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected tokenizer.ggml.model to be gpt2 (byte-level BPE), got {}",
                file.path(), kind);
  }
  const auto tokens = file.find_array_size("tokenizer.ggml.tokens");
  if (!tokens || *tokens != config.n_vocab) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected tokenizer.ggml.tokens to hold {} tokens (the rows of "
                "token_embd.weight), got {}",
                file.path(), config.n_vocab, tokens.value_or(0));
  }
  const auto texts = file.find_string_array("tokenizer.ggml.tokens");
  std::unordered_set<std::string> seen;
  for (const std::string& text : *texts) {
    const auto [it, is_new] = seen.insert(text);
    if (!is_new) {
      throw_error(ErrorCode::kCorrupt,
                  "[{}] expected tokenizer.ggml.tokens to differ, got {} twice", file.path(), *it);
    }
  }
  const auto merges = file.find_string_array("tokenizer.ggml.merges");
  if (!merges) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected key tokenizer.ggml.merges, found none",
                file.path());
  }
  for (const std::string& merge : *merges) {
    if (merge.find(' ', 1) == std::string::npos) {
      throw_error(ErrorCode::kCorrupt,
                  "[{}] expected tokenizer.ggml.merges to hold pairs, got \"{}\"", file.path(),
                  merge);
    }
  }
  const auto types = file.find_int_array("tokenizer.ggml.token_type");
  if (!types || static_cast<int64_t>(types->size()) != config.n_vocab) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected tokenizer.ggml.token_type to hold {} entries, got {}", file.path(),
                config.n_vocab, types ? types->size() : 0);
  }
  for (const char* name : {"bos", "eos", "padding", "unknown", "eot", "separator"}) {
    (void)file.find_int(fmt::format("tokenizer.ggml.{}_token_id", name), 0, config.n_vocab - 1);
  }
  // libllama puts GPT-2's own in the place of these, which here are some other model's tokens.
  (void)file.get_string("tokenizer.ggml.pre");
  (void)file.get_int("tokenizer.ggml.eos_token_id", 0, config.n_vocab - 1);
  if (file.find_bool("tokenizer.ggml.add_bos_token").value_or(false)) {
    (void)file.get_int("tokenizer.ggml.bos_token_id", 0, config.n_vocab - 1);
  }
}

/// Features that libllama would apply, or assert on, and the decoders here do not have.
void refuse_other_features(const GgufFile& file, const std::string& prefix) {
  for (const char* key : {"expert_count", "expert_used_count", "expert_group_count",
                          "nextn_predict_layers", "attention.sliding_window"}) {
    const int64_t value = file.find_int(prefix + key, 0, INT32_MAX).value_or(0);
    if (value != 0) {
      throw_error(ErrorCode::kUnsupported, "[{}] expected no {}{}, got {}", file.path(), prefix,
                  key, value);
    }
  }
  if (!file.find_bool(prefix + "attention.causal").value_or(true)) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected key {}attention.causal to be true, got false", file.path(), prefix);
  }
}

void check_tensors(const GgufFile& file, const ArchitectureEntry& entry,
                   const ModelConfig& config) {
  const int64_t n_embd = config.n_embd;
  const int64_t n_q = int64_t{config.n_head} * config.head_dim;
  const int64_t n_kv = int64_t{config.n_head_kv} * config.head_dim;
  TensorCheck check(file);
  check.matrix("token_embd.weight", {n_embd, config.n_vocab});
  check.f32("output_norm.weight", {n_embd});
  if (!config.tied_embeddings) check.matrix("output.weight", {n_embd, config.n_vocab});
  for (int il = 0; il < config.n_layer; ++il) {
    const auto name = [&](const char* part) { return fmt::format("blk.{}.{}", il, part); };
    check.f32(name("attn_norm.weight"), {n_embd});
    check.matrix(name("attn_q.weight"), {n_embd, n_q});
    check.matrix(name("attn_k.weight"), {n_embd, n_kv});
    check.matrix(name("attn_v.weight"), {n_embd, n_kv});
    check.matrix(name("attn_output.weight"), {n_q, n_embd});
    if (entry.qkv_bias) {
      check.f32(name("attn_q.bias"), {n_q});
      check.f32(name("attn_k.bias"), {n_kv});
      check.f32(name("attn_v.bias"), {n_kv});
    }
    if (entry.qk_norm) {
      check.f32(name("attn_q_norm.weight"), {config.head_dim});
      check.f32(name("attn_k_norm.weight"), {config.head_dim});
    }
    check.f32(name("ffn_norm.weight"), {n_embd});
    check.matrix(name("ffn_gate.weight"), {n_embd, config.n_ff});
    check.matrix(name("ffn_up.weight"), {n_embd, config.n_ff});
    check.matrix(name("ffn_down.weight"), {config.n_ff, n_embd});
  }
  // output.bias, *.scale, rope_freqs.weight, ...: libllama would apply them.
  check.refuse_others();
}

}  // namespace

std::string supported_architectures() {
  std::string names;
  for (const ArchitectureEntry& entry : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

int64_t ModelConfig::kv_bytes_per_token(ggml_type type_k, ggml_type type_v) const {
  const size_t row = ggml_row_size(type_k, head_dim) + ggml_row_size(type_v, head_dim);
  return int64_t{n_layer} * n_head_kv * static_cast<int64_t>(row);
}

ModelConfig read_model_config(const GgufFile& file) {
  ModelConfig config;
  config.arch_name = file.get_string("general.architecture");
  const ArchitectureEntry& entry = find_architecture(file, config.arch_name);
  config.architecture = entry.architecture;
  config.name = file.find_string("general.name").value_or("");

  const std::string prefix = config.arch_name + ".";
  const auto get = [&](const std::string& key, int64_t max) {
    return static_cast<int>(file.get_int(prefix + key, 1, max));
  };
  config.n_layer = get("block_count", kMaxLayers);
  config.n_embd = get("embedding_length", kMaxWidth);
  config.n_ctx_train = get("context_length", INT32_MAX);
  config.n_ff = static_cast<int>(uniform_int(file, prefix + "feed_forward_length", 1, kMaxWidth));
  config.n_head =
      static_cast<int>(uniform_int(file, prefix + "attention.head_count", 1, kMaxWidth));
  const std::string kv_key = prefix + "attention.head_count_kv";
  config.n_head_kv = file.has(kv_key)
                         ? static_cast<int>(uniform_int(file, kv_key, 1, config.n_head))
                         : config.n_head;
  if (config.n_head % config.n_head_kv != 0) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected {} to divide attention.head_count {}, got {}",
                file.path(), kv_key, config.n_head, config.n_head_kv);
  }
  const auto key_length = file.find_int(prefix + "attention.key_length", 1, kMaxHeadDim);
  if (!key_length && config.n_embd % config.n_head != 0) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected attention.head_count {} to divide {}",
                file.path(), config.n_head, config.n_embd);
  }
  config.head_dim = static_cast<int>(key_length.value_or(config.n_embd / config.n_head));
  const int64_t value_length =
      file.find_int(prefix + "attention.value_length", 1, kMaxHeadDim).value_or(config.head_dim);
  if (value_length != config.head_dim) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected keys and values of one size, got {} and {}",
                file.path(), config.head_dim, value_length);
  }
  if (config.head_dim % 8 != 0 || config.head_dim > kMaxHeadDim) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a head size that is a multiple of 8 and at most {}, got {}",
                file.path(), kMaxHeadDim, config.head_dim);
  }
  const bool is_square =  // as libllama creates attn_q and attn_output
      config.architecture == Architecture::kQwen2 || config.architecture == Architecture::kQwen2VL;
  if (is_square && config.n_head * config.head_dim != config.n_embd) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected {} heads of {} to make {}", file.path(),
                config.n_head, config.head_dim, config.n_embd);
  }
  const std::string eps_key = prefix + "attention.layer_norm_rms_epsilon";
  config.rms_eps = finite_positive(file, eps_key, file.get_float(eps_key));
  read_rope(file, prefix, config);
  if (entry.mrope) read_rope_sections(file, prefix, config);

  const TensorInfo* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected tensor token_embd.weight, found none",
                file.path());
  }
  if (embedding->ne[1] < 1 || embedding->ne[1] > kMaxVocab) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected 1 to {} rows in token_embd.weight, got {}",
                file.path(), kMaxVocab, embedding->ne[1]);
  }
  config.n_vocab = static_cast<int>(embedding->ne[1]);
  config.tied_embeddings = file.find_tensor("output.weight") == nullptr;
  config.has_chat_template = file.find_string("tokenizer.chat_template").has_value();
  check_tokenizer(file, config);
  refuse_other_features(file, prefix);
  check_tensors(file, entry, config);
  return config;
}

}  // namespace plateau::model
