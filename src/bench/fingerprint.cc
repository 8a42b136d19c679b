#include "bench/fingerprint.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/check.h"
#include "base/fnv1a.h"
#include "model/backend.h"
#include "model/gguf_file.h"
#include "model/model_config.h"
#include "plateau/build_info.h"
#include "plateau/version.h"

namespace plateau::bench {
namespace {

/// The value of the first "NAME : VALUE" line of a file in /proc, or "unknown".
std::string proc_field(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "unknown";
}

/// Of everything before the first tensor's data.
std::string metadata_hash(const model::GgufFile& gguf) {
  uint64_t end = std::filesystem::file_size(gguf.path());
  for (const model::TensorInfo& tensor : gguf.tensors()) end = std::min(end, tensor.file_offset);
  std::string header(end, '\0');
  std::ifstream(gguf.path(), std::ios::binary)
      .read(header.data(), static_cast<std::streamsize>(header.size()));
  return fmt::format("fnv1a:{:016x}", fnv1a(header));
}

std::string main_type(const model::GgufFile& gguf) {
  std::map<ggml_type, uint64_t> n_bytes;
  for (const model::TensorInfo& tensor : gguf.tensors()) n_bytes[tensor.type] += tensor.n_bytes;
  const auto most = std::max_element(n_bytes.begin(), n_bytes.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == n_bytes.end() ? "none" : ggml_type_name(most->first);
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc = {};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string kernel() {
  utsname name = {};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

}  // namespace

Fingerprint take_fingerprint(const std::string& model_path,
                             const std::vector<std::string>& arguments) {
  const model::GgufFile gguf = model::GgufFile::open(model_path);
  const model::ModelConfig config = model::read_model_config(gguf);
  Fingerprint f;
  f.date = utc_now();
  f.command = fmt::format("{}", fmt::join(arguments, " "));
  f.cpu = proc_field("/proc/cpuinfo", "model name");
  f.n_cores = model::usable_cores();
  f.ram_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  f.kernel = kernel();
  f.compiler = PLATEAU_COMPILER;
  f.build_type = PLATEAU_BUILD_TYPE;
  f.version = PLATEAU_VERSION;
  f.commit = PLATEAU_COMMIT;
  f.llama_cpp = PLATEAU_LLAMA_CPP_TAG;
  f.model_file = std::filesystem::path(model_path).filename().string();
  f.model_bytes = static_cast<int64_t>(std::filesystem::file_size(model_path));
  f.metadata_hash = metadata_hash(gguf);
  f.arch = config.arch_name;
  f.n_layer = f.n_layer_published = config.n_layer;
  f.n_embd = config.n_embd;
  f.n_head = config.n_head;
  f.n_head_kv = config.n_head_kv;
  f.head_dim = config.head_dim;
  f.n_ff = config.n_ff;
  f.n_vocab = config.n_vocab;
  f.weight_type = main_type(gguf);
  f.run = fmt::format("{:016x}", fnv1a(fmt::format("{} {} {} {} {}", f.date, ::getpid(), f.command,
                                                   f.cpu, f.metadata_hash)));
  return f;
}

}  // namespace plateau::bench
