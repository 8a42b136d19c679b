// What CLI11 does not check by itself.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

namespace plateau::cli {

/// CLI11 2.1 wraps a negative number into an unsigned option: -1 would be the largest of all.
inline CLI::Validator whole_number() {
  return CLI::Validator(
      [](std::string& text) {
        const bool whole = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
          return c >= '0' && c <= '9';
        });
        return whole ? std::string() : "expected a whole number from 0 on, got " + text;
      },
      "");
}

/// -1 for all layers, or a number of them.
inline CLI::Validator gpu_layers() {
  return CLI::Validator(
      [](std::string& text) {
        if (text == "-1") return std::string();
        return whole_number()(text).empty() ? std::string()
                                            : "expected -1 or a number of layers, got " + text;
      },
      "");
}

}  // namespace plateau::cli
