#include "report/assets.h"

// The assembler reads the files; the compiler would take long over a megabyte of literals.
#define PLATEAU_EMBED(name, path)                                                       \
  __asm__(                                                                              \
      ".pushsection .rodata\n"                                                          \
      ".balign 16\n"                                                                    \
      "plateau_asset_" #name                                                            \
      ":\n"                                                                             \
      ".incbin \"" path                                                                 \
      "\"\n"                                                                            \
      "plateau_asset_" #name                                                            \
      "_end:\n"                                                                         \
      ".byte 0\n"                                                                       \
      ".popsection\n");                                                                 \
  extern "C" {                                                                          \
  extern const char plateau_asset_##name[] __attribute__((visibility("hidden")));       \
  extern const char plateau_asset_##name##_end[] __attribute__((visibility("hidden"))); \
  }

PLATEAU_EMBED(css, PLATEAU_REPORT_DIR "/report.css")
PLATEAU_EMBED(js, PLATEAU_REPORT_DIR "/report.js")
PLATEAU_EMBED(plotly, PLATEAU_PLOTLY_DIR "/plotly-basic.min.js")
PLATEAU_EMBED(license, PLATEAU_PLOTLY_DIR "/LICENSE")

namespace plateau::report {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::string_view style_sheet() { return between(plateau_asset_css, plateau_asset_css_end); }
std::string_view script() { return between(plateau_asset_js, plateau_asset_js_end); }
std::string_view plotly() { return between(plateau_asset_plotly, plateau_asset_plotly_end); }
std::string_view plotly_license() {
  return between(plateau_asset_license, plateau_asset_license_end);
}

}  // namespace plateau::report
