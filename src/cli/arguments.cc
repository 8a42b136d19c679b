#include "cli/arguments.h"

#include <string_view>
#include <utility>

namespace plateau::cli {
namespace {

constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {
    {"-ctk", "--cache-type-k"}, {"-ctv", "--cache-type-v"}, {"-ngl", "--n-gpu-layers"}};

std::string long_name(std::string_view argument) {
  for (const auto& [short_name, name] : kLongNames) {
    if (argument == short_name) return std::string(name);
    if (argument.starts_with(short_name) && argument.substr(short_name.size()).starts_with('=')) {
      return std::string(name) + std::string(argument.substr(short_name.size()));
    }
  }
  return std::string(argument);
}

}  // namespace

std::vector<std::string> normalized_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) arguments.push_back(long_name(argv[i]));
  return arguments;
}

}  // namespace plateau::cli
