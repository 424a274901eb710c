// throughput_by_batch(): see throughput.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/page/rates.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

// Above this, the smaller half of a linear axis would hold the whole of a series.
constexpr double batches_logarithmic_from = 20.0;

bool has(const CaseRecord& record, std::string_view name) {
  return std::any_of(record.c.dims.begin(), record.c.dims.end(), [&](const auto& dim) { return dim.first == name; });
}

// A report does not say which dimension --batch sets. By the suites' names: b; n of images (n, h, w); the rows m of a
// matrix product, which are tokens. Empty where a case has none of them.
std::string batch_dimension(const CaseRecord& record) {
  if (has(record, "b")) return "b";
  if (has(record, "n") && has(record, "h") && has(record, "w")) return "n";
  if (has(record, "m") && has(record, "n") && has(record, "k")) return "m";
  return "";
}

std::string meaning(const std::string& dimension) {
  if (dimension == "n") return "batch (n), images";
  return dimension == "m" ? "rows (m), tokens of the batch" : "batch (b)";
}

std::string without(const Dims& dims, const std::string& name) {
  std::string text;
  for (const auto& [dim, extent] : dims) {
    if (dim != name) text += fmt::format("{}{}={}", text.empty() ? "" : " ", dim, extent);
  }
  return text;
}

struct Shape {
  std::string rest;  // the other dimensions
  std::vector<Entry> entries;
};

std::size_t batches_of(const Shape& shape, const std::string& dimension) {
  std::set<std::int64_t> batches;
  for (const Entry& e : shape.entries) batches.insert(e.record->c.dim(dimension));
  return batches.size();
}

std::vector<Shape> shapes_of(const WorkloadEntries& workload, const std::string& dimension) {
  std::vector<Shape> shapes;
  for (const Entry& e : workload.entries) {
    if (batch_dimension(*e.record) != dimension) continue;
    const std::string rest = without(e.record->c.dims, dimension);
    auto same = std::find_if(shapes.begin(), shapes.end(), [&](const Shape& s) { return s.rest == rest; });
    if (same == shapes.end()) same = shapes.insert(shapes.end(), {rest, {}});
    same->entries.push_back(e);
  }
  std::erase_if(shapes, [&](const Shape& s) { return batches_of(s, dimension) < 2; });
  return shapes;
}

void choose_scale(chart::PlotChart& plot) {
  double least = 0.0;
  double most = 0.0;
  for (const chart::Series& series : plot.series) {
    for (const chart::Point& point : series.points) {
      least = least == 0.0 ? point.y : std::min(least, point.y);
      most = std::max(most, point.y);
    }
  }
  if (most > batches_logarithmic_from * least) {
    plot.y.scale = chart::Scale::log10;
  } else {
    plot.y.low = 0.0;
  }
}

Figure curve(const WorkloadEntries& workload, const Shape& shape, const std::string& dimension) {
  chart::PlotChart plot;
  plot.title = fmt::format("{}{}{}", workload.title(), shape.rest.empty() ? "" : ", ", shape.rest);
  plot.x.title = meaning(dimension);
  plot.x.scale = chart::Scale::log2;
  plot.y = rate_axis(workload.unit, chart::Scale::linear);
  for (const Entry& e : shape.entries) {
    const auto batch = e.record->c.dim(dimension);
    const std::string series = series_name(e);
    add_point(plot.series, series, chart::Mark::line,
              rate_point(*e.record, static_cast<double>(batch),
                         fmt::format("{}={} · {}: {}", dimension, batch, series, rate_text(*e.record))));
  }
  for (chart::Series& series : plot.series) sort_by_x(series.points);
  choose_scale(plot);
  plot.description = fmt::format("{} of {} against its batch size, {}.", workload.unit, plot.title,
                                 counted(plot.series.size(), "precision"));
  return {slug(workload.title() + " " + shape.rest), plot, rates_table(shape.entries, DimsText(shape.entries))};
}

}  // namespace

Section throughput_by_batch(std::span<const Side> sides) {
  Section section{"batch",
                  "Throughput against batch size",
                  "The same layer with more rows, images or sequences at once. Where the line turns flat, a larger "
                  "batch no longer fills the device better.",
                  {{}}};
  for (const WorkloadEntries& workload : by_workload(sides, [](const CaseRecord& r) { return r.c.ranks == 1; })) {
    const std::string dimension = batch_dimension(*workload.entries.front().record);
    if (dimension.empty()) continue;
    for (const Shape& shape : shapes_of(workload, dimension))
      section.groups[0].figures.push_back(curve(workload, shape, dimension));
  }
  return section;
}

}  // namespace gpubench::page
