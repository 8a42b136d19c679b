// Tested by tests/eval/run_file_test.cc.
#include "eval/fingerprint.h"

#include <glib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/check.h"

namespace plateau::eval {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kWhole = 64 * kMiB;
constexpr int64_t kHead = 16 * kMiB;
constexpr int64_t kSamples = 46;

struct ChecksumFree {
  void operator()(GChecksum* checksum) const { g_checksum_free(checksum); }
};
using Checksum = std::unique_ptr<GChecksum, ChecksumFree>;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

void update(GChecksum* checksum, const char* bytes, size_t n) {
  g_checksum_update(checksum, reinterpret_cast<const guchar*>(bytes), static_cast<gssize>(n));
}

void update_from(std::FILE* file, const std::string& path, int64_t begin, int64_t n,
                 GChecksum* checksum) {
  std::vector<char> buffer(static_cast<size_t>(std::min(n, kMiB)));
  bool good = fseeko(file, begin, SEEK_SET) == 0;
  while (good && n > 0) {
    const auto part = static_cast<size_t>(std::min<int64_t>(n, kMiB));
    good = std::fread(buffer.data(), 1, part, file) == part;
    update(checksum, buffer.data(), part);
    n -= static_cast<int64_t>(part);
  }
  if (!good) throw_error(ErrorCode::kNotFound, "[{}] cannot be read", path);
}

}  // namespace

std::string sha256(const std::string& bytes) {
  const Checksum checksum(g_checksum_new(G_CHECKSUM_SHA256));
  update(checksum.get(), bytes.data(), bytes.size());
  return g_checksum_get_string(checksum.get());
}

std::string file_fingerprint(const std::string& path) {
  std::error_code error;
  const auto file_size = std::filesystem::file_size(path, error);
  // What is no regular file has no size; to open a named pipe would wait for its writer.
  const std::unique_ptr<std::FILE, FileCloser> file(error ? nullptr
                                                          : std::fopen(path.c_str(), "rb"));
  if (!file) throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for reading", path);
  const auto size = static_cast<int64_t>(file_size);
  const Checksum checksum(g_checksum_new(G_CHECKSUM_SHA256));
  const std::string head = fmt::format("{}\n", size);
  update(checksum.get(), head.data(), head.size());
  if (size <= kWhole) {
    update_from(file.get(), path, 0, size, checksum.get());
  } else {
    update_from(file.get(), path, 0, kHead, checksum.get());
    const int64_t between = size - kHead - 2 * kMiB;
    for (int64_t i = 0; i < kSamples; ++i) {
      // The step first: a product with the size could overflow only beyond 10^17 bytes.
      update_from(file.get(), path, kHead + between / kSamples * i, kMiB, checksum.get());
    }
    update_from(file.get(), path, size - kMiB, kMiB, checksum.get());
  }
  return g_checksum_get_string(checksum.get());
}

}  // namespace plateau::eval
