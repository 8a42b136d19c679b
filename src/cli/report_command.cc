// plateau report: result files of bench and eval as one HTML page (docs/bench.md).
// Tested by tests/cli/bench_test.cc.
#include "report/report.h"

#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output_file.h"
#include "cli/text_file.h"
#include "plateau/version.h"

namespace plateau::cli {
namespace {

struct ReportCommandOptions {
  report::ReportOptions report;
  std::string out;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

int make_report(const ReportCommandOptions& o) {
  std::vector<std::string> inputs = o.report.files;
  inputs.insert(inputs.end(), o.report.pictures.begin(), o.report.pictures.end());
  check_outputs({{"--out", o.out, /*may_be_stdout=*/true}}, inputs);
  report::ReportOptions report = o.report;
  report.made = fmt::format("plateau {}, {}", PLATEAU_VERSION, today());
  write_text_file(o.out, report::make_report(report));
  return kExitAnswered;
}

}  // namespace

Command add_report_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "Make one HTML page of the results of bench and eval");
  auto o = std::make_shared<ReportCommandOptions>();
  command->add_option("files", o->report.files, "JSON lines of plateau bench and plateau eval");
  command->add_option("--out", o->out, "The page to write, - for stdout")->required();
  command->add_option("--title", o->report.title, "Of the page")->capture_default_str();
  command
      ->add_option("--picture", o->report.pictures,
                   "A PNG, JPEG or WebP to show, such as a heatmap of plateau run; repeat for more")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return {command, [o] { return make_report(*o); }};
}

}  // namespace plateau::cli
