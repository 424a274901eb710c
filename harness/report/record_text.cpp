#include "harness/report/record_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/text_table.h"
#include "harness/measure/statistics.h"
#include "harness/report/console.h"

namespace gpubench {
namespace {

constexpr double busy = 0.2;  // share of a round in which some task waited; a few percent on an idle machine

struct Meaning {
  std::string_view word;
  std::string_view text;
};

constexpr Meaning flags[] = {
    {"noisy", "the 95% interval is wider than +-25% of the time: unreliable, in no best rate and no efficiency"},
    {"no interval", "there is only one valid round: unreliable, as noisy is"},
    {"severe", "more than 5% of the samples lie 10 standard deviations from the median, or further"},
    {"drift", "the second half of the rounds took over 1% more or less than the first, beyond their spread"},
    {"throttled", "the hardware slowed itself down, by heat or power, and did so again when rounds were repeated"},
    {"memory errors", "the device counted new uncorrected memory errors"},
    {"device errors", "the driver reported an error of the device (Xid) in a round"},
    {"power capped", "software limited the device's power"},
    {"clock off", "the SM clock was not where --locked-clock says"},
    {"clock unknown", "--locked-clock was given, and no clock could be read"},
    {"invalid rounds", "rounds whose clock failed were left out"},
    {"oversubscribed", "more ranks than processors"},
    {"above peak", "faster than the device can be by its peak: operations are saved, or the count is wrong"},
    {"injected slowdown", "--inject-slowdown added to its times"},
    {"injected error", "--inject-error corrupted its results"},
    {"stragglers", "the slowest rank is over 5% late, not always the same one"},
};

// Other verdicts come with a reason.
bool needs_explanation(Verdict verdict) {
  return verdict == Verdict::downgraded || verdict == Verdict::not_proven || verdict == Verdict::unverified;
}

bool is_timing(const CaseRecord& record) {
  const bool counts = record.verdict == Verdict::pass || record.verdict == Verdict::unverified;
  return counts && record.summary.rounds > 0;
}

std::optional<double> pressure_of(const CaseRecord& record) {
  std::vector<double> pressures;
  for (const RoundRecord& round : record.rounds) {
    if (round.valid && round.telemetry && round.telemetry->cpu_pressure)
      pressures.push_back(*round.telemetry->cpu_pressure);
  }
  return pressures.empty() ? std::nullopt : std::optional(median(pressures));
}

}  // namespace

TimingCount count_timings(std::span<const CaseRecord> records) {
  TimingCount count;
  std::vector<double> pressures;
  for (const CaseRecord& record : records) {
    if (!is_timing(record)) continue;
    ++count.timings;
    if (!timing_unreliable(record.summary)) continue;
    ++count.unreliable;
    if (const std::optional<double> pressure = pressure_of(record)) pressures.push_back(*pressure);
  }
  if (!pressures.empty()) count.cpu_pressure = median(pressures);
  return count;
}

std::string unreliable_text(std::span<const CaseRecord> records) {
  const TimingCount count = count_timings(records);
  if (count.unreliable == 0) return "";
  const std::string why = count.cpu_pressure && *count.cpu_pressure >= busy
                              ? fmt::format(
                                    "the processors were busy (some task waited for one {:.0f}% of the "
                                    "time); stop other work and run again",
                                    100.0 * *count.cpu_pressure)
                              : "rounds differ too much; --preset normal runs more of them";
  return fmt::format("{} of {} timing{} unreliable: {}", count.unreliable, count.timings, count.timings == 1 ? "" : "s",
                     why);
}

std::string verdict_with_reliability(std::string_view word, std::span<const CaseRecord> records) {
  const std::string unreliable = unreliable_text(records);
  if (unreliable.empty()) return std::string(word);
  return fmt::format("{}{}; {}", word, word == verdict_word(Verdict::pass) ? " (correct)" : "", unreliable);
}

std::string rate_text_of(const CaseRecord& record) {
  return (timing_unreliable(record.summary) ? "~" : "") +
         format_quantity(record.derived.headline, record.derived.headline_unit);
}

std::string arithmetic_text(const PlanArithmetic& arithmetic) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::string& before, const std::string& what) {
    if (!what.empty()) parts.push_back(before + what);
  };
  add("", arithmetic.unit);
  if (arithmetic.bits) {
    std::string sums = fmt::format("running sums of {} bits", *arithmetic.bits);
    if (!arithmetic.rounding.empty()) sums += arithmetic.rounding == "cut" ? ", cut" : ", to " + arithmetic.rounding;
    add("", sums);
  }
  if (arithmetic.at_once.value_or(1) > 1) {
    std::string at_once = fmt::format("{} products at once", *arithmetic.at_once);
    if (arithmetic.fraction) at_once += fmt::format(", to {} bits behind the largest", *arithmetic.fraction);
    add("", at_once);
  }
  if (arithmetic.emptied) add("", fmt::format("emptied every {} products", *arithmetic.emptied));
  add("partial sums in ", arithmetic.partial);
  add("inputs ", arithmetic.inputs);
  add("products ", arithmetic.products);
  add("stored ", arithmetic.store);
  add("denormals ", arithmetic.denormals);
  add("NaN and infinity ", arithmetic.specials);
  add("added ", arithmetic.order);
  add("", arithmetic.note);
  return joined(parts, "; ");
}

std::string share_or_unknown(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}%", 100.0 * *share) : "unknown";
}

std::string_view meaning_of_flag(std::string_view flag) {
  if (flag.starts_with("rank ") && flag.ends_with(" straggles"))
    return "that rank is over 5% late, in more than 80% of the samples";
  const auto found = std::find_if(std::begin(flags), std::end(flags), [&](const Meaning& m) { return m.word == flag; });
  return found == std::end(flags) ? "" : found->text;
}

std::string_view meaning_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "";
    case Verdict::fail: return "an element is outside the bound that its arithmetic allows";
    case Verdict::downgraded:
      return "an op computes in less than the declared precision: a probe read it, or its results are outside the "
             "declared bound and right within a lower one's";
    case Verdict::not_proven: return "the check compared nothing, or accepted a corrupted output";
    case Verdict::unverified: return "not checked (--check off): no result";
    case Verdict::unsupported: return "the device or its libraries do not implement it; the reason is quoted";
    case Verdict::skipped: return "not run: it does not fit in memory, or the run was interrupted";
    case Verdict::error: return "it crashed or hung, or a library failed while it ran";
  }
  return "";
}

std::vector<std::pair<std::string, std::string>> legend_entries(std::span<const CaseRecord> records) {
  std::vector<std::pair<std::string, std::string>> words;
  const auto add = [&](std::string word, std::string_view meaning) {
    const bool known = std::any_of(words.begin(), words.end(), [&](const auto& one) { return one.first == word; });
    if (!known && !meaning.empty()) words.emplace_back(std::move(word), meaning);
  };
  for (const CaseRecord& record : records) {
    if (needs_explanation(record.verdict)) add(verdict_word(record.verdict), meaning_of(record.verdict));
    for (const std::string& flag : record.summary.flags) add(flag, meaning_of_flag(flag));
  }
  return words;
}

namespace {

// The values of _OPENMP defined by each release of the specification.
std::string_view openmp_release(std::string_view date) {
  struct Release {
    std::string_view date;
    std::string_view number;
  };
  static constexpr Release releases[] = {{"200805", "3.0"}, {"201107", "3.1"}, {"201307", "4.0"}, {"201511", "4.5"},
                                         {"201811", "5.0"}, {"202011", "5.1"}, {"202111", "5.2"}, {"202411", "6.0"}};
  for (const Release& release : releases) {
    if (release.date == date) return release.number;
  }
  return date;
}

}  // namespace

std::string units_text(const DeviceInfo& device) {
  const std::string_view one = device.kind == "cpu" ? "thread" : device.kind == "cuda" ? "SM" : "unit";
  return fmt::format("{} {}{}", device.units, one, device.units == 1 ? "" : "s");
}

std::string library_text(std::string_view library, std::string_view version) {
  if (library == "openmp") return fmt::format("OpenMP {}", openmp_release(version));
  if (library == "onednn") {
    const std::string_view unknown = " (N/A)";
    if (version.ends_with(unknown)) version.remove_suffix(unknown.size());
    return fmt::format("oneDNN {}", version);
  }
  return fmt::format("{} {}", library, version);
}

std::string libraries_text(const DeviceInfo& device) {
  std::vector<std::string> all;
  for (const auto& [library, version] : device.libraries) all.push_back(library_text(library, version));
  return joined(all);
}

}  // namespace gpubench
