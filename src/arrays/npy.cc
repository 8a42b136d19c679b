#include "arrays/npy.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace plateau::arrays {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// A header of three entries has no use for more; numpy itself warns beyond 10000 bytes.
constexpr size_t kMaxHeaderBytes = size_t{1} << 20;

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> is_fortran;
  std::optional<std::vector<int64_t>> shape;
};

/// The subset of Python literals that numpy writes: {'descr': '<f4', 'fortran_order': False,
/// 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(const std::string& where, std::string_view text) : where_(where), rest_(text) {}

  Header parse() {
    Header header;
    expect('{', "a dictionary");
    while (!accept('}')) {
      const std::string key = string();
      expect(':', "':' after a key");
      if (key == "descr") {
        header.descr = element_type();
      } else if (key == "fortran_order") {
        header.is_fortran = boolean();
      } else if (key == "shape") {
        header.shape = tuple();
      } else {
        fail("the keys descr, fortran_order and shape");
      }
      if (!accept(',')) {
        expect('}', "',' or '}' after a value");
        break;
      }
    }
    skip_space();
    if (!rest_.empty()) fail("nothing after the dictionary");
    if (!header.descr || !header.is_fortran || !header.shape) {
      fail("the keys descr, fortran_order and shape");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    throw_error(ErrorCode::kCorrupt, "[{}] expected {} in the .npy header, got another text",
                where_, expected);
  }

  void skip_space() {
    const size_t n = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(n == std::string_view::npos ? rest_.size() : n);
  }

  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c, const char* expected) {
    if (!accept(c)) fail(expected);
  }

  std::string string() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) fail("a string");
    const size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) fail("a string");
    std::string result(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return result;
  }

  std::string element_type() {
    skip_space();
    if (!rest_.empty() && rest_.front() == '[') {
      throw_error(ErrorCode::kUnsupported, "[{}] expected one element type, got a structured one",
                  where_);
    }
    return string();
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true},
                                      std::pair<std::string_view, bool>{"False", false}}) {
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    }
    fail("True or False");
  }

  std::vector<int64_t> tuple() {
    constexpr size_t kMaxRank = 32;  // numpy's own
    std::vector<int64_t> shape;
    expect('(', "a tuple");
    while (!accept(')')) {
      skip_space();
      int64_t dim = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
      if (error != std::errc() || dim < 0) fail("dimensions that fit 63 bits");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      accept('L');  // Python 2 wrote long integers so
      shape.push_back(dim);
      if (shape.size() > kMaxRank) fail("at most 32 dimensions");
      if (!accept(',')) {
        expect(')', "',' or ')' after a dimension");
        break;
      }
    }
    return shape;
  }

  const std::string& where_;
  std::string_view rest_;
};

struct ElementType {
  const char* descr;
  DType dtype;
  int n_bytes;
};

constexpr ElementType kElementTypes[] = {
    {"<f2", DType::kF16, 2}, {"<f4", DType::kF32, 4}, {"<f8", DType::kF64, 8},
    {"<i4", DType::kI32, 4}, {"<i8", DType::kI64, 8},
};

const ElementType& find_type(const std::string& where, const std::string& descr) {
  for (const ElementType& type : kElementTypes) {
    if (descr == type.descr) return type;
  }
  if (descr.starts_with('>')) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected little-endian elements, got '{}'; try .astype('<{}')", where, descr,
                descr.substr(1));
  }
  if (descr.starts_with("|O")) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected numbers, got Python objects ('{}')", where,
                descr);
  }
  throw_error(ErrorCode::kUnsupported, "[{}] expected <f2, <f4, <f8, <i4 or <i8 elements, got '{}'",
              where, descr);
}

/// Little endian. REQUIRES: bytes.size() <= 8.
size_t read_length(std::span<const std::byte> bytes) {
  size_t length = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    length |= std::to_integer<size_t>(bytes[i]) << (8 * i);
  }
  return length;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool is_npy(std::span<const std::byte> file) { return as_text(file).starts_with(kMagic); }

Array parse_npy(const std::string& where, std::span<const std::byte> file) {
  if (!is_npy(file)) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a .npy file, got other bytes", where);
  }
  const size_t version_at = kMagic.size();
  if (file.size() < version_at + 2) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a .npy header, the file ends before it", where);
  }
  const int major = std::to_integer<int>(file[version_at]);
  const int minor = std::to_integer<int>(file[version_at + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected .npy version 1.0, 2.0 or 3.0, got {}.{}",
                where, major, minor);
  }
  const size_t length_at = version_at + 2;
  const size_t header_at = length_at + (major == 1 ? 2 : 4);
  if (file.size() < header_at) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a .npy header, the file ends before it", where);
  }
  const size_t header_bytes = read_length(file.subspan(length_at, header_at - length_at));
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.size() - header_at) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected a .npy header of at most {} bytes, got one of {}", where,
                std::min(kMaxHeaderBytes, file.size() - header_at), header_bytes);
  }
  const Header header = HeaderParser(where, as_text(file.subspan(header_at, header_bytes))).parse();
  const ElementType& type = find_type(where, *header.descr);

  Array array;
  array.where = where;
  array.shape = *header.shape;
  array.dtype = type.dtype;
  array.dtype_name = *header.descr;
  array.bytes = file.subspan(header_at + header_bytes);
  // The order of a vector's elements is the same in both.
  if (*header.is_fortran && array.shape.size() > 1) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected C order, got Fortran order; try numpy.ascontiguousarray", where);
  }
  const std::optional<int64_t> n = count_elements(array.shape);
  const auto n_data = static_cast<int64_t>(array.bytes.size());
  if (!n || *n > n_data / type.n_bytes || *n * type.n_bytes != n_data) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected the data of a {} array of shape {}, got {} bytes", where,
                *header.descr, shape_text(array.shape), n_data);
  }
  return array;
}

}  // namespace plateau::arrays
