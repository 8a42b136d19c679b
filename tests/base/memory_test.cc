#include "base/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>

namespace plateau {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 20;
// The kernel counts in batches per thread, and the process allocates beside the test.
constexpr int64_t kSlackBytes = int64_t{8} << 20;

/// Touched anonymous memory that goes back to the kernel at once, whatever the allocator does.
class AnonBlock {
 public:
  AnonBlock()
      : data_(::mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                     0)) {
    EXPECT_NE(data_, MAP_FAILED);
    std::memset(data_, 1, kBlockBytes);
  }
  ~AnonBlock() { ::munmap(data_, kBlockBytes); }
  AnonBlock(const AnonBlock&) = delete;
  AnonBlock& operator=(const AnonBlock&) = delete;

 private:
  void* data_;
};

TEST(AnonBytes, FollowsWhatIsTouchedAndReturned) {
  const int64_t before = anon_bytes();
  ASSERT_GT(before, 0);
  {
    const AnonBlock block;
    EXPECT_GT(anon_bytes(), before + int64_t{kBlockBytes} - kSlackBytes);
  }
  EXPECT_LT(anon_bytes(), before + kSlackBytes);
}

TEST(PeakRss, NeverFalls) {
  int64_t with_block = 0;
  {
    const AnonBlock block;
    with_block = peak_rss_bytes();
    EXPECT_GT(with_block, anon_bytes() - kSlackBytes);
  }
  EXPECT_GE(peak_rss_bytes(), with_block - kSlackBytes);
}

TEST(AnonWatch, RemembersAPeakThatIsGone) {
  AnonWatch watch;
  const int64_t before = watch.peak_bytes();
  int64_t peak = 0;
  {
    const AnonBlock block;
    peak = watch.peak_bytes();
    EXPECT_GT(peak, before + int64_t{kBlockBytes} / 2);
  }
  EXPECT_GE(watch.peak_bytes(), peak);
  EXPECT_LT(AnonWatch().peak_bytes(), peak - int64_t{kBlockBytes} / 2);  // a new one starts afresh
}

}  // namespace
}  // namespace plateau
