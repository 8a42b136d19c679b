// Tested by assets_test.cc.
#include "eval/assets.h"

#include "base/check.h"

namespace plateau::eval {

std::string_view asset_body(std::string_view name) {
  for (const Asset& asset : assets()) {
    if (asset.name != name) continue;
    const size_t open = asset.svg.find('>', asset.svg.find("<svg"));
    const size_t close = asset.svg.rfind("</svg>");
    PLATEAU_CHECK(open != std::string_view::npos && close != std::string_view::npos);
    return asset.svg.substr(open + 1, close - open - 1);
  }
  throw_error(ErrorCode::kInternal, "[needle] no drawing named '{}'", name);
}

}  // namespace plateau::eval
