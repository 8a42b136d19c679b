// What each picture of a request becomes, from its header alone.
#pragma once

#include <vector>

#include "engine/visual_layout.h"
#include "engine/visual_source.h"
#include "model/vision_config.h"
#include "plateau/request.h"

namespace plateau::engine {

media::ImageLimits to_limits(const ImageOptions& options);

/// One entry per ImagePart, in prompt order. Errors: those of media::probe_image.
std::vector<PlannedImage> plan_images(const Request& request, const model::VisionConfig& vision);

VisualLayout layout_of(const PlannedImage& image, const model::VisionConfig& vision);
ImageReport report_of(const PlannedImage& image, const model::VisionConfig& vision);

/// What a person should know about the picture's size, or "".
std::string resize_note(const ImageReport& report);

}  // namespace plateau::engine
