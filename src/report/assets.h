// The files that every report carries.
#pragma once

#include <string_view>

namespace plateau::report {

std::string_view style_sheet();     // report.css
std::string_view script();          // report.js
std::string_view plotly();          // plotly.js, basic bundle, minified
std::string_view plotly_license();  // its licence text

}  // namespace plateau::report
