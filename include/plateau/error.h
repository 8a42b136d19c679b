// The one error type of Plateau. Everything that a caller, a file or the machine can get wrong is
// thrown as plateau::Error; programs map the code to an exit status or an HTTP status.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace plateau {

enum class ErrorCode {
  kInvalidArgument,    // an option or request field is wrong
  kNotFound,           // a file or a named thing does not exist
  kUnsupported,        // well-formed, but not something Plateau does
  kCorrupt,            // a file's content contradicts itself or its format
  kResourceExhausted,  // does not fit the memory bound or the machine
  kCancelled,          // the caller asked to stop
  kUnavailable,        // a device or service is not there now
  kInternal,           // a broken invariant: our bug
};

/// Stable lower-case name, such as "invalid_argument".
std::string_view to_string(ErrorCode code);

/// Message form: "[where] expected ..., got ...; try ...".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace plateau
