// Everything that is loaded once: backends, text model, vision encoder, chat template.
#pragma once

#include <functional>
#include <optional>

#include "engine/film_plan.h"
#include "model/backend.h"
#include "model/chat_template.h"
#include "model/language_model.h"
#include "plateau/options.h"
#include "vision/encoder.h"

namespace plateau::engine {

/// Errors: kInvalidArgument naming the option. What depends on the files and devices is left to
/// LoadedModel.
void check_engine_options(const EngineOptions& options);

struct LoadedModel {
  EngineOptions options;
  model::Backends backends;
  model::LanguageModel language_model;
  std::optional<vision::Encoder> encoder;
  std::optional<model::ChatTemplate> chat_template;
  /// Films that requests have opened; only saves time.
  mutable FilmProbes film_probes;

  /// Errors: those of Engine::open.
  LoadedModel(const EngineOptions& engine_options, const std::function<bool(float)>& on_progress,
              model::WeightUse use = model::WeightUse::kCompute);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  /// Tiles encoded at once, within EngineOptions::encoder_memory; 1 for a family without tiles.
  /// REQUIRES: an encoder. Errors: kResourceExhausted.
  int encoder_batch() const;
};

}  // namespace plateau::engine
