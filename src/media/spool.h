// A temporary file without a name: it disappears with its descriptor, however the process ends.
// Read and written by calls, not mapped, so that it never counts as memory of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "media/input_file.h"
#include "media/row_source.h"

namespace plateau::media {

class Spool {
 public:
  /// Errors: kUnavailable when no file can be made in `directory`.
  explicit Spool(const std::string& directory);

  /// Errors: kResourceExhausted when the disc is full.
  void write_at(int64_t offset, const uint8_t* bytes, size_t n_bytes);
  /// REQUIRES: the range was written.
  void read_at(int64_t offset, uint8_t* bytes, size_t n_bytes) const;

 private:
  std::string directory_;
  FileDescriptor fd_;
};

/// Reads `stored` to its end into a spool, turned upright from the given EXIF orientation (1 to 8),
/// and yields the upright rows from there.
std::unique_ptr<RowSource> spool_upright(RowSource& stored, int orientation,
                                         const std::string& directory);

}  // namespace plateau::media
