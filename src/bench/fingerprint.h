// What a measurement was made with: machine, build, model, command.
// Tested by tests/bench/record_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plateau::bench {

struct Fingerprint {
  std::string run;   // names this run in its records: 16 hexadecimal digits
  std::string date;  // UTC, ISO 8601
  std::string command;
  std::string cpu;
  int n_cores = 0;        // that this process may use
  int64_t ram_bytes = 0;  // of the machine
  std::string kernel;
  std::string compiler;
  std::string build_type;
  std::string version;
  std::string commit;  // "unknown" where the build was not made from a repository
  std::string llama_cpp;
  std::string model_file;  // without folders
  int64_t model_bytes = 0;
  std::string metadata_hash;  // FNV-1a of the GGUF header: "fnv1a:" and 16 hexadecimal digits
  std::string arch;
  int n_layer = 0;
  int n_layer_published = 0;  // of a random model that was cut; else n_layer
  int n_embd = 0;
  int n_head = 0;
  int n_head_kv = 0;
  int head_dim = 0;
  int n_ff = 0;
  int n_vocab = 0;
  std::string weight_type;  // of most bytes
};

/// Errors: those of GgufFile::open and read_model_config.
Fingerprint take_fingerprint(const std::string& model_path,
                             const std::vector<std::string>& arguments);

}  // namespace plateau::bench
