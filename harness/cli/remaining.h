// How long a run still takes: what was estimated for the cases that are left, at the pace of those that are done.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gpubench {

/// What a case is estimated to take, and the rounds that it is measured for at least.
struct ExpectedCase {
  double checking_s = 0.0;
  double timing_s = 0.0;
  int rounds = 1;
};

/// Of all of them together.
[[nodiscard]] double total_s(const std::unordered_map<std::string, ExpectedCase>& cases);

/// Follows a run by the calls of its observer. Cases finish in bursts, as rounds of a group are interleaved; so phases
/// and rounds count as well, each for its part of the estimate.
class Remaining {
 public:
  Remaining() = default;
  /// By id: every planned case.
  explicit Remaining(const std::unordered_map<std::string, ExpectedCase>& cases);

  void phase(const std::string& case_id, std::string_view phase);
  void finished(const std::string& case_id);

  /// Seconds left after `elapsed_s`: the rest of the estimate, times elapsed over what was estimated for what is done.
  /// At the start the estimate itself counts, as if a twentieth of the run had gone as it says. Nothing where no
  /// estimate is known.
  [[nodiscard]] std::optional<double> seconds(double elapsed_s) const;

 private:
  struct Followed {
    ExpectedCase expected;
    int rounds_begun = 0;
    double done_s = 0.0;  // of the estimate
  };
  void reach(Followed& one, double done_s);

  std::unordered_map<std::string, Followed> cases_;
  double expected_s_ = 0.0;
  double done_s_ = 0.0;
};

}  // namespace gpubench
