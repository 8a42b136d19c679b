#pragma once

namespace plateau::test {

/// Whether the process's memory is the program's own. AddressSanitizer keeps freed memory in its
/// quarantine, so that what a process holds grows from call to call: tests of measured bytes skip.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kMemoryIsOurs = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kMemoryIsOurs = false;
#else
inline constexpr bool kMemoryIsOurs = true;
#endif
#else
inline constexpr bool kMemoryIsOurs = true;
#endif

}  // namespace plateau::test
