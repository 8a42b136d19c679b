// Whole small files; "-" is standard input or output.
#pragma once

#include <string>

namespace plateau::cli {

/// Errors: kNotFound, kUnsupported (a named pipe, whose writer may never come), kInvalidArgument
/// (larger than 64 MiB).
std::string read_text_file(const std::string& path);

/// Replaces the file. Errors: kUnavailable (cannot be written, disc full).
void write_text_file(const std::string& path, const std::string& text);

}  // namespace plateau::cli
