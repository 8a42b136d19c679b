// Hashes that tell whether two runs saw the same data and the same model.
#pragma once

#include <string>

namespace plateau::eval {

/// SHA-256 of bytes, hex.
std::string sha256(const std::string& bytes);

/// SHA-256, hex, over a file's size and its bytes; of files above 64 MiB, over the size, the first
/// 16 MiB (where a GGUF file has its metadata), the last MiB, and 46 MiB in pieces of 1 MiB spread
/// evenly between them. Errors: kNotFound.
std::string file_fingerprint(const std::string& path);

}  // namespace plateau::eval
