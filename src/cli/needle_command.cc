// plateau needle: large pictures with small numbered objects, questions and answers.
#include <fmt/format.h>

#include <memory>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/progress_bar.h"
#include "eval/needle_set.h"

namespace plateau::cli {
namespace {

struct NeedleOptions {
  eval::NeedleSetOptions set;
  std::string format = "jpg";
  std::string kinds = "number";
  bool colors = false;
};

int needle(const NeedleOptions& options) {
  install_interrupt_handler();
  eval::NeedleSetOptions set = options.set;
  set.format = eval::parse_picture_format(options.format);
  set.kinds = eval::parse_question_kinds(options.kinds);
  if (options.colors) set.scene.variety = eval::ObjectVariety::kColors;
  ProgressBar bar;
  const eval::NeedleSet made = eval::write_needle_set(set, [&](int n_done, int n_pictures) {
    bar.draw(static_cast<double>(n_done) / n_pictures,
             fmt::format("{}/{} pictures", n_done, n_pictures));
    if (interrupted()) throw_error(ErrorCode::kCancelled, "interrupted");
  });
  bar.clear();
  fmt::print("{}: {} pictures, {} questions\n", made.jsonl_path, made.n_pictures, made.n_questions);
  return kExitAnswered;
}

}  // namespace

Command add_needle_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("needle", "Make large pictures with small numbered objects to find");
  auto o = std::make_shared<NeedleOptions>();
  command->add_option("--out", o->set.out_dir, "Folder to write to")->required();
  command->add_option("--count", o->set.n_pictures, "Pictures")->capture_default_str();
  command->add_option("--width", o->set.scene.width, "Pixels")->capture_default_str();
  command->add_option("--height", o->set.scene.height, "Pixels")->capture_default_str();
  command->add_option("--cell", o->set.scene.cell, "Tile side of the model that will look")
      ->capture_default_str();
  command
      ->add_option("--objects,--n-objects", o->set.scene.n_objects,
                   "Numbered objects per picture; at most 8 without --colors")
      ->capture_default_str();
  command->add_flag("--colors,--colours", o->colors,
                    "Objects come in eight colours and two sizes: 'the small red cat'");
  command
      ->add_option("--distractors", o->set.scene.n_decoys,
                   "Look-alikes without a number, numbers without an object, cards with words")
      ->capture_default_str();
  command->add_option("--questions", o->set.questions_per_picture, "Questions per picture")
      ->capture_default_str();
  command->add_option("--kinds", o->kinds, "Of question: number,which,count,exists,where")
      ->capture_default_str();
  command->add_option("--wordings", o->set.n_wordings, "Ways to word each kind of question")
      ->capture_default_str();
  command->add_option("--background", o->set.scene.background,
                      "A photograph; default: drawn at random");
  command->add_option("--photos", o->set.photos_dir,
                      "A folder of photographs; each picture takes one");
  command->add_option("--format", o->format, "jpg or png")->capture_default_str();
  command->add_option("--seed", o->set.scene.seed, "Same seed, same pictures")
      ->capture_default_str();
  return {command, [o] { return needle(*o); }};
}

}  // namespace plateau::cli
