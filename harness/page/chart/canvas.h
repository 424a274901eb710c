// Writes SVG: elements with escaped text and short numbers, and the frame of every chart: <svg>, its description for
// screen readers, background and heading.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "harness/page/chart/chart.h"

namespace gpubench::chart {

/// In user units, rounded to a tenth: 12, 3.5, -0.1; never "-0" or an exponent.
[[nodiscard]] std::string number(double value);

class AttributeValue {
 public:
  AttributeValue(double value) : text_(number(value)) {}
  AttributeValue(int value) : text_(std::to_string(value)) {}
  AttributeValue(std::string_view value);
  AttributeValue(const std::string& value) : AttributeValue(std::string_view(value)) {}
  AttributeValue(const char* value) : AttributeValue(std::string_view(value)) {}

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct Attribute {
  std::string_view name;
  AttributeValue value;
};

/// The d of a <path>: absolute positions in tenths of a unit.
class PathData {
 public:
  PathData& move(double x, double y);
  PathData& line(double x, double y);
  PathData& close();
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

enum class Anchor { start, middle, end };

class Canvas {
 public:
  /// close() ends the innermost open element.
  void open(std::string_view element, std::initializer_list<Attribute> attributes = {});
  void close();

  /// A shape. `note` becomes its <title>, shown on hover.
  void shape(std::string_view element, std::initializer_list<Attribute> attributes, std::string_view note = {});
  void line(double x1, double y1, double x2, double y2, std::string_view style);

  /// `y`: the baseline. `style`: a class of the style sheet.
  void text(double x, double y, std::string_view text, std::string_view style, Anchor anchor = Anchor::start);

  void words(std::string_view element, std::string_view text, std::initializer_list<Attribute> attributes = {});

  void append(const Canvas& other) { markup_ += other.markup_; }

  [[nodiscard]] const std::string& markup() const { return markup_; }

 private:
  void start(std::string_view element, std::initializer_list<Attribute> attributes);

  std::string markup_;
  std::vector<std::string> open_;
};

/// A drawing whose height is set at the end.
class Drawing {
 public:
  /// Throws std::invalid_argument unless `id` consists of letters, digits and dashes.
  Drawing(const std::string& title, const std::string& description, const std::string& id, Placement placement);

  [[nodiscard]] Canvas& canvas() { return canvas_; }
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] double top() const { return top_; }
  void add_to_description(const std::string& sentence);

  /// The <svg> element. `height` in units.
  [[nodiscard]] std::string finished(double height) const;

 private:
  std::string title_;
  std::string description_;
  std::string id_;
  Placement placement_;
  double top_ = 0.0;
  Canvas canvas_;
};

}  // namespace gpubench::chart
