#include "report/report.h"

#include <filesystem>
#include <iterator>

#include "base/check.h"
#include "report/bench_figures.h"
#include "report/eval_figures.h"
#include "report/html.h"
#include "report/picture.h"
#include "report/reader.h"

namespace plateau::report {
namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

std::string make_report(const ReportOptions& options) {
  if (options.files.empty() && options.pictures.empty()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[report] expected result files or pictures, got none");
  }
  const Records records = read_records(options.files);
  Page page;
  page.title = options.title;
  page.made = options.made;
  page.key_figures = bench_key_figures(records);
  append(page.key_figures, eval_key_figures(records));
  page.sections = bench_sections(records);
  append(page.sections, eval_sections(records));
  page.failures = records.failures;
  page.sources = records.sources;
  for (const std::string& path : options.pictures) {
    page.pictures.push_back({std::filesystem::path(path).filename().string(), picture_uri(path)});
  }
  return to_html(page);
}

}  // namespace plateau::report
