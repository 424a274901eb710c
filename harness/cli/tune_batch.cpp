#include "harness/cli/tune_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/text/quantity.h"
#include "harness/plan/memory_plan.h"
#include "harness/report/json.h"
#include "harness/report/record_text.h"

namespace gpubench {

PlannedCase TunedShape::with(std::int64_t batch) const {
  PlannedCase planned = of_;
  for (auto& [axis, extent] : planned.c.dims) {
    if (axis == axis_) extent = batch;
  }
  return planned;
}

std::string TunedShape::dims() const {
  Dims others = of_.c.dims;
  std::erase_if(others, [this](const auto& dim) { return dim.first == axis_; });
  return to_string(others);
}

// Sizes that overflow do not fit.
bool TunedShape::fits(std::int64_t batch, std::int64_t available) const {
  try {
    const PlannedCase planned = with(batch);
    expect_countable(planned.c.dims);
    const Program program = planned.workload->build(planned.c);
    return program.bytes() <= available || minimal_memory(program).bytes() <= available;
  } catch (const UsageError&) {
    return false;
  } catch (const ProgramError&) {
    return false;
  }
}

std::int64_t TunedShape::largest(std::int64_t available) const {
  std::int64_t fitting = 0, too_large = 1;
  while (too_large <= max_batch && fits(too_large, available)) {
    fitting = too_large;
    too_large *= 2;
  }
  while (too_large - fitting > 1) {
    const std::int64_t middle = fitting + (too_large - fitting) / 2;
    (middle <= max_batch && fits(middle, available) ? fitting : too_large) = middle;
  }
  return fitting;
}

bool TunedCurve::ran(const CaseRecord& r) { return r.verdict == Verdict::pass && r.derived.items_per_s > 0.0; }

std::int64_t TunedCurve::largest() const {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) most = ran(trials[i]) ? std::max(most, batches[i]) : most;
  return most;
}

std::optional<std::size_t> TunedCurve::best() const {
  const auto rank = [&](std::size_t i) {
    return std::pair(!timing_unreliable(trials[i].summary), trials[i].derived.items_per_s);
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (ran(trials[i]) && (!best || rank(i) > rank(*best))) best = i;
  }
  return best;
}

std::int64_t TunedCurve::enough() const {
  constexpr double close_to_best = 0.95;
  std::int64_t least = batches[*best()];
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (ran(trials[i]) && trials[i].derived.items_per_s >= close_to_best * trials[*best()].derived.items_per_s)
      least = std::min(least, batches[i]);
  }
  return least;
}

namespace {

std::string unit_of(const TunedShape& shape) { return shape.item() + "/s"; }

std::string fit_text(const TunedCurve& curve, std::int64_t available) {
  std::string text = curve.largest() == 0 ? "none ran" : fmt::format("{}", curve.largest());
  if (curve.largest() > 0 && curve.largest() < curve.by_plan) text = "at least " + text;
  text += curve.by_plan >= max_batch
              ? fmt::format("; by plan {} or more", max_batch)
              : fmt::format("; by plan {} in {}", curve.by_plan, format_quantity(static_cast<double>(available), "B"));
  return curve.untried.empty() ? text : text + "; " + curve.untried;
}

}  // namespace

std::string table_of(const TunedShape& shape, const TunedCurve& curve, const ConsoleStyle& style) {
  TextTable table(columns_titled({"batch>", "rate>", "±95%>", "time>", "memory>", ""}));
  if (curve.trials.empty()) return "";
  const double most = curve.best() ? curve.trials[*curve.best()].derived.items_per_s : 0.0;
  for (std::size_t i = 0; i < curve.trials.size(); ++i) {
    const CaseRecord& r = curve.trials[i];
    if (!TunedCurve::ran(r)) {
      table.add({fmt::format("{}", curve.batches[i]), std::string(name(r.verdict)), "-", "-", "-", r.reason});
      continue;
    }
    constexpr double columns = 40.0;
    const auto length = static_cast<std::size_t>(columns * std::min(r.derived.items_per_s / most, 1.0) + 0.5);
    table.add({fmt::format("{}", curve.batches[i]),
               (timing_unreliable(r.summary) ? "~" : "") + format_quantity(r.derived.items_per_s, unit_of(shape)),
               format_interval(r.summary.median_ns, r.summary.ci95_low_ns, r.summary.ci95_high_ns),
               format_time_ns(r.summary.median_ns), format_quantity(static_cast<double>(r.memory_bytes), "B"),
               std::string(length, '#')});
  }
  return table.text(style);
}

std::string summary_of(const TunedShape& shape, const TunedCurve& curve, std::int64_t available,
                       const ConsoleStyle& style) {
  std::string text = fmt::format("largest that fits  {}\n", fitted(fit_text(curve, available), style.width, 19));
  const std::optional<std::size_t> best = curve.best();
  if (!best) return curve.trials.empty() ? text : text + "best throughput    none passed\n";
  const std::string rate = (timing_unreliable(curve.trials[*best].summary) ? "~" : "") +
                           format_quantity(curve.trials[*best].derived.items_per_s, unit_of(shape));
  const std::string enough =
      curve.enough() < curve.batches[*best] ? fmt::format("; from {} on within 5% of it", curve.enough()) : "";
  return text + fmt::format("best throughput    {}: {}{}\n", curve.batches[*best], rate, enough);
}

Json json_of(const TunedShape& shape, const TunedCurve& curve) {
  Json trials = Json::array();
  for (std::size_t i = 0; i < curve.trials.size(); ++i) {
    const CaseRecord& r = curve.trials[i];
    Json trial = {{"batch", curve.batches[i]}, {"id", r.id}, {"status", name(r.verdict)}};
    if (TunedCurve::ran(r)) {
      trial.update({{"items_per_s", r.derived.items_per_s},
                    {"median_ns", r.summary.median_ns},
                    {"ci95_low_ns", r.summary.ci95_low_ns},
                    {"ci95_high_ns", r.summary.ci95_high_ns},
                    {"memory_bytes", r.memory_bytes},
                    {"reliable", !timing_unreliable(r.summary)}});
    } else {
      trial["reason"] = r.reason;
    }
    trials.push_back(std::move(trial));
  }
  Json json = {{"recipe", curve.recipe},           {"modes", shape.c().modes},
               {"largest_by_plan", curve.by_plan}, {"largest_that_ran", curve.largest()},
               {"untried", curve.untried},         {"trials", std::move(trials)}};
  if (const auto best = curve.best())
    json.update({{"best", curve.batches[*best]}, {"within_5_percent_from", curve.enough()}});
  return json;
}

chart::PlotChart chart_of(std::span<const TunedShape> shapes, std::span<const TunedCurve> curves) {
  const TunedShape& first = shapes.front();
  chart::PlotChart plot;
  plot.title = fmt::format("{} against batch", first.c().workload);
  plot.description = fmt::format("Throughput of {}/{} for each batch tried.", first.c().workload, first.dims());
  plot.x = {fmt::format("batch ({})", first.axis()), chart::Scale::log2};
  plot.y = {"throughput", chart::Scale::linear, chart::TickLabels::si, unit_of(first), 0.0};
  for (const TunedCurve& curve : curves) {
    chart::Series series{curve.recipe, chart::Mark::line, {}};
    for (std::size_t i = 0; i < curve.trials.size(); ++i) {
      const CaseRecord& r = curve.trials[i];
      if (!TunedCurve::ran(r)) continue;
      const double items = r.derived.items_per_s * r.summary.median_ns;
      series.points.push_back({static_cast<double>(curve.batches[i]), r.derived.items_per_s,
                               items / r.summary.ci95_high_ns, items / r.summary.ci95_low_ns,
                               fmt::format("batch {} {}: {}", curve.batches[i], curve.recipe,
                                           format_quantity(r.derived.items_per_s, unit_of(first))),
                               timing_unreliable(r.summary)});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace gpubench
