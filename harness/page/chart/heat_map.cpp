#include <algorithm>
#include <cmath>

#include "harness/page/chart/canvas.h"
#include "harness/page/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr double map_margin = 6.0;
constexpr double cell_height = 26.0;
constexpr double two_line_height = 40.0;    // of a label, or of a number and a word
constexpr double widest_row_label = 132.0;  // if the columns need the rest
constexpr double narrowest_cell = 44.0;
constexpr double marked_cell = 60.0;  // with cross and word
constexpr double widest_cell = 72.0;

// Some of the columns, and the rows with a cell in them.
struct Panel {
  std::size_t first = 0;
  std::size_t end = 0;
  std::vector<std::size_t> rows;
};

const HeatCell* cell_at(const HeatMap& chart, std::size_t row, std::size_t column) {
  if (row >= chart.cells.size() || column >= chart.cells[row].size()) return nullptr;
  const HeatCell& cell = chart.cells[row][column];
  return cell.text.empty() ? nullptr : &cell;
}

// Columns that do not fit continue below: a page of 320 pixels cannot widen the drawing.
std::vector<Panel> panels_of(const HeatMap& chart, std::size_t columns_per_panel) {
  std::vector<Panel> panels;
  for (std::size_t first = 0; first < chart.columns.size(); first += columns_per_panel) {
    Panel panel{first, std::min(first + columns_per_panel, chart.columns.size()), {}};
    for (std::size_t row = 0; row < chart.rows.size(); ++row) {
      for (std::size_t column = panel.first; column < panel.end; ++column) {
        if (cell_at(chart, row, column) == nullptr) continue;
        panel.rows.push_back(row);
        break;
      }
    }
    if (!panel.rows.empty()) panels.push_back(panel);
  }
  return panels;
}

struct Grid {
  double label = 0.0;
  double left = 0.0;
  double cell_width = 0.0;
  std::size_t columns_per_panel = 1;
};

Grid grid_of(const HeatMap& chart) {
  double label = 0.0;
  for (const std::string& row : chart.rows) label = std::max(label, text_width(row, text_size));
  double cell = narrowest_cell;
  for (const std::string& column : chart.columns) cell = std::max(cell, text_width(column, text_size) + 6.0);
  for (const auto& row : chart.cells)
    for (const HeatCell& one : row)
      cell = std::max({cell, text_width(one.text, text_size) + 10.0, one.marked ? marked_cell : 0.0});
  Grid grid;
  cell = std::min(cell, widest_cell);
  const double beside = chart_width - 2.0 * map_margin - 8.0 - cell * static_cast<double>(chart.columns.size());
  grid.label = std::min(label, std::max(widest_row_label, beside));
  grid.left = map_margin + grid.label + 8.0;
  const double room = chart_width - map_margin - grid.left;
  const auto fitting = static_cast<std::size_t>(room / cell);
  // Balanced: 7 columns with room for 6 become 4 and 3.
  const std::size_t panels = (chart.columns.size() + fitting - 1) / fitting;
  grid.columns_per_panel = (chart.columns.size() + panels - 1) / panels;
  grid.cell_width = std::min(room / static_cast<double>(grid.columns_per_panel), widest_cell);
  return grid;
}

// A shape, since fonts may lack the letter.
void draw_cross(Canvas& canvas, double x, double y, std::string_view colour) {
  PathData cross;
  cross.move(x, y - 4.0).line(x + 8.0, y + 4.0).move(x, y + 4.0).line(x + 8.0, y - 4.0);
  canvas.shape("path", {{"class", "c-cross"}, {"stroke", colour}, {"d", cross.text()}});
}

void draw_cell(Canvas& canvas, const HeatCell& cell, double x, double y, double width, double height) {
  const std::string colour = shade_colour(cell.shade);
  const std::string_view ink = text_on(colour);
  const std::string text = shortened(cell.text, width - 4.0, text_size);
  canvas.shape("rect",
               {{"class", "c-cell"}, {"fill", colour}, {"x", x}, {"y", y}, {"width", width}, {"height", height}},
               cut(cell.note, 300));
  const double middle = x + width / 2.0;
  const double baseline = y + (cell.marked ? 18.0 : height / 2.0 + 5.0);
  canvas.words("text", text, {{"fill", ink}, {"x", middle}, {"y", baseline}, {"text-anchor", "middle"}});
  if (!cell.marked) return;
  draw_cross(canvas, middle - 22.0, y + 28.0, ink);
  canvas.words("text", "over", {{"fill", ink}, {"x", middle + 5.0}, {"y", y + 33.0}, {"text-anchor", "middle"}});
  canvas.shape(
      "rect",
      {{"class", "c-over-limit"}, {"x", x + 2.0}, {"y", y + 2.0}, {"width", width - 4.0}, {"height", height - 4.0}});
}

double draw_panel(Canvas& canvas, const HeatMap& chart, const Grid& grid, const Panel& panel, double y) {
  const auto x_of = [&](std::size_t column) {
    return grid.left + static_cast<double>(column - panel.first) * grid.cell_width;
  };
  y += line_height;
  for (std::size_t column = panel.first; column < panel.end; ++column)
    canvas.text(x_of(column) + grid.cell_width / 2.0, y - 3.0,
                shortened(chart.columns[column], grid.cell_width - 3.0, text_size), "c-text", Anchor::middle);
  for (const std::size_t row : panel.rows) {
    const std::vector<std::string> labels = wrapped(chart.rows[row], grid.label, text_size, 2);
    double height = labels.size() > 1 ? two_line_height : cell_height;
    for (std::size_t column = panel.first; column < panel.end; ++column) {
      const HeatCell* cell = cell_at(chart, row, column);
      if (cell != nullptr && cell->marked) height = two_line_height;
    }
    double baseline = y + height / 2.0 + 5.0 - 8.0 * (static_cast<double>(labels.size()) - 1.0);
    for (const std::string& label : labels) {
      canvas.text(grid.left - 8.0, baseline, label, "c-text", Anchor::end);
      baseline += 16.0;
    }
    for (std::size_t column = panel.first; column < panel.end; ++column) {
      const HeatCell* cell = cell_at(chart, row, column);
      if (cell != nullptr) draw_cell(canvas, *cell, x_of(column), y, grid.cell_width, height);
    }
    y += height;
  }
  return y + 10.0;
}

bool has_marked(const HeatMap& chart) {
  for (std::size_t row = 0; row < chart.rows.size(); ++row) {
    for (std::size_t column = 0; column < chart.columns.size(); ++column) {
      const HeatCell* cell = cell_at(chart, row, column);
      if (cell != nullptr && cell->marked) return true;
    }
  }
  return false;
}

}  // namespace

std::string svg(const HeatMap& chart, const std::string& id, Placement placement) {
  Drawing drawing(chart.title, chart.description, id, placement);
  if (chart.columns.empty()) return "";
  const Grid grid = grid_of(chart);
  const std::vector<Panel> panels = panels_of(chart, grid.columns_per_panel);
  if (panels.empty()) return "";
  double y = drawing.top();
  for (const Panel& panel : panels) y = draw_panel(drawing.canvas(), chart, grid, panel, y);
  if (has_marked(chart)) {
    draw_cross(drawing.canvas(), map_margin + 2.0, y + 5.0, "currentColor");
    drawing.canvas().text(map_margin + 16.0, y + 10.0, "and a box: over the limit", "c-muted");
    y += line_height;
  }
  return drawing.finished(y);
}

}  // namespace gpubench::chart
