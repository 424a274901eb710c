// Many tests at once: which of them may be believed.
#pragma once

#include <span>
#include <vector>

namespace gpubench {

/// Benjamini and Hochberg's adjusted p-values, in the order of `p`: calling everything with q < 0.05 a finding makes at
/// most 5% of the findings false on average. For the i-th smallest of n: the least p_j n / j over j >= i, at most 1.
/// Source: Benjamini, Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B 57 (1995).
[[nodiscard]] std::vector<double> false_discovery_rates(std::span<const double> p);

}  // namespace gpubench
