// The drawing that figures share.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/page/report_page.h"
#include "harness/page/side.h"

namespace gpubench::page {

struct Comparisons;  // sections.h

/// What a page is made of.
struct Material {
  std::span<const Side> sides;
  const Comparisons& comparisons;
  const PageOptions& options;
};

/// A column of a table and what a case has in it.
struct Column {
  TableColumn head;
  std::function<std::string(const Entry&)> cell;
};
[[nodiscard]] Column case_column();  ///< its id
[[nodiscard]] Column precision_column();
[[nodiscard]] Column ranks_column();
[[nodiscard]] Column time_column();
[[nodiscard]] Column interval_column();  ///< 95%, of the time

/// A row per entry: "12 cases".
[[nodiscard]] DataTable table_of(std::span<const Entry> entries, std::span<const Column> columns);

/// After the columns `first`: shape, label, precision, ranks where there are several, rate, time and its interval,
/// share of peak.
[[nodiscard]] DataTable rates_table(std::span<const Entry> entries, const DimsText& dims,
                                    std::vector<Column> first = {});

/// A series per name, in the order in which the names first appear; its points by x.
[[nodiscard]] std::vector<chart::Series> series_of(std::span<const Entry> entries, chart::Mark mark,
                                                   const std::function<std::string(const Entry&)>& name,
                                                   const std::function<chart::Point(const Entry&)>& point);
/// Appends the point to the series of that name, made where there is none yet.
void add_point(std::vector<chart::Series>& series, const std::string& name, chart::Mark mark, chart::Point point);

/// A bar as long as the point is high, with its interval.
[[nodiscard]] chart::Bar bar_of(const chart::Point& point, std::string label, std::string text, std::string note,
                                std::optional<double> limit = {});
/// A bar per entry.
[[nodiscard]] chart::BarGroup bar_group(std::string title, std::span<const Entry> entries,
                                        const std::function<chart::Bar(const Entry&)>& bar);

/// Along x: the work of a run.
struct WorkAxis {
  chart::Axis axis;
  double (*of)(const CaseRecord&) = nullptr;  ///< FLOP or bytes
};
/// Bytes where the rate is of bytes, else FLOP; bytes too for what computes nothing.
[[nodiscard]] WorkAxis work_axis(std::span<const Entry> workload);

/// The axis of a rate in `unit`.
[[nodiscard]] chart::Axis rate_axis(const std::string& unit, chart::Scale scale, const std::string& title = "rate");

/// The case's headline at `x`, with the interval that its time's 95% interval makes; doubtful where that is too wide.
[[nodiscard]] chart::Point rate_point(const CaseRecord& record, double x, std::string note);

/// "743 TFLOP/s"; "~743 TFLOP/s" where the timing is unreliable.
[[nodiscard]] std::string marked_rate(const CaseRecord& record);
/// The same of another rate of the case.
[[nodiscard]] std::string marked_rate(const CaseRecord& record, double rate, std::string_view unit);

/// "743 TFLOP/s, 75.1% of peak"; "~743 TFLOP/s, unreliable".
[[nodiscard]] std::string rate_text(const CaseRecord& record);

/// A point of a guide, without an interval or a note.
[[nodiscard]] chart::Point bare_point(double x, double y);
/// A guide at one height over the whole width.
[[nodiscard]] chart::Guide level(std::string label, double y);

}  // namespace gpubench::page
