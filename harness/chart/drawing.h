// What every chart begins and ends with: the <svg> element, its words for screen readers, its paper and its heading.
#pragma once

#include <string>

#include "harness/chart/canvas.h"
#include "harness/chart/svg.h"

namespace gpubench::chart {

/// A drawing whose height is known when its content is.
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

  /// The whole <svg> element, so high.
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
