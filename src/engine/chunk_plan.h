// Pictures for a projector that libmtmd runs: its pieces as units and markers of the prompt.
// Tested by tests/engine/mtmd_parity_test.cc.
#pragma once

#include <vector>

#include "engine/visual_source.h"
#include "model/vision_config.h"
#include "plateau/request.h"
#include "vision/encoder.h"

namespace plateau::engine {

/// Throws kInvalidArgument where the request has a film.
void refuse_films(const Request& request, const model::VisionConfig& vision);

/// Units and markers of a picture. The last chunk is the whole picture, made smaller, and is its
/// own plane (0); what stands before it are parts at greater detail, each a plane of its own.
VisualLayout layout_of(const std::vector<vision::MtmdPiece>& pieces,
                       const model::VisionConfig& vision);

int64_t n_tokens(const VisualLayout& layout);

/// Fills in `cut` of pictures that were probed. Errors: those of MtmdEncoder::lay_out;
/// kInvalidArgument (an option that this projector does not have, more tokens than the request
/// allows), kResourceExhausted (more memory than `max_encoder_bytes`; 0: no bound).
void plan_chunk_images(const ImageOptions& options, const vision::Encoder& encoder,
                       int64_t max_encoder_bytes, std::vector<PlannedImage>& images);

}  // namespace plateau::engine
