// Ownership and errors at the border to libvips. Include only from the sources of this layer.
#pragma once

#include <vips/vips.h>

#include <memory>
#include <string>

#include "plateau/error.h"

namespace plateau::eval {

struct VipsUnref {
  void operator()(void* object) const { g_object_unref(object); }
};
using VipsImagePtr = std::unique_ptr<VipsImage, VipsUnref>;
using VipsRegionPtr = std::unique_ptr<VipsRegion, VipsUnref>;
using VipsSourcePtr = std::unique_ptr<VipsSource, VipsUnref>;

/// Starts libvips on first use. Thread-safe.
void ensure_vips();

/// Throws with libvips' own last words, which are cleared.
[[noreturn]] void throw_vips(ErrorCode code, const std::string& what);

}  // namespace plateau::eval
