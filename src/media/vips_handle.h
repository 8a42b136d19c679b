// Owners of libvips objects. Everything from GLib that needs a cast or a macro stays in this file.
#pragma once

#include <vips/vips.h>

#include <cstdint>
#include <memory>

namespace plateau::media {

struct ObjectUnref {
  void operator()(gpointer object) const { g_object_unref(object); }
};

using VipsImagePtr = std::unique_ptr<VipsImage, ObjectUnref>;
using VipsRegionPtr = std::unique_ptr<VipsRegion, ObjectUnref>;
using VipsSourcePtr = std::unique_ptr<VipsSource, ObjectUnref>;

/// Runs a libvips operation that writes its result through a VipsImage**; null when it failed.
template <typename Operation>
VipsImagePtr vips_result(const Operation& operation) {
  VipsImage* out = nullptr;
  if (operation(&out) != 0) {
    if (out != nullptr) g_object_unref(out);
    return nullptr;
  }
  return VipsImagePtr(out);
}

/// REQUIRES: (0, y) lies in the area last prepared.
inline const uint8_t* region_row(VipsRegion* region, int y) {
  return VIPS_REGION_ADDR(region, 0, y);
}

}  // namespace plateau::media
