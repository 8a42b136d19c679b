// llama.cpp's multimodal library (libmtmd) as a vision encoder, for projectors that have no tower
// here. The library decides how a picture is cut and which tokens stand between the parts. Its
// memory is not bounded: see mtmd_plan.h. Not thread-safe.
// Tested by tests/engine/mtmd_parity_test.cc and mtmd_request_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "media/image.h"
#include "model/backend.h"
#include "model/language_model.h"
#include "model/vision_config.h"
#include "model/weights.h"
#include "vision/mtmd_plan.h"

namespace plateau::vision {

/// A piece of a picture's layout: tokens of the text model, or a chunk that is encoded at once.
struct MtmdPiece {
  std::vector<model::Token> tokens = {};  // empty: a chunk
  int n_tokens = 0;                       // of the chunk
};

class MtmdEncoder {
 public:
  /// Loads the projector file, weights included: the library lays out no picture without them.
  /// `config` must have been read from it; all references must outlive the encoder.
  /// Errors: kCorrupt (the library refuses the file, with its reason), kUnsupported (non-causal
  /// attention, another width or kind of positions than the text model's).
  MtmdEncoder(const std::string& path, const model::VisionConfig& config,
              const model::Backends& backends, const model::LanguageModel& text_model);
  ~MtmdEncoder();
  MtmdEncoder(const MtmdEncoder&) = delete;
  MtmdEncoder& operator=(const MtmdEncoder&) = delete;

  /// How a picture of this size lies in the prompt, from its size alone: at least one chunk.
  /// Errors: those of require_mtmd_size; kUnsupported (the vocabulary lacks its markers).
  std::vector<MtmdPiece> lay_out(PictureSize size) const;

  /// Cuts a picture into chunks, which are held until the next one or close(). The picture is
  /// consumed. Errors: as lay_out(), kResourceExhausted (more memory than there is).
  void open(media::Rgb8 picture);
  /// [n_embd_out, n_tokens of the chunk]. REQUIRES: an open picture that has so many chunks.
  /// `should_cancel` (may be empty) is polled between layers.
  /// Errors: kCancelled, kInternal (the library fails, with its reason).
  std::vector<float> encode(int chunk, const std::function<bool()>& should_cancel);
  /// Drops the chunks.
  void close();

  /// What encoding a picture may hold at its fullest moment, weights apart.
  int64_t scratch_bytes(PictureSize size, int64_t n_chunks) const;
  /// The most that was held: pixels as counted, and the buffers that the graphs ran in.
  int64_t peak_bytes() const { return peak_bytes_; }
  const model::WeightBytes& weight_bytes() const { return weight_bytes_; }

 private:
  struct Library;

  void measure(const std::string& path);
  void note_held(int64_t bytes);

  const model::VisionConfig& config_;
  const model::Backends& backends_;
  model::WeightBytes weight_bytes_;
  int64_t compute_bytes_ = 0;  // of one chunk's graph
  std::unique_ptr<Library> library_;
  int64_t peak_bytes_ = 0;
};

}  // namespace plateau::vision
