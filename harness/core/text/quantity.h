// Numbers for people: three significant digits and a decimal prefix (1 GB = 10^9 B). Files keep full precision.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpubench {

/// 1.23e12, "FLOP/s" -> "1.23 TFLOP/s"; below 1: "0.123 B/s"; non-finite: "nan", "inf".
[[nodiscard]] std::string format_quantity(double value, std::string_view unit);

/// With a fixed prefix, for comparable columns: 1.27e12, "FLOP/s", 'G' -> "1270 GFLOP/s"; below 1 three digits,
/// "0.00730 GB/s", down to "<0.001 GB/s".
[[nodiscard]] std::string format_with_prefix(double value, std::string_view unit, char prefix);

/// Nanoseconds -> "850 ns", "12.3 us", "1.23 ms", "4.56 s".
[[nodiscard]] std::string format_time_ns(double nanoseconds);

/// Seconds -> "850 ms", "12.3 s", "4m12s", "1h05m"; "0 s" for zero.
[[nodiscard]] std::string format_duration(double seconds);

/// 12845056 -> "12,845,056".
[[nodiscard]] std::string format_count(std::int64_t value);

/// The shortest text that reads back to the same double; "nan", "inf".
[[nodiscard]] std::string format_exact(double value);

/// Half the relative width of an interval around a median: "0.4%", at most ">100%"; "-" if there is none.
[[nodiscard]] std::string format_interval(double median, double low, double high);

}  // namespace gpubench
