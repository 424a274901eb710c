#include "harness/hardware/processor_telemetry.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

namespace gpubench {
namespace {

class ProcessorTelemetry final : public Telemetry {
 public:
  explicit ProcessorTelemetry(std::function<SchedulerReading()> read) : read_(std::move(read)) {}

  void begin_round() override { before_ = read_(); }

  std::optional<RoundTelemetry> end_round() override {
    if (!before_) return std::nullopt;
    const SchedulerReading before = *std::exchange(before_, std::nullopt);
    const SchedulerReading after = read_();
    RoundTelemetry round;
    round.readings = 2;
    round.window_s = std::max(0.0, after.time_s - before.time_s);
    if (before.involuntary_switches && after.involuntary_switches)
      round.involuntary_switches =
          std::max<std::int64_t>(0, *after.involuntary_switches - *before.involuntary_switches);
    if (before.waiting_s && after.waiting_s && round.window_s > 0.0)  // the kernel adds up a little late: at most all
      round.cpu_pressure = std::clamp((*after.waiting_s - *before.waiting_s) / round.window_s, 0.0, 1.0);
    return round;
  }

  void rest(double seconds) override { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

 private:
  std::function<SchedulerReading()> read_;
  std::optional<SchedulerReading> before_;
};

}  // namespace

std::optional<double> waiting_seconds(std::string_view pressure) {
  constexpr std::string_view key = " total=";
  const std::string_view line = pressure.substr(0, pressure.find('\n'));
  const std::size_t at = line.find(key);
  if (!line.starts_with("some ") || at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = line.substr(at + key.size());
  std::uint64_t microseconds = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), microseconds);
  if (error != std::errc() || end == digits.data()) return std::nullopt;
  return static_cast<double>(microseconds) * 1e-6;
}

SchedulerReading read_scheduler(const std::string& pressure_file) {
  SchedulerReading reading;
  reading.time_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) reading.involuntary_switches = usage.ru_nivcsw;
  std::ifstream file(pressure_file);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  reading.waiting_s = waiting_seconds(text);
  return reading;
}

std::unique_ptr<Telemetry> watch_processors(std::function<SchedulerReading()> read) {
  return std::make_unique<ProcessorTelemetry>(std::move(read));
}

}  // namespace gpubench
