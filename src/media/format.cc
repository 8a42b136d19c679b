// Tested by formats_test.cc.
#include "media/format.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "media/vips_handle.h"
#include "media/vips_session.h"

namespace plateau::media {
namespace {

constexpr ImageFormat kJpeg{"jpeg", "jpegload_source", false};
constexpr ImageFormat kPng{"png", "pngload_source", false};
constexpr ImageFormat kTiff{"tiff", "tiffload_source", false};
constexpr ImageFormat kWebp{"webp", "webpload_source", true};
constexpr ImageFormat kGif{"gif", "gifload_source", true};
constexpr ImageFormat kHeic{"heic", "heifload_source", true};
constexpr ImageFormat kAvif{"avif", "heifload_source", true};

constexpr size_t kHeadBytes = 4096;
constexpr std::string_view kTgaFooter = "TRUEVISION-XFILE.";
constexpr int64_t kTgaFooterOffset = -18;

struct Signature {
  size_t offset;
  std::string_view bytes;
  const ImageFormat* format;  // null: recognised in order to be refused by name
  const char* name;
};

using namespace std::string_view_literals;

constexpr std::array kSignatures{
    Signature{0, "\xff\xd8\xff"sv, &kJpeg, "JPEG"},
    Signature{0, "\x89PNG\r\n\x1a\n"sv, &kPng, "PNG"},
    Signature{0, "GIF87a"sv, &kGif, "GIF"},
    Signature{0, "GIF89a"sv, &kGif, "GIF"},
    Signature{8, "WEBP"sv, &kWebp, "WebP"},
    Signature{0, "II*\0"sv, &kTiff, "TIFF"},
    Signature{0, "MM\0*"sv, &kTiff, "TIFF"},
    Signature{0, "II+\0"sv, &kTiff, "TIFF"},
    Signature{0, "MM\0+"sv, &kTiff, "TIFF"},
    Signature{4, "ftypavif"sv, &kAvif, "AVIF"},
    Signature{4, "ftypavis"sv, &kAvif, "AVIF"},
    Signature{4, "ftyphei"sv, &kHeic, "HEIC"},
    Signature{4, "ftyphev"sv, &kHeic, "HEIC"},
    Signature{4, "ftypmif1"sv, &kHeic, "HEIF"},
    Signature{4, "ftypmsf1"sv, &kHeic, "HEIF"},
    Signature{4, "ftyp"sv, nullptr, "MP4 video"},
    Signature{0, "BM"sv, nullptr, "BMP"},
    Signature{0, "%PDF"sv, nullptr, "PDF"},
    Signature{0, "8BPS"sv, nullptr, "Photoshop"},
    Signature{0, "\x76\x2f\x31\x01"sv, nullptr, "OpenEXR"},
    Signature{0, "\xff\x0a"sv, nullptr, "JPEG XL"},
    Signature{4, "JXL \r\n\x87\n"sv, nullptr, "JPEG XL"},
    Signature{4, "jP  \r\n\x87\n"sv, nullptr, "JPEG 2000"},
    Signature{0, "\xff\x4f\xff\x51"sv, nullptr, "JPEG 2000"},
    Signature{0, "\x1a\x45\xdf\xa3"sv, nullptr, "Matroska video"},
    Signature{0, "\0\0\1\0"sv, nullptr, "ICO"},
    Signature{0, "P4"sv, nullptr, "PBM"},
    Signature{0, "P5"sv, nullptr, "PGM"},
    Signature{0, "P6"sv, nullptr, "PPM"},
};

// SVG and HTML have no fixed first bytes: comments and an XML prologue may stand before the root.
const char* markup_name(std::string_view head) {
  constexpr std::string_view kSkipped = "\xef\xbb\xbf \t\r\n";
  const size_t start = head.find_first_not_of(kSkipped);
  if (start == std::string_view::npos || head[start] != '<') return nullptr;
  if (head.find("<svg") != std::string_view::npos) return "SVG";
  if (head.find("<html") != std::string_view::npos || head.find("<HTML") != std::string_view::npos)
    return "HTML";
  return "XML";
}

[[noreturn]] void refuse(const std::string& path, std::string_view name) {
  throw_error(ErrorCode::kUnsupported,
              "[image] expected JPEG, PNG, WebP, GIF, TIFF, HEIC or AVIF, got {} in '{}'; try "
              "converting it to PNG",
              name, path);
}

}  // namespace

const ImageFormat& detect_format(const InputFile& file) {
  const std::vector<uint8_t> bytes = file.read_at(0, kHeadBytes);
  const std::string head(bytes.begin(), bytes.end());
  for (const Signature& signature : kSignatures) {
    if (head.compare(std::min(signature.offset, head.size()), signature.bytes.size(),
                     signature.bytes) != 0) {
      continue;
    }
    if (signature.format == nullptr) refuse(file.path(), signature.name);
    const VipsSession session;
    if (vips_type_find("VipsOperation", signature.format->loader) == 0) {
      refuse(file.path(),
             fmt::format("{} (which the installed libvips cannot read)", signature.name));
    }
    return *signature.format;
  }
  if (const char* name = markup_name(head); name != nullptr) refuse(file.path(), name);
  const std::vector<uint8_t> tail = file.read_at(kTgaFooterOffset, kTgaFooter.size());
  if (std::equal(tail.begin(), tail.end(), kTgaFooter.begin(), kTgaFooter.end())) {
    refuse(file.path(), "TGA");
  }
  refuse(file.path(), "an unknown format");
}

}  // namespace plateau::media
