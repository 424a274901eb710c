#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/cli/soak_log.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/page/chart/chart.h"

namespace gpubench {
namespace {

constexpr std::size_t max_listed = 5;
constexpr std::size_t max_bars = 60;

double speed_of(const SoakInterval& interval) {
  return interval.device_s > 0.0 ? static_cast<double>(interval.launches) / interval.device_s : 0.0;
}

bool is_between(const Divergence& divergence, double after_s, double until_s) {
  return divergence.at_s > after_s && divergence.at_s <= until_s;
}

// Speed per interval or group of intervals, relative to the highest, from zero.
std::string bars(const SoakResult& r) {
  constexpr std::array<std::string_view, 8> heights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t each = (r.intervals.size() + max_bars - 1) / max_bars;
  std::vector<double> speeds;
  for (std::size_t first = 0; first < r.intervals.size(); first += each) {
    SoakInterval together;
    for (std::size_t i = first; i < std::min(first + each, r.intervals.size()); ++i) {
      together.launches += r.intervals[i].launches;
      together.device_s += r.intervals[i].device_s;
    }
    speeds.push_back(speed_of(together));
  }
  const double highest = speeds.empty() ? 0.0 : std::ranges::max(speeds);
  std::string text;
  for (const double speed : speeds) {
    const double share = highest > 0.0 ? speed / highest : 0.0;
    text += heights[share > 0.0 ? static_cast<std::size_t>(std::min(7.0, share * 8.0)) : 0];  // NaN gives the lowest
                                                                                              // bar
  }
  return text;
}

std::string share_text(double part, double whole) {
  return fmt::format("{:.1f}%", whole > 0.0 ? 100.0 * part / whole : 0.0);
}

std::string errors_text(const Divergence& divergence) {
  const auto& [corrected, uncorrected] = divergence.errors_now;
  if (!corrected && !uncorrected) return "";
  const auto count = [](const std::optional<std::int64_t>& errors) {
    return errors ? std::to_string(*errors) : std::string("unknown");
  };
  return fmt::format(" · {} corrected and {} uncorrected memory errors ({} and {} before)", count(corrected),
                     count(uncorrected), count(divergence.errors_before.corrected),
                     count(divergence.errors_before.uncorrected));
}

void list(std::string& text, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(lines.size(), max_listed); ++i) text += fmt::format("  {}\n", visible(lines[i]));
}

}  // namespace

std::string sensors_text(const std::optional<RoundTelemetry>& telemetry) {
  std::string text;
  if (!telemetry) return text;
  if (telemetry->temperature_c) text += fmt::format(" · {:.0f} C", *telemetry->temperature_c);
  if (telemetry->sm_mhz) text += fmt::format(" · {:.0f} MHz", telemetry->sm_mhz->median);
  if (telemetry->power_w) text += fmt::format(" · {:.0f} W", *telemetry->power_w);
  return text;
}

std::string divergence_text(const Divergence& divergence) {
  return visible(fmt::format("{:.1f} s: {}: {}{}{}", divergence.at_s, divergence.case_id, divergence.text,
                             sensors_text(divergence.telemetry), errors_text(divergence)));
}

std::string SoakLog::device_lines(std::size_t number, const ConsoleStyle& style) const {
  const SoakingDevice& device = devices_[number];
  const SoakResult& r = device.result;
  std::string text;
  if (devices_.size() > 1)
    text += fmt::format("device {}: {} ({}), {} launches, {} ops an hour\n", number, visible(device.word),
                        visible(device.info.name), r.launches,
                        format_quantity(r.seconds > 0.0 ? static_cast<double>(r.ops) * 3600.0 / r.seconds : 0.0, ""));
  const std::string indent = devices_.size() > 1 ? "  " : "";
  if (r.launches > 0) {
    text += fmt::format(
        "{}time between judgements: launches {}, comparing their outputs {}, restoring and poisoning {}\n", indent,
        share_text(r.device_s, r.seconds), share_text(r.comparing_s, r.seconds), share_text(r.clearing_s, r.seconds));
    text += fmt::format("{}the textbook judged everything {}, in {}\n", indent,
                        r.rechecks == 1 ? "once" : fmt::format("{} times, each time on other data", r.rechecks),
                        format_duration(r.judging_s));
  }
  if (r.burst_rate() > 0.0)
    text += fmt::format("{}speed{}{}: in the second half of the time {:.3f} of that in the first interval\n", indent,
                        style.utf8 ? " " : "", style.utf8 ? bars(r) : "", r.sustained_rate() / r.burst_rate());
  if (r.rejected > 0) {
    text += fmt::format("{}{} rejected by the textbook, the first:\n", indent,
                        r.rejected == 1 ? "1 launch was" : fmt::format("{} launches were", r.rejected));
    list(text, r.wrong);
  }
  if (r.diverged > 0) {
    text += fmt::format("{}{} left other bits than the one that was judged, the first:\n", indent,
                        r.diverged == 1 ? "1 launch" : fmt::format("{} launches", r.diverged));
    for (std::size_t i = 0; i < std::min(r.divergences.size(), max_listed); ++i)
      text += fmt::format("  {}\n", divergence_text(r.divergences[i]));
  }
  if (!r.left_out.empty() && number == 0)
    text += fmt::format("{}{} cases left out, the first: {}\n", indent, r.left_out.size(), visible(r.left_out.front()));
  if (!device.trouble.empty()) text += fmt::format("{}its process {}\n", indent, visible(device.trouble));
  return text;
}

std::string SoakLog::summary(const ConsoleStyle& style) const {
  const SoakResult all = total();
  const double seconds = devices_.empty() ? 0.0 : all.seconds / static_cast<double>(devices_.size());
  const std::size_t cases = devices_.empty() ? 0 : devices_.front().result.cases.size();
  std::string text = fmt::format(
      "{} launches of {} case{} in {:.0f} s{}, each compared bit for bit with a judged one; {} in all\n{} ops an hour "
      "screened\n",
      all.launches, cases, cases == 1 ? "" : "s", seconds,
      devices_.size() > 1 ? fmt::format(" on {} devices", devices_.size()) : "", format_quantity(all.flop, "FLOP"),
      format_quantity(seconds > 0.0 ? static_cast<double>(all.ops) * 3600.0 / seconds : 0.0, ""));
  for (std::size_t i = 0; i < devices_.size(); ++i) text += device_lines(i, style);
  if (devices_.size() > 1) {
    text += disagreements_ == 0
                ? fmt::format("votes: {} judged launches of several devices, which left the same bits\n", voted_)
                : fmt::format("votes: {} judged launches of several devices, {} findings:\n", voted_, disagreements_);
    list(text, votes_);
    if (!not_compared_.empty()) {
      text += "not compared:\n";
      list(text, not_compared_);
    }
  }
  if (all.diverged == 0 && all.ops > 0)
    text += fmt::format("no launch had other bits: faults in more than 1 of {:.0f} ops are excluded with 95%\n",
                        1.0 / excluded_rate(all.ops));
  const std::string verdict = faults() > 0    ? "soak FAILED"
                              : has_trouble() ? "soak not completed"
                              : !has_ended_   ? "no fault until its journal ends"
                              : interrupted_  ? fmt::format("soak {}: no fault until then", completion().interrupted())
                              : all.launches > 0 ? "soak passed"
                                                 : "nothing was launched";
  return fmt::format("{}{}\n", text, verdict);
}

std::string SoakLog::chart() const {
  chart::PlotChart plot;
  plot.title = "Soak over time";
  plot.description =
      "Launches per second, clock and temperature in each interval as shares of those in the first; crosses are "
      "launches with other bits than the judged one.";
  plot.x = {.title = "time since the soak began", .unit = "min"};
  plot.y = {.title = "share of the first interval", .labels = chart::TickLabels::percent, .low = 0.0};
  for (std::size_t number = 0; number < devices_.size(); ++number) {
    const SoakResult& r = devices_[number].result;
    if (r.intervals.empty()) continue;
    const std::string which = devices_.size() > 1 ? fmt::format(", device {}", number) : "";
    chart::Series speed{"speed" + which, chart::Mark::line, {}}, clock{"clock" + which, chart::Mark::line, {}},
        heat{"temperature" + which, chart::Mark::line, {}}, wrong{"other bits" + which, chart::Mark::scatter, {}};
    const SoakInterval& first = r.intervals.front();
    const double first_speed = speed_of(first);
    double after_s = 0.0;
    for (const SoakInterval& interval : r.intervals) {
      const double minutes = interval.at_s / 60.0;
      const double share = first_speed > 0.0 ? speed_of(interval) / first_speed : 0.0;
      speed.points.push_back({minutes, share, {}, {}, fmt::format("{:.4g} launches a second", speed_of(interval))});
      if (interval.telemetry && interval.telemetry->sm_mhz && first.telemetry && first.telemetry->sm_mhz)
        clock.points.push_back({minutes,
                                interval.telemetry->sm_mhz->median / first.telemetry->sm_mhz->median,
                                {},
                                {},
                                fmt::format("{:.0f} MHz", interval.telemetry->sm_mhz->median)});
      if (interval.telemetry && interval.telemetry->temperature_c && first.telemetry && first.telemetry->temperature_c)
        heat.points.push_back({minutes,
                               *interval.telemetry->temperature_c / *first.telemetry->temperature_c,
                               {},
                               {},
                               fmt::format("{:.0f} C", *interval.telemetry->temperature_c)});
      for (const Divergence& divergence : r.divergences) {
        if (is_between(divergence, after_s, interval.at_s))
          wrong.points.push_back({divergence.at_s / 60.0, share, {}, {}, divergence_text(divergence)});
      }
      after_s = interval.at_s;
    }
    for (chart::Series* series : {&speed, &clock, &heat, &wrong}) {
      if (!series->points.empty()) plot.series.push_back(std::move(*series));
    }
  }
  return chart::svg(plot, "soak", chart::Placement::file);
}

}  // namespace gpubench
