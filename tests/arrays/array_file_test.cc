#include "arrays/array_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "arrays/array_bytes.h"
#include "arrays/expect_error.h"
#include "arrays/npy.h"
#include "arrays/safetensors.h"
#include "support/temp_dir.h"

namespace plateau::arrays {
namespace {

using namespace testing;

constexpr const char* kTwoTensors =
    R"({"keys":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("values":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}})";

TEST(ArrayFile, TellsFormatsByContent) {
  const test::TempDir dir;
  write_file(dir.file("a"), npy_f32("(2,)", {1, 2}));
  write_file(dir.file("b.npy"), safetensors(kTwoTensors, std::string(16, '\0')));
  const ArrayFile npy_file(dir.file("a"));
  EXPECT_EQ(npy_file.only().shape, std::vector<int64_t>{2});
  const ArrayFile tensors(dir.file("b.npy"));
  ASSERT_NE(tensors.find_or_null("values"), nullptr);
  EXPECT_EQ(tensors.find_or_null("values")->dtype, DType::kI64);
  EXPECT_EQ(tensors.find_or_null("queries"), nullptr);
  expect_error(ErrorCode::kInvalidArgument, "keys, values", [&] { tensors.only(); });
}

TEST(ArrayFile, RefusesWhatIsNoArrayFile) {
  const test::TempDir dir;
  write_file(dir.file("empty"), "");
  write_file(dir.file("text"), "hello, hello");
  ASSERT_EQ(mkfifo(dir.file("pipe").c_str(), 0600), 0);
  const auto open = [&](const char* name) { ArrayFile file(dir.file(name)); };
  expect_error(ErrorCode::kUnsupported, "empty", [&] { open("empty"); });
  expect_error(ErrorCode::kUnsupported, "another format", [&] { open("text"); });
  expect_error(ErrorCode::kUnsupported, "regular file", [&] { open("pipe"); });
  expect_error(ErrorCode::kUnsupported, "regular file", [&] { open(""); });  // the folder
  expect_error(ErrorCode::kNotFound, "missing", [&] { open("missing"); });
}

TEST(ArrayFile, ReadsElementsThatAreNotAligned) {
  const test::TempDir dir;
  // A header of any length puts the data anywhere.
  for (int padding = 0; padding < 8; ++padding) {
    const std::string header =
        npy_header("<f8", "(2,)") + std::string(static_cast<size_t>(padding), ' ');
    write_file(dir.file("a.npy"), npy(header, bytes_of<double>({0.1, -3})));
    std::vector<double> values(2);
    ArrayFile(dir.file("a.npy")).only().read(0, std::span<double>(values));
    EXPECT_EQ(values, (std::vector<double>{0.1, -3}));
  }
}

/// xorshift: the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761U + 88172645463325252U) {}
  size_t below(size_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<size_t>(state_ % n);
  }

 private:
  uint64_t state_;
};

std::string mutated(std::string bytes, Random& random) {
  constexpr std::string_view kPieces[] = {"(",    ")",   "'", "{", "}",
                                          "[",    "]",   ",", ":", "\"",
                                          "9",    "-",   "L", ">", "99999999999999999999",
                                          "True", "\xFF"};
  for (size_t n = 1 + random.below(4); n > 0 && !bytes.empty(); --n) {
    const size_t at = random.below(bytes.size());
    switch (random.below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.insert(at, kPieces[random.below(std::size(kPieces))]);
        break;
      case 3:
        bytes.erase(at, 1 + random.below(8));
        break;
      default:
        bytes.replace(at, 1, kPieces[random.below(std::size(kPieces))]);
        break;
    }
  }
  return bytes;
}

/// Everything that a successful parse promises can be read.
void read_all(const Array& array) {
  if (array.dtype == DType::kOther) return;
  std::vector<float> values(static_cast<size_t>(array.n_elements()));
  array.read(0, std::span<float>(values));
}

TEST(ArrayFile, MutatedFilesAreReadOrRefused) {
  const std::string npy_file = npy(npy_header("<f2", "(2, 3)"), std::string(12, '\1'), 2);
  const std::string tensors = safetensors(kTwoTensors, std::string(16, '\1'));
  int n_read = 0;
  int n_refused = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed);
    const bool is_npy_turn = seed % 2 == 0;
    // Copied to the heap at its exact size, so that a sanitizer sees a read past the end.
    const std::string text = mutated(is_npy_turn ? npy_file : tensors, random);
    const std::vector<char> bytes(text.begin(), text.end());
    const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(bytes.data()),
                                          bytes.size());
    try {
      if (is_npy_turn) {
        read_all(parse_npy("a", file));
      } else {
        for (const Array& array : parse_safetensors("a", file)) read_all(array);
      }
      ++n_read;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kUnsupported)
          << error.what();
      ++n_refused;
    }
  }
  EXPECT_GT(n_read, 100);
  EXPECT_GT(n_refused, 10000);
}

}  // namespace
}  // namespace plateau::arrays
