// What each picture and film of a request becomes, before its pixels are read.
#pragma once

#include <vector>

#include "engine/visual_layout.h"
#include "engine/visual_source.h"
#include "model/vision_config.h"
#include "plateau/request.h"

namespace plateau::engine {

media::ImageLimits to_limits(const ImageOptions& options);

/// What the encoder may use.
struct EncoderLimits {
  int64_t memory_bytes = 0;  // 0: no bound
  int n_threads = 1;
};

/// One entry per ImagePart and VideoPart, in prompt order. Errors: those of media::probe_image,
/// plan_film, vision::plan_encode and MtmdEncoder::lay_out; kInvalidArgument for an option that
/// cannot be kept, or that the projector's family does not have.
std::vector<PlannedImage> plan_images(const Request& request, const vision::Encoder& encoder,
                                      const EncoderLimits& limits, FilmProbes& probes);

VisualLayout layout_of(const PlannedImage& image, const model::VisionConfig& vision);
ImageReport report_of(const PlannedImage& image, const model::VisionConfig& vision);

/// What a person should know about how the picture or film was changed or cut.
std::vector<std::string> image_notes(const ImageReport& report, const PlannedImage& image,
                                     const model::VisionConfig& vision);

}  // namespace plateau::engine
