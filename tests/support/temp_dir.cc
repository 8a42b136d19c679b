#include "support/temp_dir.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/check.h"

namespace plateau::test {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "plateau-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw_error(ErrorCode::kUnavailable,
                "[temp_dir] expected a writable temporary directory, got {}", std::strerror(errno));
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a destructor has nobody to tell
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace plateau::test
