// The page: one file, whole, with the data in it, and nothing from a file that could become markup.
#include "report/report.h"

#include <gmock/gmock.h>

#include <fstream>

#include "report/assets.h"
#include "report/html.h"
#include "report/picture.h"
#include "report/report_lines.h"
#include "support/expect_error.h"

namespace plateau::report {
namespace {

using testing::answer_line;
using testing::bench_line;
using testing::eval_header;
using testing::fingerprint_line;
using ::testing::HasSubstr;
using testing::json;
using ::testing::Not;
using testing::write_lines;

/// The documents of the script elements that hold plots.
std::vector<json> plots_of(const std::string& html) {
  std::vector<json> plots;
  const std::string open = "class=\"plot-data\"";
  for (size_t at = html.find(open); at != std::string::npos; at = html.find(open, at + 1)) {
    const size_t begin = html.find('>', at) + 1;
    plots.push_back(json::parse(html.substr(begin, html.find("</script>", begin) - begin)));
  }
  return plots;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class ReportTest : public ::testing::Test {
 protected:
  std::string page(const std::vector<json>& lines) {
    return make_report({.files = {write_lines(dir_, "r.jsonl", lines)}});
  }
  test::TempDir dir_;
};

TEST_F(ReportTest, HoldsDataTablesSourcesAndTheLibrary) {
  const std::string html = page({fingerprint_line(), bench_line(1024, 256)});
  const auto plots = plots_of(html);
  ASSERT_EQ(plots.size(), 3u);  // memory, cache, time
  EXPECT_EQ(plots[0]["series"][0]["y"][0], 50);
  EXPECT_EQ(plots[0]["series"][0]["x"][0], 1024);
  EXPECT_THAT(html, HasSubstr("<td>12345</td>"));
  EXPECT_THAT(html, HasSubstr("plateau bench --shape 0.5b"));
  EXPECT_THAT(html, HasSubstr("Test CPU"));
  EXPECT_THAT(html, HasSubstr("Copyright"));
  EXPECT_THAT(html, HasSubstr("Permission is hereby granted"));
  EXPECT_NE(html.find(std::string(plotly().substr(0, 200))), std::string::npos);
}

TEST_F(ReportTest, NeedsNothingFromElsewhere) {
  const std::string html = page({fingerprint_line(), bench_line(1024, 256)});
  const size_t library = html.find(std::string(plotly()));
  ASSERT_NE(library, std::string::npos);
  const std::string ours = html.substr(0, library) + html.substr(library + plotly().size());
  for (const char* reference : {" src=\"http", " href=\"http", "@import", "url(http", "<link"}) {
    EXPECT_THAT(ours, Not(HasSubstr(reference)));
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST_F(ReportTest, SectionsWithoutDataAreLeftOut) {
  const std::string html = page({eval_header(), answer_line("a", "snapkv", 64, true)});
  EXPECT_THAT(html, Not(HasSubstr("id=\"memory\"")));
  EXPECT_THAT(html, Not(HasSubstr("id=\"pictures\"")));
  EXPECT_THAT(html, Not(HasSubstr("id=\"failures\"")));
  EXPECT_THAT(html, HasSubstr("id=\"accuracy\""));
}

TEST_F(ReportTest, TextFromFilesIsNeverMarkup) {
  const std::string evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<!--";
  json fingerprint = fingerprint_line();
  fingerprint["command"] = evil;
  fingerprint["cpu"] = evil;
  fingerprint["model"]["file"] = evil;
  json header = eval_header();
  header["set"] = evil;
  json failed = bench_line(64, 256, {{"error", evil}, {"policy", evil}});
  const std::string bench = write_lines(
      dir_, "b.jsonl", {fingerprint, bench_line(1024, 256, {{"policy", evil}}), failed});
  const std::string eval =
      write_lines(dir_, "e.jsonl",
                  {header, answer_line("a", evil, 64, true), answer_line("b", evil, 64, false)});
  const std::string plain = make_report(
      {.files = {write_lines(dir_, "p.jsonl", {fingerprint_line(), bench_line(1024, 256)})}});
  const std::string html = make_report({.files = {bench, eval}, .title = evil});
  EXPECT_THAT(html, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(html, Not(HasSubstr("<img src=x")));
  const auto plots = plots_of(html);  // whole documents still
  EXPECT_EQ(plots[0]["series"][0]["name"], evil + ", 256 tokens");
  // Script elements are ours alone: one per plot, the library and our script.
  EXPECT_EQ(count(html, "</script>"), plots.size() + 2);
  EXPECT_EQ(count(plain, "</script>"), plots_of(plain).size() + 2);
}

TEST_F(ReportTest, TheLibraryDoesNotCloseItsElement) {
  EXPECT_EQ(plotly().find("</script"), std::string_view::npos);
  EXPECT_EQ(script().find("</script"), std::string_view::npos);
}

TEST_F(ReportTest, PicturesAreInside) {
  const std::string bytes = "\x89PNG\r\n\x1a\nrest";
  std::ofstream(dir_.file("heat <1>.png"), std::ios::binary) << bytes;
  const std::string html = make_report({.pictures = {dir_.file("heat <1>.png")}});
  EXPECT_THAT(html, HasSubstr("src=\"data:image/png;base64," + base64(bytes) + "\""));
  EXPECT_THAT(html, HasSubstr("heat &lt;1&gt;.png"));
}

TEST_F(ReportTest, WhatIsNoPictureIsRefused) {
  std::ofstream(dir_.file("a.png")) << "<svg onload=alert(1)>";
  test::expect_error([&] { (void)make_report({.pictures = {dir_.file("a.png")}}); },
                     ErrorCode::kUnsupported, {"a.png", "PNG, JPEG or WebP"});
  test::expect_error([&] { (void)make_report({.pictures = {dir_.file("none.png")}}); },
                     ErrorCode::kNotFound, {"none.png"});
}

TEST_F(ReportTest, NothingToShow) {
  test::expect_error([] { (void)make_report({}); }, ErrorCode::kInvalidArgument, {"[report]"});
}

TEST(Base64, Rfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(EscapeHtml, AllFive) { EXPECT_EQ(escape_html("<&>\"'"), "&lt;&amp;&gt;&quot;&#39;"); }

}  // namespace
}  // namespace plateau::report
