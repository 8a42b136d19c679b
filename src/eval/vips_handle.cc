#include "eval/vips_handle.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::eval {

void ensure_vips() {
  static const int started = vips_init("plateau");
  if (started != 0) throw_vips(ErrorCode::kInternal, "libvips does not start");
}

void throw_vips(ErrorCode code, const std::string& what) {
  std::string reason = vips_error_buffer();
  vips_error_clear();
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  while (!reason.empty() && reason.back() == ' ') reason.pop_back();
  throw_error(code, "[needle] {}: {}", what, reason);
}

}  // namespace plateau::eval
