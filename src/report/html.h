// Sections as one HTML page that needs nothing else. Tested by tests/report/report_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/figure.h"
#include "report/records.h"

namespace plateau::report {

struct Picture {
  std::string name;
  std::string uri;
};

struct Page {
  std::string title;
  std::string made;  // program, version, date
  std::vector<KeyFigure> key_figures;
  std::vector<Section> sections;
  std::vector<Picture> pictures;
  std::vector<BenchFailure> failures;
  std::vector<Source> sources;
};

/// For text and for attribute values in double quotes.
std::string escape_html(std::string_view text);

/// For a JSON document inside a script element: no "<" is left in it.
std::string escape_json_for_script(std::string_view json);

std::string to_html(const Page& page);

}  // namespace plateau::report
