#include "base/check.h"

namespace plateau {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

namespace internal {

void check_failed(const char* condition, const char* file, int line) {
  const std::string_view path(file);
  throw_error(ErrorCode::kInternal,
              "[{}:{}] expected {}; this is a bug in Plateau, please report it",
              path.substr(path.rfind('/') + 1), line, condition);
}

}  // namespace internal
}  // namespace plateau
