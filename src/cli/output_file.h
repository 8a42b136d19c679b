// Files that a command writes: checked before any work is done, so that a wrong path costs nothing
// and no input can be overwritten. Tested by tests/cli/output_file_test.cc.
#pragma once

#include <string>
#include <vector>

namespace plateau::cli {

struct OutputFile {
  const char* option = "";  // for messages
  std::string path;         // empty: not asked for; "-": standard output
  bool may_be_stdout = false;
};

/// Opens nothing and creates nothing.
/// Errors: kInvalidArgument when an output is also an input or another output, or is "-" where that
/// is not allowed; kUnavailable when it cannot be written (a folder, no permission, no such
/// folder).
void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs);

}  // namespace plateau::cli
