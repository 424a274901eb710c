#include "harness/chart/drawing.h"

#include <algorithm>
#include <stdexcept>

#include "harness/chart/label.h"
#include "harness/chart/style.h"

namespace gpubench::chart {
namespace {

// What is read out: longer than any name of ours, shorter than a bore.
constexpr std::size_t longest_title = 200;
constexpr std::size_t longest_description = 1000;
// Of a file's drawing, whose viewer gives it no column to fit.
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
  for (const std::string& line : wrapped(title, chart_width - 8.0, title_size * 1.06, 2)) {  // bold is wider
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
  // The style sheet is ours and has neither "<" nor "&".
  const std::string style = file ? "<style>\n" + chart_style() + "</style>\n" : "";
  return head + style + paper + canvas_.markup() + "</svg>\n";
}

}  // namespace gpubench::chart
