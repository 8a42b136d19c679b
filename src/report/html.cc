#include "report/html.h"

#include <fmt/format.h>

#include <iterator>

#include "report/assets.h"

namespace plateau::report {
namespace {

class HtmlWriter {
 public:
  /// Markup of ours.
  void raw(std::string_view markup) { html_ += markup; }
  /// Text from anywhere.
  void text(std::string_view text) { html_ += escape_html(text); }
  void element(std::string_view name, std::string_view content) {
    fmt::format_to(std::back_inserter(html_), "<{0}>{1}</{0}>", name, escape_html(content));
  }
  std::string take() { return std::move(html_); }

 private:
  std::string html_;
};

void write_table(const Table& table, HtmlWriter& out) {
  out.raw(
      "<details class=\"numbers\"><summary>Numbers</summary><div "
      "class=\"scroll\"><table><thead><tr>");
  for (const std::string& title : table.header) out.element("th", title);
  out.raw("</tr></thead><tbody>");
  for (const auto& row : table.rows) {
    out.raw("<tr>");
    for (const std::string& cell : row) out.element("td", cell);
    out.raw("</tr>");
  }
  out.raw("</tbody></table></div></details>\n");
}

void write_source(const Source& source, HtmlWriter& out) {
  out.raw("<dl class=\"source\">");
  const auto item = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    out.element("dt", name);
    out.element("dd", value);
  };
  item("file", source.file);
  item("command", source.command);
  item("model", source.model);
  item("machine", source.machine);
  item("build", source.build);
  item("date", source.date);
  out.raw("</dl>");
}

void write_figure(const Figure& figure, const std::vector<Source>& sources, int number,
                  HtmlWriter& out) {
  out.raw("<figure>");
  out.raw("<figcaption>");
  out.text(figure.title);
  out.raw("</figcaption>");
  out.raw(
      fmt::format("<div class=\"plot\" id=\"plot-{}\"></div>"
                  "<script type=\"application/json\" class=\"plot-data\" data-for=\"plot-{}\">",
                  number, number));
  out.raw(escape_json_for_script(plot_json(figure.plot)));
  out.raw("</script>\n");
  if (!figure.note.empty()) out.element("p", figure.note);
  write_table(figure.table, out);
  out.raw("<details><summary>Source</summary>");
  for (const size_t source : figure.sources) write_source(sources.at(source), out);
  out.raw("</details></figure>\n");
}

void write_head(const Page& page, HtmlWriter& out) {
  out.raw(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Nothing is fetched, whatever the data say.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n");
  out.element("title", page.title);
  out.raw("\n<style>\n");
  out.raw(style_sheet());
  out.raw("</style>\n</head>\n<body>\n");
}

void write_header(const Page& page, HtmlWriter& out) {
  out.raw("<header>");
  out.element("h1", page.title);
  out.raw("<p class=\"made\">");
  out.text(page.made);
  out.raw("</p><nav>");
  const auto link = [&](const std::string& id, const std::string& title) {
    out.raw("<a href=\"#" + escape_html(id) + "\">");
    out.text(title);
    out.raw("</a>");
  };
  for (const Section& section : page.sections) link(section.id, section.title);
  if (!page.pictures.empty()) link("pictures", "Pictures");
  if (!page.failures.empty()) link("failures", "Failures");
  out.raw("</nav></header>\n<main>\n");
  if (page.key_figures.empty()) return;
  out.raw("<div class=\"keys\">");
  for (const KeyFigure& key : page.key_figures) {
    out.raw("<div class=\"key\">");
    out.element("strong", key.value);
    out.element("span", key.label);
    out.raw("</div>");
  }
  out.raw("</div>\n");
}

void write_pictures(const Page& page, HtmlWriter& out) {
  if (page.pictures.empty()) return;
  out.raw(
      "<section id=\"pictures\"><h2>Pictures</h2><p>What was remembered of a picture: bright "
      "where many layers and heads still hold the tokens.</p><div class=\"pictures\">");
  for (const Picture& picture : page.pictures) {
    out.raw("<figure><img alt=\"" + escape_html(picture.name) + "\" src=\"" +
            escape_html(picture.uri) + "\">");
    out.element("figcaption", picture.name);
    out.raw("</figure>");
  }
  out.raw("</div></section>\n");
}

void write_failures(const Page& page, HtmlWriter& out) {
  if (page.failures.empty()) return;
  out.raw(
      "<section id=\"failures\"><h2>Measurements that failed</h2><div class=\"scroll\"><table>"
      "<thead><tr><th>measurement</th><th>why</th><th>file</th></tr></thead><tbody>");
  for (const BenchFailure& failure : page.failures) {
    out.raw("<tr>");
    out.element("td", failure.point);
    out.element("td", failure.error);
    out.element("td", page.sources.at(failure.source).file);
    out.raw("</tr>");
  }
  out.raw("</tbody></table></div></section>\n");
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string escape_json_for_script(std::string_view json) {
  std::string escaped;
  for (const char c : json) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string to_html(const Page& page) {
  HtmlWriter out;
  write_head(page, out);
  write_header(page, out);
  int n_figures = 0;
  for (const Section& section : page.sections) {
    out.raw("<section id=\"" + escape_html(section.id) + "\">");
    out.element("h2", section.title);
    out.element("p", section.text);
    for (const Figure& figure : section.figures) {
      write_figure(figure, page.sources, n_figures++, out);
    }
    out.raw("</section>\n");
  }
  write_pictures(page, out);
  write_failures(page, out);
  out.raw("</main>\n<footer><details><summary>Plots by plotly.js</summary><pre>");
  out.text(plotly_license());
  out.raw("</pre></details></footer>\n");
  if (n_figures > 0) {
    out.raw("<script>\n");
    out.raw(plotly());
    out.raw("\n</script>\n<script>\n");
    out.raw(script());
    out.raw("</script>\n");
  }
  out.raw("</body>\n</html>\n");
  return out.take();
}

}  // namespace plateau::report
