// Peak rates of devices: published figures with source and confidence, derived figures for other cards, and each case's
// share of them.
//
// All rates are dense. 8-bit and 16-bit floating-point rates are those with fp32 accumulation, which is half of the
// published rate on GeForce cards. Never enter sparse rates, which are often exactly twice a dense one.
// entered here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/enum_names.h"
#include "harness/core/record.h"

namespace gpubench {

enum class Rate { fp64, fp64_tensor, fp32, tf32, fp16, bf16, fp8, fp4, int8 };
template <>
inline constexpr auto enum_names<Rate> = std::to_array<std::string_view>({"fp64", "fp64 tensor", "fp32", "tf32", "fp16",
                                                                          "bf16", "fp8", "fp4", "int8"});
inline constexpr std::size_t rate_count = enum_names<Rate>.size();

/// `conflict`: sources disagree between `low` and `high`.
enum class Confidence { measured, sourced, datasheet, conflict };
template <>
inline constexpr auto enum_names<Confidence> = std::to_array<std::string_view>({"measured", "sourced", "datasheet",
                                                                                "conflict"});

/// A published figure. In a table's cell, a plain number has its row's confidence and source.
struct Figure {
  double low = 0.0;
  double high = 0.0;
  std::optional<Confidence> confidence{};
  std::string_view source{};

  constexpr Figure() = default;
  // Keeps tables of numbers readable.
  constexpr Figure(double value) : low(value), high(value) {}  // NOLINT(google-explicit-constructor)
  constexpr Figure(double lowest, double highest, Confidence trust, std::string_view where)
      : low(lowest), high(highest), confidence(trust), source(where) {}
  [[nodiscard]] constexpr bool known() const { return high > 0.0; }
};

/// One row of the database, in the units of data sheets.
struct DeviceRow {
  std::string_view name;      ///< "H200 SXM"
  std::string_view words;     ///< required in a device's name
  std::string_view may_have;  ///< allowed in addition; any other word makes it another card
  int capability = 0;         ///< compute capability, 90 for 9.0; 0 for vendors without
  int min_units = 0;          ///< SMs or compute units
  int max_units = 0;
  std::array<Figure, rate_count> tera;  ///< 10^12 operations per second, by Rate
  Figure memory_gb;
  Figure memory_gb_per_s;
  Figure l2_mb;
  Figure link_gb_per_s;  ///< NVLink or Infinity Fabric, both directions together
  Figure pcie_generation;
  Figure watts;
  Confidence confidence = Confidence::datasheet;
  std::string_view source;
};

[[nodiscard]] std::span<const DeviceRow> device_rows();

/// The row of a device, or null: an unknown name, a name with a word of another card ("Laptop", "MIG 1g.10gb", "Ti"),
/// or a number of units that the card does not have. `device_name` is untrusted text.
[[nodiscard]] const DeviceRow* find_device(std::string_view device_name, int units);

/// A row's figure with its confidence and source: operations per second. Empty if unknown.
[[nodiscard]] std::optional<Figure> peak_rate(const DeviceRow& row, Rate rate);
/// Bytes per second.
[[nodiscard]] std::optional<Figure> peak_bandwidth(const DeviceRow& row);
/// Links between devices, one direction; bytes per second.
[[nodiscard]] std::optional<Figure> peak_link(const DeviceRow& row);

/// Whether the name is of a GeForce card, whose tensor cores run at half rate with fp32 accumulation.
[[nodiscard]] bool is_geforce(std::string_view device_name);

/// Operations per clock of one SM. Empty for an unknown compute capability or kind of arithmetic.
[[nodiscard]] std::optional<double> operations_per_clock(int capability, bool geforce, Rate rate);

/// Double data rate: memory clock as the driver reports it, bus in bits; bytes per second.
[[nodiscard]] double bandwidth_at(double memory_mhz, double bus_bits);

/// Derived::peak for each record: measured cases of one rank, and collectives between devices with a known link, whose
/// bus bandwidth is compared with one direction of the link.
///
/// The limit of a case is arithmetic or memory, whichever takes longer at its peak. Peaks come from the database for a
/// known CUDA device, else from units x operations per clock x highest clock. The memory's peak binds only cold cases
/// that leave no copy in the cache.
///
/// Unreliable timings (timing_unreliable()) are never the best of a run, and are not compared with it.
///
/// A rate more than 1% (the tolerance of timers) above the device's limit at its highest clock gets a finding: time,
/// work or peak is wrong. Such a rate is not the best of a run, and is compared with no other case.
[[nodiscard]] std::vector<std::optional<PeakShare>> peak_shares(const DeviceInfo& device,
                                                                std::span<const CaseRecord> records);

}  // namespace gpubench
