// Tau: how large a change must be to matter.
#pragma once

#include <map>
#include <string>

namespace gpubench {

/// Shares of the time: 0.03 is 3%. Collectives, say, are noisier than products, and so are asked for more.
struct Tau {
  double all = 0.03;
  std::map<std::string, double> by_suite{};  ///< instead of `all`

  Tau() = default;
  Tau(double of_all) : all(of_all) {}  // NOLINT(google-explicit-constructor): mostly there is but the one

  [[nodiscard]] double of(const std::string& suite) const {
    const auto own = by_suite.find(suite);
    return own == by_suite.end() ? all : own->second;
  }
};

}  // namespace gpubench
