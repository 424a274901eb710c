// Writes SVG: elements, with every text escaped and every number as short as it can be, and the frame of a drawing,
// which is the same for every chart: the <svg> element, its words for screen readers, its background and its heading.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "harness/page/chart/chart.h"

namespace gpubench::chart {

/// A length in user units, rounded to a tenth: 12, 3.5, -0.1; never "-0", never an exponent.
[[nodiscard]] std::string number(double value);

/// The value of an attribute; text is escaped here.
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

/// The d of a <path>: absolute positions, a tenth of a unit fine.
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

/// Elements in the order in which they are drawn, one per line.
class Canvas {
 public:
  /// Opens <element ...>; close() ends the innermost one.
  void open(std::string_view element, std::initializer_list<Attribute> attributes = {});
  void close();

  /// An element that is a shape; a note becomes its <title>, which browsers show on hover.
  void shape(std::string_view element, std::initializer_list<Attribute> attributes, std::string_view note = {});
  void line(double x1, double y1, double x2, double y2, std::string_view style);

  /// Text on the baseline y, in a class of the style sheet.
  void text(double x, double y, std::string_view text, std::string_view style, Anchor anchor = Anchor::start);

  /// An element that holds only text: <title>, <desc>.
  void words(std::string_view element, std::string_view text, std::initializer_list<Attribute> attributes = {});

  /// Draws what another canvas holds over what is here.
  void append(const Canvas& other) { markup_ += other.markup_; }

  [[nodiscard]] const std::string& markup() const { return markup_; }

 private:
  void start(std::string_view element, std::initializer_list<Attribute> attributes);

  std::string markup_;
  std::vector<std::string> open_;
};

/// A drawing whose height is given once its content is known.
class Drawing {
 public:
  /// Throws std::invalid_argument where `id` is not of letters, digits and dashes.
  Drawing(const std::string& title, const std::string& description, const std::string& id, Placement placement);

  [[nodiscard]] Canvas& canvas() { return canvas_; }
  [[nodiscard]] const std::string& id() const { return id_; }
  /// Where content begins: below the heading.
  [[nodiscard]] double top() const { return top_; }
  /// A sentence for the end of the description.
  void add_to_description(const std::string& sentence);

  /// The whole <svg> element, `height` units high.
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
