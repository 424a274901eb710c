// What is wrong with a file, all of it, so that its author need not mend and try again for each.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/report/reader.h"

namespace gpubench {

/// Problems as "file:path: why". The first ones are kept, the rest is counted, and after many the search ends.
class Problems {
 public:
  /// Thrown by add() once there are so many that looking further would tell nothing. No ReadError, so that nobody
  /// takes it for one more problem.
  class Enough : public std::runtime_error {
   public:
    Enough() : std::runtime_error("more problems than are counted") {}
  };

  static constexpr std::size_t most_kept = 50;
  static constexpr std::size_t most_counted = 1000;

  void add(std::string problem) {
    if (kept_.size() < most_kept) kept_.push_back(std::move(problem));
    if (++count_ == most_counted) throw Enough();
  }

  /// Calls `step`; what it refuses becomes a problem.
  template <class Step>
  void attempt(const Step& step) {
    try {
      step();
    } catch (const ReadError& e) {
      add(e.what());
    }
  }

  [[nodiscard]] bool none() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  /// The search ended before its end.
  [[nodiscard]] bool many() const { return count_ >= most_counted; }
  [[nodiscard]] const std::vector<std::string>& kept() const { return kept_; }

 private:
  std::vector<std::string> kept_;
  std::size_t count_ = 0;
};

}  // namespace gpubench
