// What is asked of an engine, and what comes back.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plateau/options.h"

namespace plateau {

struct TextPart {
  std::string text;  // plain text: special-token text in it has no special meaning
};

struct ImagePart {
  std::string path;  // a local file
};

struct VideoPart {
  std::string path;  // a local file
  /// The path is a text file that names pictures (`path`, or `path<TAB>seconds`, on each line), or
  /// a folder of pictures, which stand for a film.
  bool is_frame_list = false;
};

using ContentPart = std::variant<TextPart, ImagePart, VideoPart>;

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::vector<ContentPart> content;
};

/// A part of a picture or film, in pixels of the upright original.
struct ImageRegion {
  int image = 0;  // which picture or film of the request, in order
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  // Of a film: in the frames from the first of these seconds until before the second, counted as
  // VideoOptions counts them. Some of that time must be the film's.
  double start_s = 0;
  double end_s = std::numeric_limits<double>::infinity();
};

struct Request {
  std::vector<Message> messages;
  ImageOptions image;
  VideoOptions video;
  KvOptions kv;
  SamplingOptions sampling;
  int max_new_tokens = 128;
  /// Fill ImageReport::kept_share.
  bool want_kept_share = false;
  /// Parts of pictures and films whose tokens are followed: Usage::regions.
  std::vector<ImageRegion> regions;
  /// Plain texts that the answer might begin with; how likely each is comes back in
  /// Answer::continuations. The answer itself does not depend on them.
  std::vector<std::string> continuations;
};

enum class StopReason {
  kEndOfAnswer,  // the model ended its turn
  kMaxTokens,    // max_new_tokens were made
};

/// What a film has beside what a picture has.
struct VideoReport {
  std::string container;
  std::string codec;
  double duration_s = 0;  // of the whole film; of a list: from its first picture to its last
  double start_s = 0;     // the part that was looked at
  double end_s = 0;
  double fps = 0;         // frames used per second of film; 0: a list that takes no time
  int64_t n_frames = 0;   // used
  int64_t n_slices = 0;   // pictures that the encoder made of them
  int64_t n_damaged = 0;  // packets passed over and frames patched up
};

/// What became of one picture or film.
struct ImageReport {
  std::string path;
  std::string format;
  int64_t width = 0;  // original, upright
  int64_t height = 0;
  int64_t used_width = 0;  // after the resize to whole tiles
  int64_t used_height = 0;
  int n_cols = 0;
  int n_rows = 0;
  int n_tiles = 0;  // with the thumbnail; 0: the family takes pictures of any size
  int n_bands = 0;  // parts that such a picture was encoded in; 1: whole, which is exact
  int64_t tokens_made = 0;
  int64_t tokens_kept = 0;  // in the cache when decoding began, mean over layers and heads
  // The picture's tokens as a grid, without the thumbnail, and for each the share of (layer, kv
  // head) pairs that still held it when decoding began: [grid_cols, grid_rows]. Only where asked
  // for.
  int grid_cols = 0;
  int grid_rows = 0;
  std::vector<float> kept_share;     // not of a film
  std::optional<VideoReport> video;  // a film; sizes, tiles and bands above are a slice's
};

/// What the cache held of a region when decoding began.
struct RegionReport {
  /// Of the picture's grid, without the thumbnail, or of a film's slices, that the region touches.
  /// 0: none of the frames that were looked at shows it.
  int64_t tokens = 0;
  int n_layer = 0;
  int n_head_kv = 0;
  std::vector<int32_t> tokens_kept;  // of them, still held: [n_head_kv, n_layer]
};

/// What one prefill block left in the cache.
struct BlockTrace {
  int block = 0;
  int64_t tokens_done = 0;
  int n_layer = 0;
  int n_head_kv = 0;
  /// Kept tokens by their index in the prompt, ascending, per layer and kv head: tokens[il *
  /// n_head_kv + head].
  std::vector<std::vector<int32_t>> tokens;
  /// Rotary positions (t, h, w) of the block's own tokens, in prompt order. Tokens of one picture
  /// may share one (M-RoPE: t); with 1-D rotary embedding all three equal the token's index.
  std::vector<std::array<int32_t, 3>> positions;
};

/// Quantities of one answer. Times are wall-clock milliseconds.
struct Usage {
  int64_t prompt_tokens = 0;
  int64_t text_tokens = 0;
  int64_t visual_tokens = 0;
  int64_t prompt_positions = 0;  // the position of the first generated token
  int64_t blocks = 0;
  int64_t kv_budget = 0;        // slots kept after each block; 0: everything
  int64_t kv_arena_tokens = 0;  // slots allocated per layer and kv head
  int64_t kv_kept_max = 0;      // most slots held after a block
  int64_t kv_bytes = 0;
  int64_t evicted_tokens = 0;  // mean over layers and heads
  int64_t encoded_tiles = 0;   // without those that the embedding cache had
  double encode_ms = 0;        // reading and encoding pictures
  double prefill_ms = 0;       // running the blocks, eviction included
  double score_ms = 0;         // of it, on the host: scores from signals
  double select_ms = 0;        // of it: choosing what stays
  double compact_ms = 0;       // of it: moving rows
  double ttft_ms = 0;          // from the start of the request to the first token
  int64_t decode_tokens = 0;
  double decode_tok_s = 0;
  // What was allocated, apart from kv_bytes.
  int64_t weights_bytes = 0;          // of both files
  int64_t weights_mapped_bytes = 0;   // of them, pages of the files
  int64_t compute_bytes = 0;          // decoder compute buffers
  int64_t encoder_bytes = 0;          // most bytes held by the vision encoder
  int64_t media_bytes = 0;            // the picture library's fullest moment in this process
  std::vector<ImageReport> images;    // pictures and films, in prompt order
  std::vector<RegionReport> regions;  // as Request::regions
  std::vector<std::string>
      notes;  // what a person should know: resizes, a prompt beyond the trained length
};

/// How likely a continuation is right after the prompt.
struct ContinuationLikelihood {
  double log_prob = 0;  // natural logarithm, summed over its tokens
  int n_tokens = 0;
};

struct Answer {
  std::string text;
  StopReason stop_reason = StopReason::kEndOfAnswer;
  std::vector<ContinuationLikelihood> continuations;  // as Request::continuations
  Usage usage;
};

/// How far a prompt is.
struct Progress {
  int64_t tiles_done = 0;
  int64_t tiles = 0;
  int64_t tokens_done = 0;
  int64_t tokens = 0;
  double encoded_share = 1;  // of the unit of a picture that the encoder has in hand
};

/// All optional; called on the thread that runs the request.
struct RequestCallbacks {
  std::function<void(const Usage&)> on_planned;  // before any work: sizes and images are final
  std::function<void(const Progress&)> on_progress;
  std::function<void(const BlockTrace&)> on_block_kept;  // costs a copy of all kept tokens
  std::function<void(std::string_view)> on_text;         // whole UTF-8 characters
  std::function<bool()> should_cancel;                   // polled within each block
};

}  // namespace plateau
