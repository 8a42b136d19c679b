// Pictures inside a page. Tested by tests/report/report_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace plateau::report {

/// RFC 4648, with padding.
std::string base64(std::string_view bytes);

/// The file as a data URI. Errors: kNotFound; kUnsupported (not PNG, JPEG or WebP, by content);
/// kInvalidArgument (over 32 MiB).
std::string picture_uri(const std::string& path);

}  // namespace plateau::report
