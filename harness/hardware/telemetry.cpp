#include "harness/hardware/telemetry.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/error.h"
#include "harness/measure/statistics.h"

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
    if (before.waiting_s && after.waiting_s && round.window_s > 0.0)  // the kernel's sum lags a little: at most all
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

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t idle_bit = 1;
constexpr double averaging_s = 1.0;  // of power, if a GPU does not report the momentary value

bool is_idle(const GpuReading& reading) { return (reading.reasons.value_or(0) & idle_bit) != 0; }

template <class Member>
std::vector<double> values_of(std::span<const GpuReading> readings, Member member, bool busy_only) {
  std::vector<double> values;
  for (const GpuReading& reading : readings) {
    if (reading.*member && !(busy_only && is_idle(reading))) values.push_back(static_cast<double>(*(reading.*member)));
  }
  return values;
}

std::optional<Spread> spread_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return Spread{*low, median(values), *high};
}

std::optional<Spread> clocks(std::span<const GpuReading> readings, std::optional<int> GpuReading::*member) {
  const auto busy = spread_of(values_of(readings, member, true));
  return busy ? busy : spread_of(values_of(readings, member, false));
}

template <class T>
std::optional<T> advance(std::span<const GpuReading> readings, std::optional<T> GpuReading::*counter) {
  if (readings.empty() || !(readings.front().*counter) || !(readings.back().*counter)) return std::nullopt;
  const T gone = *(readings.back().*counter) - *(readings.front().*counter);
  return gone < T{} ? std::nullopt : std::optional(gone);  // a counter that goes back was reset
}

class Poller final : public Telemetry {
 public:
  Poller(std::function<GpuReading()> read, Nvml::XidEvents xids, double period_s,
         std::function<MemoryErrors()> memory_errors)
      : read_(std::move(read)), xids_(std::move(xids)), memory_errors_(std::move(memory_errors)), period_(period_s) {
    thread_ = std::thread([this] { poll(); });
  }
  Poller(const Poller&) = delete;  // owns a thread
  Poller& operator=(const Poller&) = delete;
  ~Poller() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      polling_ = false;
    }
    changed_.notify_all();
    thread_.join();
  }

  void begin_round() override {
    const std::lock_guard lock(mutex_);
    readings_.assign(1, read_());
    begun_ = Clock::now();
    polling_ = true;
    changed_.notify_all();
  }

  std::optional<RoundTelemetry> end_round() override {
    const std::lock_guard lock(mutex_);
    if (!polling_) return std::nullopt;
    polling_ = false;
    const double window_s = std::chrono::duration<double>(Clock::now() - begun_).count();
    readings_.push_back(read_());
    changed_.notify_all();
    return summarize_readings(readings_, window_s);
  }

  std::vector<std::string> take_errors() override {
    std::vector<std::string> errors;
    if (!xids_) return errors;
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t xid : xids_()) errors.push_back(xid_text(xid));
    return errors;
  }

  [[nodiscard]] MemoryErrors memory_errors() override {
    const std::lock_guard lock(mutex_);
    return memory_errors_ ? memory_errors_() : MemoryErrors{};
  }

  [[nodiscard]] bool counts_energy() const override { return true; }

  void rest(double seconds) override { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

 private:
  // The lock serializes calls of `read`; a reading takes well under a millisecond.
  void poll() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      if (!polling_) {
        changed_.wait(lock);
      } else if (changed_.wait_for(lock, period_) == std::cv_status::timeout && polling_) {
        readings_.push_back(read_());
      }
    }
  }

  std::function<GpuReading()> read_;
  Nvml::XidEvents xids_;
  std::function<MemoryErrors()> memory_errors_;
  std::chrono::duration<double> period_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<GpuReading> readings_;
  Clock::time_point begun_;
  bool polling_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace

RoundTelemetry summarize_readings(std::span<const GpuReading> readings, double window_s) {
  RoundTelemetry round;
  round.readings = static_cast<int>(readings.size());
  round.window_s = window_s;
  round.sm_mhz = clocks(readings, &GpuReading::sm_mhz);
  round.memory_mhz = clocks(readings, &GpuReading::memory_mhz);
  if (const auto heat = spread_of(values_of(readings, &GpuReading::temperature_c, false)))
    round.temperature_c = heat->max;
  // A trailing average includes the previous round, of another case, unless this round is longer.
  const bool averaged =
      std::any_of(readings.begin(), readings.end(), [](const GpuReading& r) { return r.power_is_average; });
  const std::vector<double> watts = values_of(readings, &GpuReading::power_w, false);
  if (!averaged && !watts.empty()) round.power_w = mean(watts);
  if (averaged && !watts.empty() && window_s >= averaging_s) round.power_w = watts.back();
  if (window_s >= min_energy_window_s) round.energy_j = advance(readings, &GpuReading::energy_j);
  round.uncorrected_errors = advance(readings, &GpuReading::uncorrected_errors);
  std::uint64_t reasons = 0;
  bool all_idle = !readings.empty();
  for (const GpuReading& reading : readings) {
    reasons |= reading.reasons.value_or(0);
    all_idle = all_idle && is_idle(reading);
  }
  if (!all_idle) reasons &= ~idle_bit;  // idle only before or after the work
  round.reasons = clock_reasons(reasons);
  return round;
}

std::unique_ptr<Telemetry> poll_sensors(std::function<GpuReading()> read, Nvml::XidEvents xids, double period_s,
                                        std::function<MemoryErrors()> memory_errors) {
  return std::make_unique<Poller>(std::move(read), std::move(xids), period_s, std::move(memory_errors));
}

std::unique_ptr<Telemetry> open_telemetry(const DeviceInfo& device, const std::string& library) {
  if (device.kind == "cpu") return watch_processors();
  if (device.kind != "cuda") return std::make_unique<NoTelemetry>();
  try {
    const auto nvml = std::make_shared<const Nvml>(library);
    if (const Nvml::Device handle = nvml->find(device); handle != nullptr)
      return poll_sensors([nvml, handle] { return nvml->read(handle); }, nvml->watch_xids(handle), sensor_period_s,
                          [nvml, handle] { return nvml->memory_errors(handle); });
  } catch (const BackendError&) {
  }
  return std::make_unique<NoTelemetry>();
}

}  // namespace gpubench
