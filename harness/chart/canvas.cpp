#include "harness/chart/canvas.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/report/escape.h"

namespace gpubench::chart {

std::string number(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

AttributeValue::AttributeValue(std::string_view value) : text_(xml_text(value)) {}

// SVG 1.1, section 8.3: a minus sign separates numbers as a space does.
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

}  // namespace gpubench::chart
