#include "harness/page/chart/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "harness/core/text/visible_text.h"
#include "harness/page/chart/style.h"

namespace gpubench::chart {

std::string number(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

AttributeValue::AttributeValue(std::string_view value) : text_(xml_text(value)) {}

// SVG 1.1, section 8.3: a minus sign separates numbers, too.
PathData& PathData::move(double x, double y) {
  const std::string second = number(y);
  text_ += "M" + number(x) + (second.front() == '-' ? "" : " ") + second;
  return *this;
}

PathData& PathData::line(double x, double y) {
  const std::string second = number(y);
  text_ += "L" + number(x) + (second.front() == '-' ? "" : " ") + second;
  return *this;
}

PathData& PathData::close() {
  text_ += "z";
  return *this;
}

void Canvas::start(std::string_view element, std::initializer_list<Attribute> attributes) {
  markup_ += "<";
  markup_ += element;
  for (const Attribute& attribute : attributes) {
    if (attribute.value.text().empty()) continue;
    markup_ += " ";
    markup_ += attribute.name;
    markup_ += "=\"" + attribute.value.text() + "\"";
  }
}

void Canvas::open(std::string_view element, std::initializer_list<Attribute> attributes) {
  start(element, attributes);
  markup_ += ">\n";
  open_.emplace_back(element);
}

void Canvas::close() {
  markup_ += "</" + open_.back() + ">\n";
  open_.pop_back();
}

void Canvas::shape(std::string_view element, std::initializer_list<Attribute> attributes, std::string_view note) {
  start(element, attributes);
  if (note.empty()) {
    markup_ += "/>\n";
    return;
  }
  markup_ += "><title>" + xml_text(note) + "</title></";
  markup_ += element;
  markup_ += ">\n";
}

void Canvas::line(double x1, double y1, double x2, double y2, std::string_view style) {
  shape("path", {{"class", style}, {"d", PathData().move(x1, y1).line(x2, y2).text()}});
}

void Canvas::text(double x, double y, std::string_view text, std::string_view style, Anchor anchor) {
  const char* side = anchor == Anchor::middle ? "middle" : anchor == Anchor::end ? "end" : "";
  words("text", text, {{"class", style}, {"x", x}, {"y", y}, {"text-anchor", side}});
}

void Canvas::words(std::string_view element, std::string_view text, std::initializer_list<Attribute> attributes) {
  start(element, attributes);
  markup_ += ">" + xml_text(text) + "</";
  markup_ += element;
  markup_ += ">\n";
}

namespace {

// In characters, for screen readers.
constexpr std::size_t longest_title = 200;
constexpr std::size_t longest_description = 1000;
// Pixels per user unit in a separate file, where no column sets the width.
constexpr double file_scale = 1.5;

bool is_id(const std::string& id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

Drawing::Drawing(const std::string& title, const std::string& description, const std::string& id, Placement placement)
    : title_(cut(title, longest_title)), description_(description), id_(id), placement_(placement) {
  if (!is_id(id)) throw std::invalid_argument("chart id '" + id + "': expected letters, digits and dashes");
  double y = 4.0;
  for (const std::string& line : wrapped(title, chart_width - 8.0, title_size * 1.06, 2)) {
    y += 18.0;
    canvas_.text(4.0, y, line, "c-title");
  }
  top_ = y + 8.0;
}

void Drawing::add_to_description(const std::string& sentence) {
  if (!description_.empty()) description_ += " ";
  description_ += sentence;
}

std::string Drawing::finished(double height) const {
  const bool file = placement_ == Placement::file;
  Canvas whole;
  whole.open("svg", {{"xmlns", file ? "http://www.w3.org/2000/svg" : ""},
                     {"class", "c-chart"},
                     {"width", file ? number(chart_width * file_scale) : ""},
                     {"height", file ? number(height * file_scale) : ""},
                     {"viewBox", "0 0 " + number(chart_width) + " " + number(height)},
                     {"role", "img"},
                     {"aria-labelledby", id_ + "-title " + id_ + "-desc"}});
  whole.words("title", title_, {{"id", id_ + "-title"}});
  whole.words("desc", cut(description_, longest_description), {{"id", id_ + "-desc"}});
  const std::string head = whole.markup();
  whole.shape("rect", {{"class", "c-paper"}, {"width", chart_width}, {"height", height}});
  const std::string paper = whole.markup().substr(head.size());
  // The style sheet contains neither "<" nor "&".
  const std::string style = file ? "<style>\n" + chart_style() + "</style>\n" : "";
  return head + style + paper + canvas_.markup() + "</svg>\n";
}

}  // namespace gpubench::chart
