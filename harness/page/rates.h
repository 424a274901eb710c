// What the figures of rates share: a case's place in a chart, and its row in the table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/page/section.h"
#include "harness/page/side.h"

namespace gpubench::page {

/// Along x: the work of a run.
struct WorkAxis {
  chart::Axis axis;
  double (*of)(const CaseRecord&) = nullptr;  ///< FLOP or bytes
};

/// Bytes where the rate is of bytes, else FLOP; bytes too for what computes nothing.
[[nodiscard]] WorkAxis work_axis(const WorkloadEntries& workload);

/// The axis of a rate in `unit`.
[[nodiscard]] chart::Axis rate_axis(const std::string& unit, chart::Scale scale);

/// The case's headline at `x`, with the interval that its time's 95% interval makes; doubtful where that is too wide.
[[nodiscard]] chart::Point rate_point(const CaseRecord& record, double x, std::string note);

/// "743 TFLOP/s"; "~743 TFLOP/s" where the timing is unreliable.
[[nodiscard]] std::string marked_rate(const CaseRecord& record);
/// The same of another rate of the case.
[[nodiscard]] std::string marked_rate(const CaseRecord& record, double rate, std::string_view unit);

/// "743 TFLOP/s, 75.1% of peak"; "~743 TFLOP/s, unreliable".
[[nodiscard]] std::string rate_text(const CaseRecord& record);

/// Shape, label, precision, ranks where several are there, rate, time and its interval, share of peak; a row per entry.
[[nodiscard]] DataTable rates_table(std::span<const Entry> entries, const DimsText& dims);

/// A point that is no measurement: of a guide.
[[nodiscard]] chart::Point bare_point(double x, double y);
/// A guide at one height over the whole width.
[[nodiscard]] chart::Guide level(std::string label, double y);

/// Points of one series, by x.
void sort_by_x(std::vector<chart::Point>& points);

/// Appends the point to the series of that name, made where there is none yet.
void add_point(std::vector<chart::Series>& series, const std::string& name, chart::Mark mark, chart::Point point);

}  // namespace gpubench::page
