// What a plan makes of single numbers: how many bits of its inputs it multiplies, whether products are rounded before
// they are added, how the sum is rounded to the output's type, and what becomes of denormals, NaN and infinities.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/parity/input_width.h"
#include "harness/parity/probe_data.h"

namespace gpubench {

enum class StoreRounding { nearest_even, nearest_away, toward_zero, other };
enum class Overflow { infinity, saturated, nan, other };

/// What is empty could not be read, or does not exist in these types.
struct ValueReading {
  std::optional<InputWidth> a{}, b{};
  std::optional<bool> fused{};                               ///< products are added before they are rounded (f32, f64)
  std::optional<StoreRounding> store{};                      ///< of a sum with more bits than the output's type
  std::optional<bool> keeps_a{}, keeps_b{}, keeps_output{};  ///< denormals; else they become zero
  std::optional<Overflow> overflow{};                        ///< what a sum beyond the output's range becomes
  /// Departures from IEEE 754: "NaN x 0 is not NaN"; none where nothing could be tried.
  std::optional<std::vector<std::string>> departures{};
};

/// Its part of a launch: the first lines of both sides.
class ValueProbe {
 public:
  /// `data` must outlive it. `sum_bits`: what SumReading says of a running sum, if it says anything.
  ValueProbe(ProbeData& data, std::uint64_t seed, std::optional<int> sum_bits);
  ~ValueProbe();
  ValueProbe(ValueProbe&&) noexcept;
  ValueProbe& operator=(ValueProbe&&) = delete;

  /// Lines that it does not use, from this one on.
  [[nodiscard]] std::int64_t next_line() const;
  /// Call once the launch's results have been taken.
  [[nodiscard]] ValueReading read() const;

 private:
  struct Design;
  std::unique_ptr<Design> design_;
};

}  // namespace gpubench
