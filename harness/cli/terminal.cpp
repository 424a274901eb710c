#include "harness/cli/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

bool forces(const std::string& value) { return !value.empty() && value != "0"; }

}  // namespace

bool use_color(ColorMode mode, bool is_terminal, const Environment& environment) {
  if (mode != ColorMode::automatic) return mode == ColorMode::always;
  if (!environment.variable("NO_COLOR").empty()) return false;
  if (forces(environment.variable("CLICOLOR_FORCE")) || forces(environment.variable("FORCE_COLOR"))) return true;
  return is_terminal && environment.variable("TERM") != "dumb";
}

bool use_utf8(const Environment& environment) {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = environment.variable(variable);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int columns_of(Stream stream, const Environment& environment) {
  constexpr int none = 100;
  constexpr int most = 10000;
  const std::string wish = environment.variable("COLUMNS");
  int columns = 0;
  const auto [end, error] = std::from_chars(wish.data(), wish.data() + wish.size(), columns);
  if (error == std::errc() && end == wish.data() + wish.size() && columns > 0 && columns <= most) return columns;
  const bool out = stream == Stream::out;
  if (!(out ? environment.out_is_terminal : environment.err_is_terminal)) return none;
  return out ? environment.out_columns : environment.columns;
}

ConsoleStyle console_style(const Options& options, Stream stream, const Environment& environment) {
  const bool is_terminal = stream == Stream::out ? environment.out_is_terminal : environment.err_is_terminal;
  return {use_color(options.color, is_terminal, environment), use_utf8(environment), options.quiet,
          options.verbose ? 1 : 0, is_terminal ? columns_of(stream, environment) : 0};
}

ConsoleStyle run_style(const Options& options, Stream stream, const Environment& environment) {
  ConsoleStyle style = console_style(options, stream, environment);
  style.width = columns_of(stream, environment);
  return style;
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

constexpr double heartbeat_s = 30.0;

// The rows of finished cases. A run that writes to a pipe is read while it goes on: each row is sent at once.
class Rows {
 public:
  explicit Rows(const ResultRows& options)
      : out_(options.out), quiet_(options.style.quiet), rows_(options.style, options.layout) {}

  void tell(const CaseRecord& record) {
    if (out_ == nullptr || (quiet_ && !went_wrong(record.verdict))) return;
    *out_ << rows_.next(record) << std::flush;
  }

 private:
  std::ostream* out_;
  bool quiet_;
  RowSequence rows_;
};

class Lines final : public RunObserver {
 public:
  Lines(std::ostream& err, const ProgressOptions& options)
      : err_(err), options_(options), rows_(options.rows), start_(options.now()), last_(start_) {}

  void phase(std::string_view key, std::string_view phase) override {
    now_ = fmt::format("{} of {}", phase, key);
    options_.remaining.phase(std::string(key), phase);
  }
  void finished(const CaseRecord& record) override {
    ++done_;
    options_.remaining.finished(record.key());
    rows_.tell(record);
    last_ = options_.now();
  }
  void note(std::string_view text) override { say(fmt::format("note: {}\n", visible(text))); }
  void tick() override {
    if (seconds(options_.now() - last_) < heartbeat_s) return;
    const std::optional<double> left_s = options_.remaining.seconds(seconds(options_.now() - start_));
    say(fmt::format("{} of {} cases finished{}, now {}\n", done_, options_.cases,
                    left_s ? fmt::format(", about {} left", format_duration(*left_s)) : "",
                    now_.empty() ? "starting" : visible(now_)));
  }

 private:
  void say(const std::string& text) {
    err_ << text << std::flush;
    last_ = options_.now();
  }

  std::ostream& err_;
  ProgressOptions options_;
  Rows rows_;
  std::string now_;
  int done_ = 0;
  Clock::time_point start_;
  Clock::time_point last_;
};

class Bar final : public RunObserver {
 public:
  Bar(std::ostream& err, const ProgressOptions& options)
      : err_(err), options_(options), rows_(options.rows), start_(options.now()) {}
  Bar(const Bar&) = delete;  // it erases what it drew, once
  Bar& operator=(const Bar&) = delete;
  ~Bar() override { err_ << erase << std::flush; }

  void phase(std::string_view key, std::string_view phase) override {
    now_ = fmt::format("{} {}", phase, key);
    options_.remaining.phase(std::string(key), phase);
    redraw();
  }
  void finished(const CaseRecord& record) override {
    ++done_;
    options_.remaining.finished(record.key());
    passed_ += record.verdict == Verdict::pass ? 1 : 0;
    wrong_ += went_wrong(record.verdict) ? 1 : 0;
    err_ << erase << std::flush;  // before a row takes its place on the same terminal
    rows_.tell(record);
    if (went_wrong(record.verdict) && !options_.rows.shares_bar_terminal) err_ << result_line(record, options_.console);
    redraw();
  }
  void note(std::string_view text) override {
    err_ << erase << "note: " << visible(text) << "\n";
    redraw();
  }
  void tick() override {
    if (seconds(options_.now() - drawn_) >= 0.1) redraw();
  }

 private:
  static constexpr const char* erase = "\r\x1b[K";

  // The line ends one column early: a terminal that wraps at its last column would not be able to redraw it.
  void redraw() {
    drawn_ = options_.now();
    constexpr int cells = 24;
    const int filled = options_.cases > 0 ? cells * done_ / options_.cases : 0;
    std::string line =
        fmt::format("[{}{}] {}/{}  {} pass {} wrong  {}{}  {}", std::string(static_cast<std::size_t>(filled), '#'),
                    std::string(static_cast<std::size_t>(cells - filled), '-'), done_, options_.cases, passed_, wrong_,
                    format_duration(seconds(drawn_ - start_)), left(), visible(now_));
    err_ << erase << first_columns(line, std::max(1, options_.columns - 1)) << std::flush;
  }

  [[nodiscard]] std::string left() const {
    const std::optional<double> left_s = options_.remaining.seconds(seconds(drawn_ - start_));
    return left_s ? fmt::format(", about {} left", format_duration(*left_s)) : "";
  }

  std::ostream& err_;
  ProgressOptions options_;
  Rows rows_;
  std::string now_;
  int done_ = 0;
  int passed_ = 0;
  int wrong_ = 0;
  Clock::time_point start_;
  Clock::time_point drawn_{};
};

class Silent final : public RunObserver {
 public:
  explicit Silent(const ProgressOptions& options) : rows_(options.rows) {}
  void phase(std::string_view /*key*/, std::string_view /*phase*/) override {}
  void finished(const CaseRecord& record) override { rows_.tell(record); }
  void note(std::string_view /*text*/) override {}
  void tick() override {}

 private:
  Rows rows_;
};

}  // namespace

std::unique_ptr<RunObserver> make_progress(std::ostream& err, const ProgressOptions& options) {
  switch (options.style) {
    case ProgressStyle::bar: return std::make_unique<Bar>(err, options);
    case ProgressStyle::lines: return std::make_unique<Lines>(err, options);
    case ProgressStyle::none: break;
  }
  return std::make_unique<Silent>(options);
}

}  // namespace gpubench
