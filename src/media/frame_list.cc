// Tested by video_frame_list_test.cc.
#include "media/frame_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "media/input_file.h"

namespace plateau::media {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFrames = 1'000'000;
constexpr int64_t kMaxListBytes = int64_t{256} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The digits at the front of `text`, without leading zeros.
std::string_view take_number(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

bool name_less(std::string_view a, std::string_view b) {
  const std::pair whole(a, b);
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole.first < whole.second;  // equal but for leading zeros
}

void check_count(size_t n_frames, const std::string& path) {
  if (n_frames > kMaxFrames) {
    throw_error(ErrorCode::kResourceExhausted,
                "[frames] expected at most {} frames, got more in '{}'; try a film", kMaxFrames,
                path);
  }
}

std::optional<double> parse_seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trim_right(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\r");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

struct Line {
  std::string_view path;
  std::optional<double> timestamp_s;
};

Line parse_line(std::string_view line, int64_t number, const std::string& list) {
  size_t cut = line.rfind('\t');
  const bool tab = cut != std::string_view::npos;
  if (!tab) cut = line.rfind(' ');
  if (cut == std::string_view::npos) return {line, std::nullopt};
  const std::string_view path = trim_right(line.substr(0, cut));
  const std::string_view word = line.substr(cut + 1);
  const std::optional<double> seconds = parse_seconds(word);
  if (!seconds.has_value() && !tab) return {line, std::nullopt};
  if (!seconds.has_value() || !std::isfinite(*seconds) || *seconds < 0) {
    throw_error(ErrorCode::kCorrupt,
                "[frames] expected a time in seconds, 0 or more, got '{}' in line {} of '{}'", word,
                number, list);
  }
  if (path.empty()) {
    throw_error(ErrorCode::kCorrupt,
                "[frames] expected a file name before the time, got none in line {} of '{}'",
                number, list);
  }
  return {path, seconds};
}

std::string read_text(const InputFile& file) {
  if (file.size() > kMaxListBytes) {
    throw_error(ErrorCode::kResourceExhausted,
                "[frames] expected a list of at most {} bytes, got {} in '{}'", kMaxListBytes,
                file.size(), file.path());
  }
  const std::vector<uint8_t> bytes = file.read_at(0, static_cast<size_t>(file.size()));
  return {bytes.begin(), bytes.end()};
}

std::vector<ListedFrame> read_list(const std::string& path, double fps) {
  const std::string text = read_text(InputFile(path, "frames"));
  std::string_view rest = text;
  if (rest.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  const fs::path folder = fs::path(path).parent_path();
  std::vector<ListedFrame> frames;
  bool timed = false;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trim_right(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    if (line.find('\0') != std::string_view::npos) {
      throw_error(ErrorCode::kCorrupt,
                  "[frames] expected a text file, got a zero byte in line {} of '{}'", number,
                  path);
    }
    const Line parsed = parse_line(line, number, path);
    if (frames.empty()) timed = parsed.timestamp_s.has_value();
    if (parsed.timestamp_s.has_value() != timed) {
      throw_error(ErrorCode::kCorrupt,
                  "[frames] expected a time in every line or in none, got a line with{} in line {} "
                  "of '{}'",
                  timed ? "out" : "", number, path);
    }
    const double timestamp_s =
        parsed.timestamp_s.value_or(static_cast<double>(frames.size()) / fps);
    if (!frames.empty() && timestamp_s < frames.back().timestamp_s) {
      throw_error(ErrorCode::kCorrupt,
                  "[frames] expected times that never fall, got {} s after {} s in line {} of '{}'",
                  timestamp_s, frames.back().timestamp_s, number, path);
    }
    frames.push_back({(folder / parsed.path).string(), timestamp_s});
    check_count(frames.size(), path);
  }
  if (frames.empty()) {
    throw_error(ErrorCode::kCorrupt, "[frames] expected the name of a picture, got none in '{}'",
                path);
  }
  return frames;
}

std::vector<ListedFrame> list_folder(const std::string& path, double fps) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;  // what cannot be looked at is named when it is opened
    if (name.front() == '.' || entry->is_directory(ignored)) continue;
    names.push_back(name);
    check_count(names.size(), path);
  }
  if (error) {
    throw_error(ErrorCode::kNotFound, "[frames] expected a readable folder, got '{}' ({})", path,
                error.message());
  }
  if (names.empty()) {
    throw_error(ErrorCode::kNotFound, "[frames] expected a folder with pictures, got none in '{}'",
                path);
  }
  std::sort(names.begin(), names.end(), name_less);
  std::vector<ListedFrame> frames;
  frames.reserve(names.size());
  for (const std::string& name : names) {
    frames.push_back({(fs::path(path) / name).string(), static_cast<double>(frames.size()) / fps});
  }
  return frames;
}

}  // namespace

std::vector<ListedFrame> list_frames(const std::string& path, double fps) {
  plan_frames(0, {.fps = fps});  // checks the rate
  std::error_code ignored;       // what does not exist is reported by the opening
  return fs::is_directory(path, ignored) ? list_folder(path, fps) : read_list(path, fps);
}

std::vector<ListedFrame> pick_frames(std::vector<ListedFrame> frames,
                                     const FrameSampling& sampling) {
  PLATEAU_CHECK(!frames.empty());
  const double last_s = frames.back().timestamp_s;
  std::erase_if(frames, [&](const ListedFrame& frame) {
    return frame.timestamp_s < sampling.start_s ||
           (sampling.end_s > 0 && frame.timestamp_s >= sampling.end_s);
  });
  if (frames.empty() || sampling.max_frames < 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[frames] expected a part with frames in it and a cap of 0 or more, got {} to {} s "
                "of a list that ends at {} s, and a cap of {}",
                sampling.start_s, sampling.end_s, last_s, sampling.max_frames);
  }
  const size_t n_frames = frames.size();
  const auto n_max = static_cast<size_t>(sampling.max_frames);
  if (n_max == 0 || n_frames <= n_max) return frames;
  for (size_t i = 0; i < n_max; ++i) {
    const size_t middle = (2 * i + 1) * n_frames / (2 * n_max);
    if (middle != i) frames[i] = std::move(frames[middle]);
  }
  frames.resize(n_max);
  return frames;
}

}  // namespace plateau::media
