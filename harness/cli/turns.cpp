#include "harness/cli/turns.h"

#include <fmt/format.h>

#include <string>

#include "harness/cli/flag_values.h"
#include "harness/measure/statistics.h"

namespace gpubench {

bool Turns::operator()(const CaseRecord& record) {
  constexpr double longest_s = 3600.0;
  if (turn_ > 0) {
    if (Clock::now() - begun_ < length_) return true;
    answer(record);
  }
  std::string line;
  if (!std::getline(*in_, line)) return false;
  const double seconds = number<double>(line).value_or(0.0);
  if (!(seconds > 0.0 && seconds <= longest_s))
    throw UsageError(fmt::format("--turns: '{}' is no number of seconds from 0 to {}", visible(line), longest_s));
  ++turn_;
  first_ = record.rounds.size();
  length_ = std::chrono::duration<double>(seconds);
  begun_ = Clock::now();
  return true;
}

void Turns::answer(const CaseRecord& record) const {
  std::vector<double> runs_ns;
  for (std::size_t i = first_; i < record.rounds.size(); ++i) {
    if (!record.rounds[i].valid) continue;
    for (const double ns : record.rounds[i].times.device_ns) runs_ns.push_back(ns / static_cast<double>(record.batch));
  }
  *out_ << fmt::format("{{\"turn\": {}, \"copies\": {}, \"rounds\": {}, \"median_ns\": {}}}", turn_, record.copies,
                       record.rounds.size() - first_, runs_ns.empty() ? "null" : fmt::format("{}", median(runs_ns)))
        << std::endl;
}

}  // namespace gpubench
