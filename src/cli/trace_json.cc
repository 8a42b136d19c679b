#include "cli/trace_json.h"

#include <filesystem>

#include "base/check.h"

namespace plateau::cli {

TraceJson::TraceJson(const std::string& path) : path_(path), part_path_(path) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec) || std::filesystem::is_regular_file(path, ec)) {
    part_path_ += ".part";
  }
  file_.reset(std::fopen(part_path_.c_str(), "wb"));
  if (!file_) throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for writing", part_path_);
  fmt::print(file_.get(), "{{\"blocks\": [");
}

TraceJson::~TraceJson() {
  if (file_ && part_path_ != path_) std::remove(part_path_.c_str());
}

void TraceJson::add(const BlockTrace& trace) {
  fmt::print(file_.get(), "{}\n{{\"block\": {}, \"tokens_done\": {}, \"positions\": [",
             first_ ? "" : ",", trace.block, trace.tokens_done);
  for (size_t i = 0; i < trace.positions.size(); ++i) {
    fmt::print(file_.get(), "{}[{}]", i == 0 ? "" : ",", fmt::join(trace.positions[i], ","));
  }
  fmt::print(file_.get(), "], \"layers\": [");
  first_ = false;
  for (int il = 0; il < trace.n_layer; ++il) {
    fmt::print(file_.get(), "{}{{\"layer\": {}, \"heads\": [", il == 0 ? "" : ", ", il);
    for (int head = 0; head < trace.n_head_kv; ++head) {
      fmt::print(file_.get(), "{}[{}]", head == 0 ? "" : ", ",
                 fmt::join(trace.tokens[static_cast<size_t>(il * trace.n_head_kv + head)], ","));
    }
    fmt::print(file_.get(), "]}}");
  }
  fmt::print(file_.get(), "]}}");
}

void TraceJson::finish() {
  fmt::print(file_.get(), "\n]}}\n");
  const bool written = std::fflush(file_.get()) == 0 && std::ferror(file_.get()) == 0;
  if (!written || (part_path_ != path_ && std::rename(part_path_.c_str(), path_.c_str()) != 0)) {
    throw_error(ErrorCode::kUnavailable, "[{}] cannot be written", path_);
  }
  file_.reset();
}

}  // namespace plateau::cli
