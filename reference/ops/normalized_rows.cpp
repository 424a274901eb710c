// The bounds stay finite and honest for rows without variance, where an epsilon at the wrong place shows.
#include "reference/ops/normalized_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "reference/ops/bound_text.h"
#include "reference/ops/gradient_tape.h"

namespace gpubench {
namespace {

// Norm fills give rows of eight kinds in turn (norm_rows): one of each is always judged, and the last row.
std::vector<std::int64_t> row_landmarks(std::int64_t rows) {
  std::set<std::int64_t> units;
  for (std::int64_t row = 0; row < std::min<std::int64_t>(rows, 8); ++row) units.insert(row);
  if (rows > 0) units.insert(rows - 1);
  return {units.begin(), units.end()};
}

// Exact statistics of one row, and how far arithmetic of unit roundoff u may be off: the mean by its sum of n terms,
// rstd by the relative error theta of a two-pass variance (squared deviations, and the mean's error squared). Summed in
// long double, whose 64 bits (x86) leave an error far below the bound where what is judged was itself summed in f64: a
// row of equal numbers is all rounding errors, and epsilon magnifies them.
struct RowStatistics {
  double mean = 0.0, mean_bound = 0.0;
  double rstd = 0.0, theta = 0.0;

  RowStatistics(std::span<const double> x, double epsilon, double u) {
    const double n = static_cast<double>(x.size());
    long double sum = 0.0L;
    double size = 0.0;
    for (const double value : x) {
      sum += value;
      size += std::fabs(value);
    }
    const long double exact_mean = sum / static_cast<long double>(n);
    mean = static_cast<double>(exact_mean);
    long double squares = 0.0L;
    for (const double value : x) squares += (value - exact_mean) * (value - exact_mean);
    const double variance = static_cast<double>(squares / static_cast<long double>(n));
    const double summing = 2.0 * std::sqrt(n) * u;
    mean_bound = summing * size / n + 2.0 * u * std::fabs(mean);
    rstd = 1.0 / std::sqrt(variance + epsilon);
    const double variance_bound = summing * variance + mean_bound * mean_bound;
    theta = 0.5 * variance_bound * rstd * rstd + 3.0 * u;
  }
};

void judge_y(const RowStatistics& statistics, const NormalizedRow& row, std::span<Judged> judged) {
  const double u = row.u;
  for (std::size_t j = 0; j < row.x.size(); ++j) {
    const double deviation = row.x[j] - statistics.mean;
    const double y = row.gamma[j] * deviation * statistics.rstd + row.beta[j];
    const double normalized =
        statistics.rstd * (statistics.mean_bound + std::fabs(deviation) * (statistics.theta + 4.0 * u));
    judged[j] = {y, std::fabs(row.gamma[j]) * normalized + 2.0 * u * (std::fabs(y) + std::fabs(row.beta[j]))};
  }
}

}  // namespace

Units norm_row_units(const Shape& x, std::int64_t elements, double flop_per_element) {
  const std::int64_t rows = x.elements() / x[-1];
  return {rows, elements, flop_per_element * static_cast<double>(x[-1]), row_landmarks(rows)};
}

void judge_normalized(NormalizedOutput output, const NormalizedRow& row, std::span<Judged> judged) {
  const RowStatistics statistics(row.x, row.epsilon, row.u);
  switch (output) {
    case NormalizedOutput::y: judge_y(statistics, row, judged); break;
    case NormalizedOutput::mean: judged[0] = {statistics.mean, statistics.mean_bound}; break;
    case NormalizedOutput::rstd: judged[0] = {statistics.rstd, statistics.rstd * (statistics.theta + row.u)}; break;
  }
}

std::string normalized_bound(NormalizedOutput output, std::int64_t n, const Math& math) {
  const std::string count = std::to_string(n);
  const std::string mean = "2 u sqrt(" + count + ") mean|x| + 2 u |mean|";
  if (output == NormalizedOutput::mean) return bound_text(mean, math);
  const std::string theta = ", r = 3 u + (2 u sqrt(" + count + ") var + T^2) rstd^2 / 2, T = " + mean;
  if (output == NormalizedOutput::rstd) return bound_text("rstd (r + u)" + theta, math);
  return bound_text("|gamma| rstd (T + |x - mean| (r + 4 u)) + 2 u (|y| + |beta|)" + theta, math);
}

void refuse_gradient_of_statistics(const OpCall& call, const GradientTape& tape, ValueId mean, ValueId rstd) {
  for (const ValueId statistic : {mean, rstd}) {
    if (tape.of(statistic) || tape.is_loss(statistic)) {
      throw ProgramError(std::string(call.kind.name) + ": a gradient flows into a statistic of op '" + call.label +
                         "'; expected mean and rstd to be read by its backward only");
    }
  }
}

}  // namespace gpubench
