// A report's parts before they become HTML: figures with a plot, a table and their sources. What a
// plot looks like is decided in report.js; here is what it shows.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace plateau::report {

struct Axis {
  std::string title;  // with its unit
  bool log = false;
};

/// What a series stands for; decides its colour.
enum class Role { kOther, kFullCache, kLlamaCpp };

struct Series {
  std::string name;
  Role role = Role::kOther;
  std::vector<double> x;
  std::vector<std::string> labels;  // bars: instead of x; points: shown with each
  std::vector<double> y;
  std::vector<double> low, high;  // ends of the error bars; empty: none
};

/// The series of that name, added in that role where there is none yet.
Series& series_of(std::vector<Series>& all, const std::string& name, Role role);

enum class Mark { kLines, kPoints, kBars, kStackedBars };

struct Plot {
  Mark mark = Mark::kLines;
  Axis x;
  Axis y;
  std::vector<Series> series;
};

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

struct Figure {
  std::string title;
  Plot plot;
  Table table;
  std::string note;          // how to read it; may be empty
  std::set<size_t> sources;  // in Records::sources
};

struct Section {
  std::string id;  // of the HTML element
  std::string title;
  std::string text;  // what is shown, one or two sentences
  std::vector<Figure> figures;
};

/// A number that sums a report up.
struct KeyFigure {
  std::string value;
  std::string label;
};

/// The plot as JSON for report.js.
std::string plot_json(const Plot& plot);

/// "1.23", with as many digits as a reader needs.
std::string format_number(double value);
/// "1.23 (1.20-1.30)".
std::string format_spread(double median, double min, double max);

}  // namespace plateau::report
