#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/page/report_page.h"
#include "harness/page/side.h"

namespace gpubench::page {

struct Comparisons;

struct Material {
  std::span<const Side> sides;
  const Comparisons& comparisons;
  const PageOptions& options;
};

struct Column {
  TableColumn head;
  std::function<std::string(const Entry&)> cell;
};
[[nodiscard]] Column case_column();
[[nodiscard]] Column precision_column();
[[nodiscard]] Column ranks_column();
[[nodiscard]] Column time_column();
[[nodiscard]] Column interval_column();  ///< 95% interval of the time

/// A row per entry; the title is "12 cases".
[[nodiscard]] DataTable table_of(std::span<const Entry> entries, std::span<const Column> columns);

/// The columns `first`, then shape, label, precision, ranks if there are several, rate, time with interval, share of
/// peak.
[[nodiscard]] DataTable rates_table(std::span<const Entry> entries, const DimsText& dims,
                                    std::vector<Column> first = {});

/// A series per name in order of appearance; points sorted by x.
[[nodiscard]] std::vector<chart::Series> series_of(std::span<const Entry> entries, chart::Mark mark,
                                                   const std::function<std::string(const Entry&)>& name,
                                                   const std::function<chart::Point(const Entry&)>& point);
/// Adds the series if it is missing.
void add_point(std::vector<chart::Series>& series, const std::string& name, chart::Mark mark, chart::Point point);

[[nodiscard]] chart::Bar bar_of(const chart::Point& point, std::string label, std::string text, std::string note,
                                std::optional<double> limit = {});
[[nodiscard]] chart::BarGroup bar_group(std::string title, std::span<const Entry> entries,
                                        const std::function<chart::Bar(const Entry&)>& bar);

struct WorkAxis {
  chart::Axis axis;
  double (*of)(const CaseRecord&) = nullptr;
};
/// Bytes if the rate is in bytes or nothing is computed, else FLOP.
[[nodiscard]] WorkAxis work_axis(std::span<const Entry> workload);

[[nodiscard]] chart::Axis rate_axis(const std::string& unit, chart::Scale scale, const std::string& title = "rate");

/// The case's headline at `x` with the interval that follows from its time's 95% interval; doubtful if that is too
/// wide.
[[nodiscard]] chart::Point rate_point(const CaseRecord& record, double x, std::string note);

/// "743 TFLOP/s"; "~743 TFLOP/s" for unreliable timings.
[[nodiscard]] std::string marked_rate(const CaseRecord& record);
/// The same for another rate of the case.
[[nodiscard]] std::string marked_rate(const CaseRecord& record, double rate, std::string_view unit);

/// "743 TFLOP/s, 75.1% of peak"; "~743 TFLOP/s, unreliable".
[[nodiscard]] std::string rate_text(const CaseRecord& record);

[[nodiscard]] chart::Point bare_point(double x, double y);
[[nodiscard]] chart::Guide level(std::string label, double y);

}  // namespace gpubench::page
