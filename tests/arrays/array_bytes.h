// Files in the two array formats, byte by byte, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plateau::arrays::testing {

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::string little_endian(uint64_t value, int n_bytes) {
  std::string bytes;
  for (int i = 0; i < n_bytes; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

inline std::string npy(std::string header, std::string_view data, int major = 1) {
  header += '\n';
  return "\x93NUMPY" + little_endian(static_cast<uint64_t>(major), 1) + std::string(1, '\0') +
         little_endian(header.size(), major == 1 ? 2 : 4) + header + std::string(data);
}

inline std::string npy_header(const std::string& descr, const std::string& shape,
                              bool is_fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (is_fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

inline std::string npy_f32(const std::string& shape, const std::vector<float>& values) {
  return npy(npy_header("<f4", shape), bytes_of(values));
}

inline std::string safetensors(const std::string& header, std::string_view data) {
  return little_endian(header.size(), 8) + header + std::string(data);
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace plateau::arrays::testing
