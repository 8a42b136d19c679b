// Exit codes of the command line, a contract with scripts (docs/design.md).
#pragma once

#include "plateau/error.h"

namespace plateau::cli {

inline constexpr int kExitAnswered = 0;
inline constexpr int kExitInternal = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadInput = 3;
inline constexpr int kExitDoesNotFit = 4;
inline constexpr int kExitInterrupted = 130;

inline int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return kExitUsage;
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
    case ErrorCode::kCorrupt:
      return kExitBadInput;
    case ErrorCode::kResourceExhausted:
      return kExitDoesNotFit;
    case ErrorCode::kCancelled:
      return kExitInterrupted;
    case ErrorCode::kUnavailable:
    case ErrorCode::kInternal:
      return kExitInternal;
  }
  return kExitInternal;
}

}  // namespace plateau::cli
