// plateau needle: large pictures and long films with small numbered objects, questions and answers.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/check.h"
#include "base/plural.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/progress_bar.h"
#include "cli/say.h"
#include "cli/validators.h"
#include "eval/needle_set.h"

namespace plateau::cli {
namespace {

struct NeedleOptions {
  eval::NeedleSetOptions set;
  eval::FilmOptions film;
  bool makes_films = false;
  std::optional<int64_t> width;
  std::optional<int64_t> height;
  std::optional<int> n_objects;
  std::string format;
  std::string kinds = "number";
  bool colors = false;
};

eval::NeedleSetOptions make_set_options(const NeedleOptions& o) {
  eval::NeedleSetOptions set = o.set;
  set.kinds = eval::parse_question_kinds(o.kinds);
  if (o.colors) set.scene.variety = eval::ObjectVariety::kColors;
  if (o.makes_films) {
    set.film = o.film;
    if (!o.format.empty()) set.film_format = eval::parse_film_format(o.format);
    set.scene.width = set.scene.height = set.scene.cell;
    set.scene.n_objects = 1;
  } else if (!o.format.empty()) {
    set.format = eval::parse_picture_format(o.format);
  }
  set.scene.width = o.width.value_or(set.scene.width);
  set.scene.height = o.height.value_or(set.scene.height);
  set.scene.n_objects = o.n_objects.value_or(set.scene.n_objects);
  return set;
}

int needle(const NeedleOptions& options) {
  install_interrupt_handler();
  const eval::NeedleSetOptions set = make_set_options(options);
  const char* noun = set.film ? "film" : "picture";
  ProgressBar bar;
  const eval::NeedleSet made = eval::write_needle_set(set, [&](double n_done, int n_pictures) {
    const auto n_whole = static_cast<int64_t>(n_done);
    bar.draw(n_done / n_pictures, fmt::format("{}/{}", n_whole, counted(n_pictures, noun)));
    if (!interrupted() || n_whole == n_pictures) return;
    bar.clear();
    throw_error(ErrorCode::kCancelled, "interrupted: {} of {} finished{}", n_whole,
                counted(n_pictures, noun),
                n_whole > 0 ? fmt::format(", the set in {} is of these", set.out_dir) : "");
  });
  bar.clear();
  const std::string shortfall = eval::shortfall_text(made);
  if (!shortfall.empty()) say("plateau: {}\n", shortfall);
  fmt::print("{}: {}, {}\n", made.jsonl_path, counted(made.n_pictures, noun),
             counted(made.n_questions, "question"));
  return kExitAnswered;
}

void add_film_options(CLI::App& app, NeedleOptions& o) {
  CLI::Option* film = app.add_flag(
      "--film", o.makes_films, "Films instead of pictures: each object is there for a moment only");
  app.add_option("--seconds", o.film.seconds, "Length of a film")
      ->needs(film)
      ->capture_default_str();
  app.add_option("--fps", o.film.fps, "Frames per second of a film")
      ->needs(film)
      ->capture_default_str();
  app.add_option("--needle-seconds", o.film.needle_s,
                 "How long an object is there; by default as long as one frame is looked at")
      ->needs(film)
      ->capture_default_str();
}

}  // namespace

Command add_needle_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "needle", "Make large pictures or long films with small numbered objects to find");
  auto o = std::make_shared<NeedleOptions>();
  command->add_option("--out", o->set.out_dir, "Folder to write to")->required();
  command->add_option("--count", o->set.n_pictures, "Pictures or films")->capture_default_str();
  add_film_options(*command, *o);
  command->add_option("--width", o->width, "Pixels; default: 3840, of a film --cell");
  command->add_option("--height", o->height, "Pixels; default: 2160, of a film --cell");
  command->add_option("--cell", o->set.scene.cell, "Tile side of the model that will look")
      ->capture_default_str();
  command->add_option("--objects,--n-objects", o->n_objects,
                      "Numbered objects per picture, default 8, or film, default 1; at most 8 "
                      "without --colors");
  command->add_flag("--colors,--colours", o->colors,
                    "Objects come in eight colours and two sizes: 'the small red cat'");
  command
      ->add_option("--distractors", o->set.scene.n_decoys,
                   "Look-alikes without a number, numbers without an object, cards with words")
      ->capture_default_str();
  command->add_option("--questions", o->set.questions_per_picture, "Questions per picture or film")
      ->capture_default_str();
  command
      ->add_option("--kinds", o->kinds,
                   "Of question: number,which,count,exists,where; of films when,second,first, too")
      ->capture_default_str();
  command->add_option("--wordings", o->set.n_wordings, "Ways to word each kind of question")
      ->capture_default_str();
  command->add_option("--background", o->set.scene.background,
                      "A photograph; default: drawn at random");
  command->add_option("--photos", o->set.photos_dir,
                      "A folder of photographs; each picture takes one, a film goes through them");
  command->add_option("--format", o->format,
                      "jpg or png, default jpg; of films mp4, mkv or avi, default mp4");
  command->add_option("--seed", o->set.scene.seed, "Same seed, same pictures")
      ->check(whole_number())
      ->capture_default_str();
  return {command, [o] { return needle(*o); }};
}

}  // namespace plateau::cli
