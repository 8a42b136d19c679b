// Plateau's engine: one loaded model that answers requests, one at a time.
//
// Not thread-safe: calls must not overlap. A request that throws leaves the engine usable.
#pragma once

#include <memory>

#include "plateau/error.h"
#include "plateau/options.h"
#include "plateau/request.h"

namespace plateau {

class Engine {
 public:
  /// Loads the model. `on_progress` (may be empty) sees 0..1; returning false stops with
  /// kCancelled. Errors: kNotFound, kCorrupt, kUnsupported, kInvalidArgument (files that do not
  /// belong together), kResourceExhausted.
  static Engine open(const EngineOptions& options,
                     const std::function<bool(float)>& on_progress = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Errors: those of the media files; kInvalidArgument; kResourceExhausted; kCancelled.
  Answer run(const Request& request, const RequestCallbacks& callbacks = {});

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plateau
