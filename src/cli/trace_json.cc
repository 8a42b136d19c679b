#include "cli/trace_json.h"

#include "base/check.h"

namespace plateau::cli {

TraceJson::TraceJson(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (!file_) throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for writing", path);
  fmt::print(file_.get(), "{{\"blocks\": [");
}

void TraceJson::add(const BlockTrace& trace) {
  fmt::print(file_.get(), "{}\n{{\"block\": {}, \"tokens_done\": {}, \"layers\": [",
             first_ ? "" : ",", trace.block, trace.tokens_done);
  first_ = false;
  for (int il = 0; il < trace.n_layer; ++il) {
    fmt::print(file_.get(), "{}{{\"layer\": {}, \"heads\": [", il == 0 ? "" : ", ", il);
    for (int head = 0; head < trace.n_head_kv; ++head) {
      fmt::print(file_.get(), "{}[{}]", head == 0 ? "" : ", ",
                 fmt::join(trace.positions[static_cast<size_t>(il * trace.n_head_kv + head)], ","));
    }
    fmt::print(file_.get(), "]}}");
  }
  fmt::print(file_.get(), "]}}");
}

void TraceJson::finish() {
  fmt::print(file_.get(), "\n]}}\n");
  if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0) {
    throw_error(ErrorCode::kUnavailable, "[{}] cannot be written", path_);
  }
}

}  // namespace plateau::cli
