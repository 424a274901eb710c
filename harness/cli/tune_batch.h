#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/text/text_table.h"
#include "harness/page/chart/chart.h"
#include "harness/plan/plan.h"
#include "harness/report/json_parser.h"

namespace gpubench {

/// The largest batch tried.
inline constexpr std::int64_t max_batch = std::int64_t{1} << 20;

/// One shape in one recipe, with any batch.
class TunedShape {
 public:
  TunedShape(PlannedCase of, std::string axis) : of_(std::move(of)), axis_(std::move(axis)) {}

  [[nodiscard]] const Case& c() const { return of_.c; }
  [[nodiscard]] const std::string& axis() const { return axis_; }
  [[nodiscard]] std::string item() const { return of_.workload->info().item; }
  [[nodiscard]] PlannedCase with(std::int64_t batch) const;
  /// "s=1024,layers=12": the dimensions except the batch.
  [[nodiscard]] std::string dims() const;
  /// The largest batch up to max_batch that fits with maximal memory reuse; 0: none.
  [[nodiscard]] std::int64_t largest(std::int64_t available_bytes) const;

 private:
  [[nodiscard]] bool fits(std::int64_t batch, std::int64_t available_bytes) const;

  PlannedCase of_;
  std::string axis_;
};

struct TunedCurve {
  std::string recipe;
  std::int64_t by_plan = 0;  ///< the largest that fits; 0: none
  std::vector<CaseRecord> trials;
  std::vector<std::int64_t> batches;
  std::string untried;  ///< why larger batches were not tried; empty: they were

  /// Whether the trial passed with a rate.
  [[nodiscard]] static bool ran(const CaseRecord& r);
  /// The largest batch that ran; 0: none.
  [[nodiscard]] std::int64_t largest() const;
  /// Index of the trial with the highest rate; reliable timings first.
  [[nodiscard]] std::optional<std::size_t> best() const;
  /// The smallest batch that reaches 95% of the best rate. Requires best().
  [[nodiscard]] std::int64_t enough() const;
};

[[nodiscard]] std::string table_of(const TunedShape& shape, const TunedCurve& curve, const ConsoleStyle& style);
[[nodiscard]] std::string summary_of(const TunedShape& shape, const TunedCurve& curve, std::int64_t available_bytes,
                                     const ConsoleStyle& style);
[[nodiscard]] Json json_of(const TunedShape& shape, const TunedCurve& curve);
/// `shapes`: of the curves, one or more.
[[nodiscard]] chart::PlotChart chart_of(std::span<const TunedShape> shapes, std::span<const TunedCurve> curves);

}  // namespace gpubench
