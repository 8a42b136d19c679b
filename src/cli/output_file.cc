#include "cli/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/check.h"

namespace plateau::cli {
namespace {

namespace fs = std::filesystem;

bool is_same_file(const std::string& a, const std::string& b) {
  if (a == b) return true;
  std::error_code ec;
  return fs::is_regular_file(a, ec) && fs::equivalent(a, b, ec);
}

/// Why it cannot be written, as errno says it; 0: it can, as far as is known without opening it.
int write_error(const std::string& path) {
  std::error_code ec;
  if (fs::exists(path, ec)) {
    if (fs::is_directory(path, ec)) return EISDIR;
    return ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
  }
  const fs::path folder = fs::path(path).parent_path();
  const std::string parent = folder.empty() ? "." : folder.string();
  if (::access(parent.c_str(), W_OK) != 0) return errno;
  return fs::is_directory(parent, ec) ? 0 : ENOTDIR;
}

}  // namespace

void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputFile& output = outputs[i];
    if (output.path.empty()) continue;
    if (output.path == "-") {
      if (output.may_be_stdout) continue;
      throw_error(ErrorCode::kInvalidArgument, "[{}] expected a file name, got -", output.option);
    }
    for (const std::string& input : inputs) {
      if (!input.empty() && is_same_file(output.path, input)) {
        throw_error(ErrorCode::kInvalidArgument,
                    "[{}] expected a file of its own, got {}, which is read", output.option,
                    output.path);
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (is_same_file(output.path, outputs[j].path)) {
        throw_error(ErrorCode::kInvalidArgument,
                    "[{}] expected a file of its own, got {}, which {} writes", output.option,
                    output.path, outputs[j].option);
      }
    }
    if (const int reason = write_error(output.path); reason != 0) {
      throw_error(ErrorCode::kUnavailable, "[{}] cannot be opened for writing: {}", output.path,
                  std::strerror(reason));
    }
  }
}

}  // namespace plateau::cli
