#include "report/picture.h"

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/check.h"

namespace plateau::report {
namespace {

constexpr size_t kMaxBytes = size_t{32} << 20;

const char* media_type(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xff\xd8\xff")) return "image/jpeg";
  if (bytes.starts_with("RIFF") && bytes.substr(8).starts_with("WEBP")) return "image/webp";
  return nullptr;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      const bool is_padding = i + j > bytes.size();
      text += is_padding ? '=' : kDigits[bits >> (18 - 6 * j) & 63U];
    }
  }
  return text;
}

std::string picture_uri(const std::string& path) {
  std::error_code ignored;
  std::ifstream file;
  if (!std::filesystem::is_fifo(path, ignored)) file.open(path, std::ios::binary);
  if (!file.is_open()) throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for reading", path);
  std::string bytes(kMaxBytes + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (bytes.size() > kMaxBytes) {
    throw_error(ErrorCode::kInvalidArgument, "[{}] expected at most 32 MiB; try a smaller picture",
                path);
  }
  const char* type = media_type(bytes);
  if (type == nullptr) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected a PNG, JPEG or WebP picture", path);
  }
  return fmt::format("data:{};base64,{}", type, base64(bytes));
}

}  // namespace plateau::report
