#include "cli/trace_json.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/check.h"

namespace plateau::cli {

TraceJson::TraceJson(const std::string& path) : path_(path), part_path_(path) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec) || std::filesystem::is_regular_file(path, ec)) {
    part_path_ += ".part";
  }
  file_.reset(std::fopen(part_path_.c_str(), "wb"));
  if (!file_) {
    throw_error(ErrorCode::kUnavailable, "[{}] cannot be opened for writing: {}", part_path_,
                std::strerror(errno));
  }
  write("{\"blocks\": [");
}

TraceJson::~TraceJson() {
  if (file_ && part_path_ != path_) std::remove(part_path_.c_str());
}

void TraceJson::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail();
}

void TraceJson::fail() const {
  throw_error(ErrorCode::kUnavailable, "[{}] cannot be written: {}", path_, std::strerror(errno));
}

void TraceJson::add(const BlockTrace& trace) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}\n{{\"block\": {}, \"tokens_done\": {}, \"positions\": [",
                 first_ ? "" : ",", trace.block, trace.tokens_done);
  for (size_t i = 0; i < trace.positions.size(); ++i) {
    fmt::format_to(out, "{}[{}]", i == 0 ? "" : ",", fmt::join(trace.positions[i], ","));
  }
  fmt::format_to(out, "], \"layers\": [");
  first_ = false;
  for (int il = 0; il < trace.n_layer; ++il) {
    fmt::format_to(out, "{}{{\"layer\": {}, \"heads\": [", il == 0 ? "" : ", ", il);
    for (int head = 0; head < trace.n_head_kv; ++head) {
      fmt::format_to(
          out, "{}[{}]", head == 0 ? "" : ", ",
          fmt::join(trace.tokens[static_cast<size_t>(il * trace.n_head_kv + head)], ","));
    }
    text += "]}";
  }
  write(text + "]}");
}

void TraceJson::finish() {
  write("\n]}\n");
  if (std::fflush(file_.get()) != 0) fail();
  if (part_path_ != path_ && std::rename(part_path_.c_str(), path_.c_str()) != 0) fail();
  file_.reset();
}

}  // namespace plateau::cli
