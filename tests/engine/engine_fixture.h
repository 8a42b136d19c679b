// One engine with the pair of models that ships with the project, and one needle picture.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "eval/scene.h"
#include "plateau/engine.h"
#include "support/temp_dir.h"

namespace plateau {

inline constexpr int kCols = 8, kRows = 6, kTile = 112;
inline constexpr int kTokensPerTile = 4;
inline constexpr int kVisualTokens = (kCols * kRows + 1) * kTokensPerTile;  // with the thumbnail

inline std::string model_file(const char* name) {
  return std::string(PLATEAU_SOURCE_DIR) + "/models/pico/" + name;
}

/// The pair that ships with the project; without a projector, the text model alone.
inline Engine open(const char* projector = nullptr) {
  EngineOptions options;
  options.model_path = model_file("pico-internvl-text.gguf");
  if (projector != nullptr) options.mmproj_path = model_file(projector);
  options.n_threads = 1;
  return Engine::open(options);
}

class EngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<test::TempDir>();
    eval::SceneOptions scene;
    scene.width = kCols * kTile;
    scene.height = kRows * kTile;
    scene.n_objects = 3;
    scene.seed = 3;
    scene_ = eval::write_scene(scene, picture());
    engine_ = std::make_unique<Engine>(open("pico-internvl-mmproj.gguf"));
  }
  static void TearDownTestSuite() {
    engine_.reset();
    dir_.reset();
  }

  static std::string picture() { return dir_->file("scene.png"); }
  static Engine& engine() { return *engine_; }
  static const eval::Scene& scene() { return scene_; }

  static Request ask(const KvOptions& kv = {}) {
    Request request;
    request.messages = {{"user",
                         {ImagePart{picture()},
                          TextPart{"What number is on the " + scene_.drawings[0].object + "?"}}}};
    request.kv = kv;
    request.max_new_tokens = 8;
    return request;
  }
  static std::string answer_to(const Request& request) { return engine().run(request).text; }

  static Error error_of(const Request& request) {
    try {
      engine().run(request);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "answered";
    return Error(ErrorCode::kInternal, "");
  }

 private:
  inline static std::unique_ptr<test::TempDir> dir_;
  inline static std::unique_ptr<Engine> engine_;
  inline static eval::Scene scene_;
};

}  // namespace plateau
