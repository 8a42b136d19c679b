// Sizes in bytes as people write them: "6GiB", "1.5 GB", "512MiB", "4096".
// Tested by tests/base/byte_size_test.cc.
#pragma once

#include <cstdint>
#include <string>

namespace plateau {

/// Units: B, KiB, MiB, GiB, TiB (powers of 1024), KB, MB, GB, TB (of 1000), K, M, G, T (of 1024),
/// in any case; none: bytes. Errors: kInvalidArgument, naming `option`.
int64_t parse_byte_size(const std::string& text, const std::string& option);

/// In the unit that leaves one to four digits before the point: "512 B", "3.2 MiB".
std::string format_byte_size(int64_t bytes);

}  // namespace plateau
