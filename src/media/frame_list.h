// Still pictures that stand for a film: a text file that names them, or a folder of them.
#pragma once

#include <string>
#include <vector>

#include "media/frame_sampling.h"

namespace plateau::media {

struct ListedFrame {
  std::string path;
  double timestamp_s = 0;
};

/// From a text file: one frame a line, `path` or `path<TAB>seconds` or `path seconds`; paths are
/// relative to the list's folder. Every line has a time, never falling, or none has: then the
/// frames are 1 / fps apart. A line without a tab whose last word is a number and not all of the
/// line ends in a time. Empty lines do not count.
/// From a folder: all its files but hidden ones, in the order of their names with numbers by value
/// (frame2 before frame10), 1 / fps apart.
/// No picture is opened. Errors: kNotFound, kUnsupported (neither a file nor a folder),
/// kCorrupt with the line's number, kInvalidArgument (fps), kResourceExhausted (more than a million
/// frames).
std::vector<ListedFrame> list_frames(const std::string& path, double fps);

/// The frames from start_s up to end_s; of these max_frames spread evenly, the middle one of each
/// of max_frames equal runs. sampling.fps is not used. Errors: kInvalidArgument where none is left.
std::vector<ListedFrame> pick_frames(std::vector<ListedFrame> frames,
                                     const FrameSampling& sampling);

}  // namespace plateau::media
