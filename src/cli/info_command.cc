// plateau info: what is in a GGUF file, and whether Plateau can run it.
#include <fmt/format.h>

#include <memory>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "model/backend.h"
#include "model/model_config.h"
#include "model/vision_config.h"

namespace plateau::cli {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kKiB = 1 << 10;

void print_row(const char* name, const std::string& value) {
  fmt::print("{:<22}{}\n", name, value);
}

void print_text_model(const model::ModelConfig& config) {
  print_row("kind", "text model");
  print_row("layers", fmt::to_string(config.n_layer));
  print_row("width", fmt::to_string(config.n_embd));
  print_row("heads", fmt::format("{} query, {} key/value, {} wide", config.n_head, config.n_head_kv,
                                 config.head_dim));
  print_row("feed-forward", fmt::to_string(config.n_ff));
  print_row("vocabulary", fmt::format("{} tokens", config.n_vocab));
  print_row("trained length", fmt::format("{} tokens", config.n_ctx_train));
  print_row("rope base", fmt::format("{:g}", config.rope_freq_base));
  print_row("tied embeddings", config.tied_embeddings ? "yes" : "no");
  print_row("chat template", config.has_chat_template ? "yes" : "no");
  const auto kv = [&](ggml_type type) {
    return static_cast<double>(config.kv_bytes_per_token(type, type)) / kKiB;
  };
  print_row("KV per token", config.head_dim % 32 == 0
                                ? fmt::format("{:.2f} KiB (f16), {:.2f} KiB (q8_0)",
                                              kv(GGML_TYPE_F16), kv(GGML_TYPE_Q8_0))
                                : fmt::format("{:.2f} KiB (f16)", kv(GGML_TYPE_F16)));
}

void print_vision_model(const model::VisionConfig& config) {
  print_row("kind", "vision projector");
  print_row("projector", config.projector_type);
  if (config.is_internvl()) {
    const model::InternVlVision& vision = config.internvl();
    print_row("tile", fmt::format("{0}x{0} px, patch {1} px", vision.tile_size, config.patch_size));
    print_row("tokens per tile", fmt::to_string(config.tokens_per_tile()));
    print_row("norm", vision.rms_norm ? "RMS" : "layer norm");
    print_row("tiles by default", fmt::format("native detail (the file suggests {} to {})",
                                              vision.min_tiles, vision.max_tiles));
  } else if (config.is_mtmd()) {
    const model::MtmdVision& vision = config.mtmd();
    print_row("chunk",
              fmt::format("{0}x{0} px, patch {1} px", vision.chunk_size, config.patch_size));
    print_row("tokens per chunk", fmt::to_string(config.chunk_side() * config.chunk_side()));
    print_row("runs in", "llama.cpp's library (libmtmd); memory not bounded");
  } else {
    const model::Qwen25VlVision& vision = config.qwen25vl();
    print_row("token",
              fmt::format("{0}x{0} px, patch {1} px", config.token_size(), config.patch_size));
    print_row("attention",
              fmt::format("windows of {0}x{0} px, full in each {1}th layer",
                          vision.window_tokens * config.token_size(), vision.full_every));
    print_row("size by default",
              fmt::format("native, at least {} px (the file suggests at most {} px)",
                          vision.min_pixels, vision.max_pixels));
  }
  if (!config.is_mtmd()) print_row("runs in", "a tower of Plateau's; memory bounded");
  print_row("layers", fmt::to_string(config.n_layer));
  print_row("width", fmt::format("{} ({} to the text model)", config.n_embd, config.n_embd_out));
}

int info(const std::string& path) {
  const model::GgufFile file = model::GgufFile::open(path);
  print_row("file", path);
  print_row("architecture", file.find_string("general.architecture").value_or("none"));
  print_row("name", file.find_string("general.name").value_or("none"));
  print_row("weights",
            fmt::format("{:.1f} MiB in {} tensors", static_cast<double>(file.tensor_bytes()) / kMiB,
                        file.tensors().size()));
  try {
    if (file.find_string("general.architecture").value_or("") == "clip") {
      print_vision_model(model::read_vision_config(file));
    } else {
      print_text_model(model::read_model_config(file));
    }
  } catch (const Error& error) {
    print_row("supported", fmt::format("no: {}", error.what()));
    return kExitBadInput;
  }
  print_row("supported", "yes");
  return kExitAnswered;
}

int list_devices() {
  for (const model::Device& device : model::Device::all()) {
    fmt::print("{:<22}{}\n", device.name(), device.description());
  }
  return kExitAnswered;
}

}  // namespace

Command add_info_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("info", "Show what is in a GGUF file; without one, the devices here");
  auto path = std::make_shared<std::string>();
  command->add_option("file", *path, "GGUF file");
  return {command, [path] { return path->empty() ? list_devices() : info(*path); }};
}

}  // namespace plateau::cli
