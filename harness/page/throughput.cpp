// Rates against size, against batch size, and the best of each precision.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

constexpr std::size_t sizes_for_a_curve = 3;
// Above this, the smaller half of a linear axis would hold the whole of a series.
constexpr double batches_logarithmic_from = 20.0;

const std::string& unit_of(std::span<const Entry> entries) { return entries.front().record->derived.headline_unit; }

std::vector<Entries> workloads_of_one_rank(std::span<const Side> sides) {
  return by_workload(entries_of(sides, [](const CaseRecord& r) { return r.c.ranks == 1; }));
}

// By the series that has the most: precisions differ in their bytes.
bool has_curve(std::span<const Entry> workload) {
  const WorkAxis work = work_axis(workload);
  const std::vector<Entries> series = split(workload, series_name);
  return std::any_of(series.begin(), series.end(), [&](const Entries& one) {
    std::set<double> sizes;
    for (const Entry& e : one) sizes.insert(work.of(*e.record));
    return sizes.size() >= sizes_for_a_curve;
  });
}

// A line implies that sizes in between would be on it: true only where one dimension grows and all others are the same.
bool one_curve(const std::vector<chart::Series>& series, const DimsText& dims) {
  return dims.varying().size() == 1 && std::all_of(series.begin(), series.end(), [](const chart::Series& s) {
           std::set<double> sizes;
           for (const chart::Point& point : s.points) sizes.insert(point.x);
           return sizes.size() == s.points.size();
         });
}

// The published peak of what the case's headline counts, even where another limit binds the case.
const KnownCeiling* peak_of(const Entry& e) {
  const KnownCeilings& ceilings = e.side->ceilings;
  const std::string& unit = e.record->derived.headline_unit;
  if (unit == "B/s") return ceilings.published_memory ? &*ceilings.published_memory : nullptr;
  const auto found = ceilings.published.find(e.record->c.recipe);
  return unit != "FLOP/s" || found == ceilings.published.end() ? nullptr : &found->second;
}

// The published peaks of the precisions that are drawn, each once.
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

// A report does not say which dimension --batch sets. By the suites' names: b; n of images (n, h, w); the rows m of a
// matrix product, which are tokens. Empty where a case has none of them.
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

std::vector<Entries> few_sizes_by_unit(std::span<const Side> sides) {
  std::vector<Entries> workloads = workloads_of_one_rank(sides);
  std::erase_if(workloads, has_curve);
  return split(concatenated(workloads), [](const Entry& e) { return e.record->derived.headline_unit; });
}

void draw_few_sizes(std::span<const Entry> cases, std::vector<Figure>& figures) {
  const std::string& unit = unit_of(cases);
  chart::BarChart chart{"Measured at one or two sizes, " + unit,
                        fmt::format("{} of {}, a bar each, by workload.", unit, counted(cases.size(), "case")),
                        rate_axis(unit, chart::Scale::linear),
                        {}};
  for (const Entries& workload : by_workload(cases)) {
    const DimsText dims(workload);
    chart.groups.push_back(bar_group(workload_name(workload.front()), workload, [&](const Entry& e) {
      const CaseRecord& r = *e.record;
      return bar_of(rate_point(r, 0.0, ""),
                    fmt::format("{} {}", dims.varying().empty() ? "" : dims.of(r), series_name(e)), rate_text(r),
                    r.c.label.empty() ? r.key() : r.c.label, published_limit(r));
    }));
  }
  figures.push_back({slug("few sizes " + unit), std::move(chart),
                     rates_table(cases, DimsText(cases), {{{"workload"}, workload_name}})});
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
  figures.push_back({slug(workload + " " + rest), std::move(plot), rates_table(shape, DimsText(shape))});
}

std::vector<Entries> bests_by_unit(std::span<const Side> sides) {
  std::vector<Entries> charts;
  for (const char* unit : {"FLOP/s", "B/s"}) {
    const Entries entries = entries_of(sides, [&](const CaseRecord& r) {
      return reliable(r) && r.c.ranks == 1 && r.c.cache != CacheMode::warm && r.derived.headline_unit == unit;
    });
    Entries chart;
    for (const Entries& suite : split(entries, [](const Entry& e) { return e.record->c.suite; })) {
      Entries bests;
      for (const Entries& of_precision : split(suite, recipe_name))
        bests.push_back(*std::max_element(of_precision.begin(), of_precision.end(), [](const Entry& a, const Entry& b) {
          return a.record->derived.headline < b.record->derived.headline;
        }));
      // A bar is compared with another one of its suite, or with a peak.
      if (bests.size() < 2 && peak_of(bests.front()) == nullptr) continue;
      chart.insert(chart.end(), bests.begin(), bests.end());
    }
    if (!chart.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

void draw_bests(std::span<const Entry> bests, std::vector<Figure>& figures) {
  const std::string& unit = unit_of(bests);
  const auto suite_of = [](const Entry& e) { return e.record->c.suite; };
  const auto rate = [](const Entry& e) { return format_quantity(e.record->derived.headline, unit_of({&e, 1})); };
  const auto share = [](const Entry& e) {
    const KnownCeiling* peak = peak_of(e);
    return percent_text(peak != nullptr ? std::optional(e.record->derived.headline / peak->value) : std::nullopt);
  };
  chart::BarChart chart{unit == "B/s" ? "Best bandwidth by precision" : "Best arithmetic rate by precision",
                        fmt::format("The fastest case of each suite in each precision, {}.", unit),
                        rate_axis(unit, chart::Scale::linear),
                        {}};
  for (const Entries& suite : split(bests, suite_of)) {
    chart.groups.push_back(bar_group(suite_of(suite.front()), suite, [&](const Entry& e) {
      const KnownCeiling* peak = peak_of(e);
      return bar_of(bare_point(0.0, e.record->derived.headline), recipe_name(e),
                    peak != nullptr ? fmt::format("{}, {} of peak", rate(e), share(e)) : rate(e), e.record->key(),
                    peak != nullptr ? std::optional(peak->value) : std::nullopt);
    }));
  }
  DataTable table = table_of(bests, std::vector<Column>{{{"suite"}, suite_of},
                                                        {{"precision"}, recipe_name},
                                                        {{"best rate", true, unit}, rate},
                                                        {{"peak", true, unit},
                                                         [&](const Entry& e) {
                                                           const KnownCeiling* peak = peak_of(e);
                                                           return peak ? format_quantity(peak->value, unit) : "-";
                                                         }},
                                                        {{"of peak", true}, share},
                                                        case_column()});
  table.title = counted(bests.size(), "bar");
  figures.push_back({slug("best " + unit), std::move(chart), std::move(table)});
}

}  // namespace gpubench::page
