// The peak rates of devices: a database of published figures, each with its source and how far to trust it, and a way
// to derive them for a card that is not in the database; and how close each case of a run came to them.
//
// All rates are dense; 8-bit and 16-bit floating-point rates are those with fp32 accumulation (a GeForce card reaches
// half of the rate on its sheet with it). One number that is exactly twice another is usually a sparse rate: never
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

/// Kinds of arithmetic that have a rate of their own.
enum class Rate { fp64, fp64_tensor, fp32, tf32, fp16, bf16, fp8, fp4, int8 };
template <>
inline constexpr auto enum_names<Rate> = std::to_array<std::string_view>({"fp64", "fp64 tensor", "fp32", "tf32", "fp16",
                                                                          "bf16", "fp8", "fp4", "int8"});
inline constexpr std::size_t rate_count = enum_names<Rate>.size();

/// How a figure came about. `conflict`: sources disagree, and `low` and `high` are their ends.
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
  // A table of numbers should read like one.
  constexpr Figure(double value) : low(value), high(value) {}  // NOLINT(google-explicit-constructor)
  constexpr Figure(double lowest, double highest, Confidence trust, std::string_view where)
      : low(lowest), high(highest), confidence(trust), source(where) {}
  [[nodiscard]] constexpr bool known() const { return high > 0.0; }
};

/// One row of the database, in the units of the sheets.
struct DeviceRow {
  std::string_view name;      ///< "H200 SXM"
  std::string_view words;     ///< that a device's name must have
  std::string_view may_have;  ///< words that it may have in addition; any other makes it another card
  int capability = 0;         ///< compute capability, 90 for 9.0; 0 for a vendor that has none
  int min_units = 0;          ///< SMs or compute units
  int max_units = 0;
  std::array<Figure, rate_count> tera;  ///< 10^12 operations a second, by Rate
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

/// The row of a device, or null where the database does not know it: an unknown name, a name with a word that makes it
/// another card ("Laptop", "MIG 1g.10gb", "Ti"), or a number of units that the card does not have. `device_name` is
/// untrusted text.
[[nodiscard]] const DeviceRow* find_device(std::string_view device_name, int units);

/// A row's figure, with its confidence and source filled in: operations per second. Empty where not known.
[[nodiscard]] std::optional<Figure> peak_rate(const DeviceRow& row, Rate rate);
/// Bytes per second.
[[nodiscard]] std::optional<Figure> peak_bandwidth(const DeviceRow& row);
/// Of the links between devices, in one direction; bytes per second.
[[nodiscard]] std::optional<Figure> peak_link(const DeviceRow& row);

/// Whether the name is of a GeForce card, whose tensor cores run at half rate with fp32 accumulation.
[[nodiscard]] bool is_geforce(std::string_view device_name);

/// Operations per clock of one SM. Empty for a compute capability, or a kind of arithmetic, that is not known.
[[nodiscard]] std::optional<double> operations_per_clock(int capability, bool geforce, Rate rate);

/// Double data rate: the clock as the driver reports it, the bus in bits; bytes per second.
[[nodiscard]] double bandwidth_at(double memory_mhz, double bus_bits);

/// Derived::peak for each record: measured cases of one rank have one, and collectives between devices whose link is
/// known, where it compares bus bandwidth with one direction of the link.
///
/// A case is compared with the limit that binds it: arithmetic or memory, whichever would take longer at its peak.
/// Peaks are those of the database for a CUDA device that it knows, else units x operations per clock x highest clock.
/// The memory's peak binds only what must come from memory: cold cases that leave no copy in the cache.
///
/// Unreliable timings (timing_unreliable()) are neither the best of a run nor compared with it.
///
/// A rate above what the device can reach at its highest clock, by more than the 1% by which timers may differ, gets a
/// finding: time, work or peak is wrong. Such a rate is not the best of a run, and is compared with no other case.
[[nodiscard]] std::vector<std::optional<PeakShare>> peak_shares(const DeviceInfo& device,
                                                                std::span<const CaseRecord> records);

}  // namespace gpubench
