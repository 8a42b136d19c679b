#include "cli/output_file.h"

#include <unistd.h>

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

bool is_writable(const std::string& path) {
  std::error_code ec;
  if (fs::exists(path, ec)) return !fs::is_directory(path, ec) && ::access(path.c_str(), W_OK) == 0;
  const fs::path folder = fs::path(path).parent_path();
  const std::string parent = folder.empty() ? "." : folder.string();
  return fs::is_directory(parent, ec) && ::access(parent.c_str(), W_OK) == 0;
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
    if (!is_writable(output.path)) {
      throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for writing", output.path);
    }
  }
}

}  // namespace plateau::cli
