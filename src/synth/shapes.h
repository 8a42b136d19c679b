// Random-weight models in the published shapes of real ones, so that speed and memory can be
// measured without a download. Speed does not depend on the weights' values. Tested by
// tests/bench/shapes_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "synth/tiny_gguf.h"

namespace plateau::synth {

struct Shape {
  const char* name;
  const char* summary;  // one line, for help
  TinyTextModel text;
  std::optional<TinyVision> vision;  // where the tower is one that TinyVision describes
};

/// In ascending order of size.
std::span<const Shape> shapes();

/// Errors: kInvalidArgument (the nearest name is suggested).
const Shape& find_shape(const std::string& name);

/// "q8_0", "q4_0" or "f16". Errors: kInvalidArgument.
ggml_type parse_weight_type(const std::string& name);

struct ShapeFile {
  std::string path;
  bool was_made = false;  // false: it was there
  int n_layer = 0;
  int n_layer_published = 0;
};

struct ShapeRequest {
  std::string shape;
  std::string type = "q8_0";  // of the matrices
  int n_layer = 0;            // 0: as published; fewer: widths stay, depth is cut
  std::string folder;         // is made where it does not exist
  /// Called with the bytes to be written before a file is made.
  std::function<void(const std::string& path, int64_t n_bytes)> on_write = {};
  std::function<bool()> should_cancel = {};  // polled while writing
};

/// The file of the shape's text model, made on first use: written to a file of this process's own
/// and renamed, so that an interruption leaves nothing that looks whole.
/// Errors: kInvalidArgument (name, type, more layers than published), kResourceExhausted (the disk
/// has less room than the file needs), kUnavailable (the folder cannot be written, disk full),
/// kCancelled.
ShapeFile make_text_shape(const ShapeRequest& request);

/// The same for its vision projector, f16, never cut.
/// Errors: as above; kUnsupported when the shape has none.
ShapeFile make_vision_shape(const ShapeRequest& request);

}  // namespace plateau::synth
