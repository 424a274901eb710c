#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

constexpr std::size_t sizes_for_a_curve = 3;
// Above this ratio, a series may lie in the smaller half of a linear axis.
constexpr double batches_logarithmic_from = 20.0;

const std::string& unit_of(std::span<const Entry> entries) { return entries.front().record->derived.headline_unit; }

std::vector<Entries> workloads_of_one_rank(std::span<const Side> sides) {
  return by_workload(entries_of(sides, [](const CaseRecord& r) { return r.c.ranks == 1; }));
}

// By the longest series: precisions differ in bytes.
bool has_curve(std::span<const Entry> workload) {
  const WorkAxis work = work_axis(workload);
  const std::vector<Entries> series = split(workload, series_name);
  return std::any_of(series.begin(), series.end(), [&](const Entries& one) {
    std::set<double> sizes;
    for (const Entry& e : one) sizes.insert(work.of(*e.record));
    return sizes.size() >= sizes_for_a_curve;
  });
}

// A line implies values between its points, so only one dimension may vary.
bool one_curve(const std::vector<chart::Series>& series, const DimsText& dims) {
  return dims.varying().size() == 1 && std::all_of(series.begin(), series.end(), [](const chart::Series& s) {
           std::set<double> sizes;
           for (const chart::Point& point : s.points) sizes.insert(point.x);
           return sizes.size() == s.points.size();
         });
}

// The published peak of the headline's unit, even if another limit binds the case.
const KnownCeiling* peak_of(const Entry& e) {
  const KnownCeilings& ceilings = e.side->ceilings;
  const std::string& unit = e.record->derived.headline_unit;
  if (unit == "B/s") return ceilings.published_memory ? &*ceilings.published_memory : nullptr;
  const auto found = ceilings.published.find(e.record->c.recipe);
  return unit != "FLOP/s" || found == ceilings.published.end() ? nullptr : &found->second;
}

std::vector<chart::Guide> peaks_of(std::span<const Entry> workload) {
  std::vector<chart::Guide> guides;
  std::set<std::string> labels;
  for (const Entry& e : workload) {
    const KnownCeiling* peak = peak_of(e);
    const std::string whose = e.side->letter.empty() ? "" : e.side->letter + " ";
    const std::string label = unit_of(workload) == "B/s" ? whose + "memory peak" : recipe_name(e) + " peak";
    if (peak != nullptr && labels.insert(label).second) guides.push_back(level(label, peak->value));
  }
  return guides;
}

// A report does not record which dimension --batch sets. By the names in suites: b; n of images (n, h, w); the rows m
// of a matrix product, which are tokens. Empty if a case has none.
std::string batch_dimension(const CaseRecord& record) {
  const auto has = [&](std::string_view name) {
    return std::any_of(record.c.dims.begin(), record.c.dims.end(), [&](const auto& dim) { return dim.first == name; });
  };
  if (has("b")) return "b";
  if (has("n") && has("h") && has("w")) return "n";
  return has("m") && has("n") && has("k") ? "m" : "";
}

std::string meaning(const std::string& dimension) {
  if (dimension == "n") return "batch (n), images";
  return dimension == "m" ? "rows (m), tokens of the batch" : "batch (b)";
}

std::string dims_but_batch(const Entry& e) {
  const std::string batch = batch_dimension(*e.record);
  std::string text;
  for (const auto& [dim, extent] : e.record->c.dims) {
    if (dim != batch) text += fmt::format("{}{}={}", text.empty() ? "" : " ", dim, extent);
  }
  return text;
}

std::int64_t batch_of(const Entry& e) { return e.record->c.dim(batch_dimension(*e.record)); }

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

}  // namespace

std::vector<Entries> workloads_with_a_curve(std::span<const Side> sides) {
  std::vector<Entries> workloads = workloads_of_one_rank(sides);
  std::erase_if(workloads, [](const Entries& workload) { return !has_curve(workload); });
  return workloads;
}

void draw_size_curve(std::span<const Entry> workload, std::vector<Figure>& figures) {
  const DimsText dims(workload);
  const WorkAxis work = work_axis(workload);
  const std::string title = workload_name(workload.front());
  chart::PlotChart plot;
  plot.title = title;
  plot.x = work.axis;
  plot.y = rate_axis(unit_of(workload), chart::Scale::log10);
  plot.series = series_of(workload, chart::Mark::scatter, series_name, [&](const Entry& e) {
    return rate_point(*e.record, work.of(*e.record),
                      fmt::format("{} · {}: {}", short_name(*e.record, dims), series_name(e), rate_text(*e.record)));
  });
  if (one_curve(plot.series, dims)) {
    for (chart::Series& series : plot.series) series.mark = chart::Mark::line;
  }
  plot.guides = peaks_of(workload);
  plot.description =
      fmt::format("{} of {} against the work of one run, {} in {}, both axes logarithmic.", unit_of(workload), title,
                  counted(workload.size(), "case"), counted(plot.series.size(), "precision"));
  figures.push_back({slug(title), std::move(plot), rates_table(workload, dims)});
}

std::vector<Entries> shapes_in_batches(std::span<const Side> sides) {
  std::vector<Entries> shapes;
  for (const Entries& workload : workloads_of_one_rank(sides)) {
    const std::string dimension = batch_dimension(*workload.front().record);
    for (Entries& shape : split(workload, dims_but_batch)) {
      std::erase_if(shape,
                    [&](const Entry& e) { return dimension.empty() || batch_dimension(*e.record) != dimension; });
      std::set<std::int64_t> batches;
      for (const Entry& e : shape) batches.insert(batch_of(e));
      if (batches.size() > 1) shapes.push_back(std::move(shape));
    }
  }
  return shapes;
}

void draw_batch_curve(std::span<const Entry> shape, std::vector<Figure>& figures) {
  const std::string workload = workload_name(shape.front());
  const std::string rest = dims_but_batch(shape.front());
  const std::string dimension = batch_dimension(*shape.front().record);
  chart::PlotChart plot;
  plot.title = fmt::format("{}{}{}", workload, rest.empty() ? "" : ", ", rest);
  plot.x = {meaning(dimension), chart::Scale::log2};
  plot.y = rate_axis(unit_of(shape), chart::Scale::linear);
  plot.series = series_of(shape, chart::Mark::line, series_name, [&](const Entry& e) {
    return rate_point(*e.record, static_cast<double>(batch_of(e)),
                      fmt::format("{}={} · {}: {}", dimension, batch_of(e), series_name(e), rate_text(*e.record)));
  });
  choose_scale(plot);
  plot.description = fmt::format("{} of {} against its batch size, {}.", unit_of(shape), plot.title,
                                 counted(plot.series.size(), "precision"));
  figures.push_back({slug("batch " + workload + " " + rest), std::move(plot), rates_table(shape, DimsText(shape))});
}

std::vector<Entries> bests_by_suite(std::span<const Side> sides) {
  const Entries entries = entries_of(sides, [](const CaseRecord& r) {
    return reliable(r) && r.c.ranks == 1 && r.c.cache != CacheMode::warm && !r.derived.collective;
  });
  std::vector<Entries> charts;
  for (const Entries& of_unit : split(entries, [](const Entry& e) {
         return e.record->c.suite + " " + unit_of({&e, 1});
       })) {
    Entries& bests = charts.emplace_back();
    for (const Entries& workload : split(of_unit, workload_name)) {
      for (const Entries& of_precision : split(workload, recipe_name))
        bests.push_back(
            *std::ranges::max_element(of_precision, {}, [](const Entry& e) { return e.record->derived.headline; }));
    }
  }
  return charts;
}

void draw_bests(std::span<const Entry> bests, std::vector<Figure>& figures) {
  const std::string& unit = unit_of(bests);
  const std::string title = fmt::format("{}, {}", bests.front().record->c.suite, unit);
  const auto peak = [](const Entry& e) {
    const KnownCeiling* known = peak_of(e);
    return known != nullptr ? std::optional(known->value) : std::nullopt;
  };
  const auto share = [&](const Entry& e) {
    return percent_text(peak(e) ? std::optional(e.record->derived.headline / *peak(e)) : std::nullopt);
  };
  chart::BarChart chart{title,
                        fmt::format("The fastest case of each workload in each precision, {}.", unit),
                        rate_axis(unit, chart::Scale::linear),
                        {}};
  for (const Entries& workload : split(bests, workload_name)) {
    chart.groups.push_back(bar_group(workload.front().record->c.workload, workload, [&](const Entry& e) {
      const std::string rate = format_quantity(e.record->derived.headline, unit);
      return bar_of(rate_point(*e.record, 0.0, ""), recipe_name(e),
                    peak(e) ? fmt::format("{}, {} of peak", rate, share(e)) : rate, e.record->key(), peak(e));
    }));
  }
  const std::vector<Column> workload{{{"workload"}, [](const Entry& e) { return e.record->c.workload; }}};
  figures.push_back({slug("best " + title), std::move(chart), rates_table(bests, DimsText(bests), workload)});
}

}  // namespace gpubench::page
