#include "tests/harness/report/sinks.h"

#include <algorithm>
#include <map>

#include "harness/core/text/visible_text.h"
#include "harness/page/report_page.h"
#include "harness/report/console.h"
#include "harness/report/export.h"
#include "harness/report/json.h"
#include "tests/harness/report/format_readers.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

std::string console(const Report& report, bool color) {
  ConsoleStyle style{color, true, false, 1};
  return result_rows(report.cases, style, {ShareColumn::of_best, "cpu"}) + failures_text(report.cases, style) +
         scaling_text(report.cases, style) + links_text(report.cases, style, rank_places(report.run.devices.front())) +
         summary_text(report.cases, style) +
         verdict_text(report.cases, {1, "a verdict failed", "report.json", report.run.complete, 1.0}, style);
}

// Commands are only recognized at the start of a line. Lines have no trailing blanks.
std::vector<std::string> shown(const std::string& text) {
  std::vector<std::string> ways{visible(text), printable(text)};
  for (std::string& way : ways) way.erase(way.find_last_not_of(' ') + 1);
  return ways;
}

// Charts cut labels to the available space.
std::vector<std::string> at_least_its_start(const std::string& text) {
  std::vector<std::string> ways = shown(text);
  ways.emplace_back(first_columns(printable(text), 24));
  return ways;
}

std::vector<std::string> one_line(const std::string& text) { return {printable(text)}; }

Sink terminal(bool color) {
  return {color ? "terminal, in colour" : "terminal", [color](const Report& r) { return console(r, color); },
          terminal_problem, without_colors, shown};
}

std::string junit_sink_problem(const std::string& output, const std::string& harmless) {
  std::string problem;
  const auto root = read_xml(output, problem);
  if (!root) return problem;
  const auto other = read_xml(harmless, problem);
  return !other || root->paths() == other->paths() ? "" : "other elements";
}

void add_text(const XmlElement& element, std::string& text) {
  for (const auto& [key, value] : element.attributes) text += value + "\n";
  text += element.text + "\n";
  for (const XmlElement& child : element.children) add_text(child, text);
}

std::string junit_read(const std::string& output) {
  std::string problem;
  std::string text;
  if (const auto root = read_xml(output, problem)) add_text(*root, text);
  return text;
}

std::string csv_problem(const std::string& output, const std::string& harmless) {
  const std::vector<CsvRow> rows = csv_rows(output);
  if (rows.size() != csv_rows(harmless).size()) return "another number of rows";
  for (const CsvRow& row : rows) {
    if (row.size() != rows[0].size()) return "another number of cells";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool number = rows[0][i] == "value" && row[i].find_first_not_of("0123456789.e+-") == std::string::npos;
      if (!number && !row[i].empty() && std::string("=+-@\t\r").find(row[i][0]) != std::string::npos)
        return "a cell that a table program would run: " + row[i];
      if (std::any_of(row[i].begin(), row[i].end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
        return "a control character";
    }
  }
  return utf8_problem(output);
}

std::string csv_read(const std::string& output) {
  std::string text;
  for (const CsvRow& row : csv_rows(output)) {
    for (const std::string& cell : row) text += cell + "\n";
  }
  return text;
}

// The number of marks for invalid UTF-8 is not defined.
std::string one_mark_each(std::string text) {
  const std::string mark = "\ufffd";
  for (std::size_t at = text.find(mark + mark); at != std::string::npos; at = text.find(mark + mark, at))
    text.erase(at, mark.size());
  return text;
}

std::vector<std::string> as_utf8(const std::string& text) {
  return {one_mark_each(Json::parse(dump(Json(text))).get<std::string>())};
}

// DEL, C0 except newlines, C1: control characters of terminals.
std::string steering_problem(const std::string& output) {
  for (std::size_t i = 0; i < output.size(); ++i) {
    const auto c = static_cast<unsigned char>(output[i]);
    const auto next = static_cast<unsigned char>(i + 1 < output.size() ? output[i + 1] : 'x');
    if ((c < 0x20 && c != '\n') || c == 0x7f || (c == 0xc2 && next >= 0x80 && next <= 0x9f))
      return "a control character";
  }
  return "";
}

std::string prometheus_problem(const std::string& output, const std::string& harmless) {
  if (const std::string problem = steering_problem(output); !problem.empty()) return problem;
  try {
    return prometheus::samples_of(output).size() == prometheus::samples_of(harmless).size() ? "" : "other samples";
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::string prometheus_read(const std::string& output) {
  std::string text;
  for (const prometheus::Sample& sample : prometheus::samples_of(output)) {
    for (const auto& [key, value] : sample.labels) text += value + "\n";
  }
  return one_mark_each(text);
}

std::size_t members_of(const Json& json) {
  std::size_t count = 1;
  if (json.is_structured()) {
    for (const Json& member : json) count += members_of(member);
  }
  return count;
}

std::string json_problem(const std::string& output, const std::string& harmless) {
  if (const std::string problem = steering_problem(output); !problem.empty()) return problem;
  const Json json = Json::parse(output, nullptr, false);
  if (json.is_discarded()) return "no JSON";
  const Json other = Json::parse(harmless);
  return members_of(json) == members_of(other) ? "" : "other members";
}

void add_strings(const Json& json, std::string& text) {
  if (json.is_string()) text += json.get<std::string>() + "\n";
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    text += key + "\n";
    add_strings(value, text);
  }
}

std::string json_read(const std::string& output) {
  std::string text;
  add_strings(Json::parse(output), text);
  return one_mark_each(text);
}

Sink json_sink(const std::string& name, std::function<std::string(const Report&)> written) {
  return {name, std::move(written), json_problem, json_read, as_utf8};
}

// The number of each tag with its attributes. Their order follows from the texts, by which tables and legends are
// sorted; cells of long texts have a class.
std::map<std::string, int> tags_of(const std::string& document) {
  std::map<std::string, int> counts;
  for (const std::string& tag : read_html(document).tags) {
    if (!tag.starts_with("text ") && tag != "/text") ++counts[tag == "td class" ? "td" : tag];
  }
  return counts;
}

std::string html_problem(const std::string& output, const std::string& harmless) {
  try {
    const std::map<std::string, int> tags = tags_of(output);
    const std::map<std::string, int> ours = tags_of(harmless);
    for (const auto& [tag, count] : tags) {
      const auto found = ours.find(tag);
      if (found == ours.end() || found->second != count) return "another number of tags: " + tag;
    }
    if (tags.size() != ours.size()) return "a tag is missing";
    return utf8_problem(output);
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::string drawings_of(const Report& report) {
  std::string text;
  for (const page::Drawing& drawing : page::report_drawings({&report, 1})) text += drawing.svg;
  return text;
}

std::vector<Sink> all_sinks() {
  std::vector<Sink> all{terminal(false), terminal(true)};
  all.push_back({"JUnit", junit_text, junit_sink_problem, junit_read, shown});
  all.push_back({"Markdown", [](const Report& r) { return markdown_text(r, max_summary_bytes); }, markdown_problem,
                 markdown_read, one_line});
  all.push_back({"GitHub", [](const Report& r) { return annotations_text(annotations_of(r), "gpubench"); },
                 annotations_problem, annotations_read, one_line});
  all.push_back({"page",
                 [](const Report& r) {
                   return page::report_page({&r, 1});
                 },
                 html_problem, [](const std::string& output) { return read_html(output).text; }, at_least_its_start});
  // Nothing is read back: labels are cut.
  all.push_back({"SVG", drawings_of, html_problem, [](const std::string&) { return std::string(); }, shown});
  all.push_back({"CSV", exported_csv, csv_problem, csv_read, one_line});
  all.push_back({"CSV by case", exported_csv_cases, csv_problem, csv_read, one_line});
  all.push_back({"Prometheus", exported_prometheus, prometheus_problem, prometheus_read, one_line});
  for (const Detail detail : enum_values<Detail>)
    all.push_back(json_sink("report.json, " + std::string(name(detail)),
                            [detail](const Report& r) { return exported(r, ExportFormat::report, detail); }));
  for (const ExportFormat format : enum_values<ExportFormat>) {
    if (format == ExportFormat::report || format == ExportFormat::csv || format == ExportFormat::csv_cases ||
        format == ExportFormat::prometheus)
      continue;
    all.push_back(json_sink(std::string(name(format)), [format](const Report& r) { return exported(r, format); }));
  }
  return all;
}

}  // namespace

const std::vector<Sink>& sinks() {
  static const std::vector<Sink> all = all_sinks();
  return all;
}

}  // namespace gpubench
