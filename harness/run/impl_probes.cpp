#include "harness/run/impl_probes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <mutex>
#include <utility>

#include "harness/core/hash.h"
#include "harness/measure/statistics.h"
#include "harness/run/case_record.h"
#include "harness/run/own_implementation.h"
#include "harness/run/timing.h"

namespace gpubench {
namespace {

constexpr double kept_speedup = 1.2;
constexpr double max_novelty_s = 20.0;
constexpr int early_polls = 3;
constexpr int later_ms = 20;
/// OpenMP's threads spin after a parallel region, Intel's for 200 ms.
constexpr int spin_ms = 300;
constexpr int busy_ms = 100;
constexpr double busy_share = 0.1;            // also on a busy machine
constexpr std::int64_t max_looked_at = 4096;  // of each storage
constexpr std::int64_t look_bytes = 8;

std::int64_t minor_faults() {
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

double processor_s() {
  timespec used{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// Overwrites the processor's branch history with random branches. Otherwise correct code that branches on its data
/// would be faster on seen data of a small problem.
template <std::size_t... bit>
void branch_on(std::uint64_t bits, std::index_sequence<bit...> /*all*/) {
  const auto branch = [](bool taken) {
    if (taken) __asm__ __volatile__("nop");  // a compiler cannot turn it into arithmetic
  };
  (branch((bits >> bit & 1U) != 0), ...);
}
void forget_branches(std::uint64_t seed) {
  constexpr std::uint64_t rounds = 4096;
  for (std::uint64_t i = 0; i < rounds; ++i) branch_on(hash_at(seed, i), std::make_index_sequence<64>());
}

/// Places spread over the outputs of the timed ops, including the first and the last. Gathered before the launch, so
/// that look() takes microseconds.
class Places {
 public:
  explicit Places(PreparedCase& prepared) : prepared_(prepared) {
    std::vector<StorageId> written = prepared.produced();
    written.insert(written.end(), prepared.state().begin(), prepared.state().end());
    for (const StorageId id : written) {
      const std::int64_t runs = prepared.program().storage(id).bytes / look_bytes;
      if (runs == 0) continue;
      const std::int64_t count = std::min(runs, max_looked_at);
      Of of{id, {}, !prepared.program().is_state(id)};
      for (std::int64_t i = 0; i < count; ++i)
        of.offsets.push_back((count == 1 ? 0 : i * (runs - 1) / (count - 1)) * look_bytes);
      of_.push_back(std::move(of));
    }
  }

  [[nodiscard]] std::vector<std::vector<std::byte>> look() {
    std::vector<std::vector<std::byte>> seen(of_.size());
    for (std::size_t i = 0; i < of_.size(); ++i) {
      seen[i].resize(of_[i].offsets.size() * look_bytes);
      prepared_.backend().gather(seen[i], prepared_.memory(0).block(of_[i].id).data(), of_[i].offsets);
    }
    return seen;
  }
  [[nodiscard]] bool poisoned(std::size_t i) const { return of_[i].poisoned; }
  [[nodiscard]] const std::string& name(std::size_t i) const { return prepared_.program().storage(of_[i].id).name; }

 private:
  struct Of {
    StorageId id;
    std::vector<std::int64_t> offsets;
    bool poisoned;
  };
  PreparedCase& prepared_;
  std::vector<Of> of_;
};

}  // namespace

bool runs_own_implementation(const PreparedCase& prepared) {
  const std::vector<int>& ops = prepared.ops(Phase::timed);
  return std::any_of(ops.begin(), ops.end(),
                     [&](int op) { return prepared.implementation(op).starts_with(own_plan_prefix); });
}

bool keeps_results(const std::vector<NoveltyPair>& pairs) {
  return !pairs.empty() && std::all_of(pairs.begin(), pairs.end(), [](const NoveltyPair& pair) {
    return pair.new_ns > kept_speedup * pair.seen_ns;
  });
}

double median_ratio(const std::vector<NoveltyPair>& pairs) {
  std::vector<double> ratios;
  for (const NoveltyPair& pair : pairs) ratios.push_back(pair.new_ns / pair.seen_ns);
  return median(ratios);
}

void ImplProbes::look_at_process(Backend& backend, const std::string& phase) {
  std::string left;
  std::mutex telling;
  backend.on_each_thread([&] {
    const ArithmeticModes now = ArithmeticModes::now();
    if (now == modes_) return;
    const std::lock_guard lock(telling);
    left = modes_.restore_from(now);
  });
  if (!left.empty()) blame(record_, Verdict::error, fmt::format("after '{}' a thread has {}; restored", phase, left));
  if (const std::string changed = handlers_.restore(); !changed.empty())
    blame(record_, Verdict::error, fmt::format("'{}' changed {}; restored", phase, changed));
  look_at_scheduling(phase);
}

void ImplProbes::look_at_scheduling(const std::string& phase) {
  const std::string changed = scheduling_.changed_in(Scheduling::now(), user_binds_threads());
  if (changed.empty()) return;
  const bool restored = scheduling_.restore();
  blame(record_, Verdict::error,
        fmt::format("'{}' changed {}; {}", phase, changed, restored ? "restored" : "it can't be restored"));
  if (!restored) throw DeviceLost("the scheduling of its threads can't be restored");
}

void ImplProbes::before_round() {
  rounds_before_ = record_.rounds.size();
  faults_before_ = minor_faults();
}

void ImplProbes::after_round() {
  look_at_scheduling("time");
  if (record_.rounds.size() == rounds_before_ || record_.rounds.back().times.runs == 0) return;
  faults_per_run_.push_back(static_cast<double>(minor_faults() - faults_before_) /
                            static_cast<double>(record_.rounds.back().times.runs));
}

void ImplProbes::add_flags() {
  std::vector<std::string>& flags = record_.summary.flags;
  if (busy_) flags.emplace_back("a thread stays busy between runs");
  if (faults_per_run_.size() < 2) return;
  const double least = *std::min_element(faults_per_run_.begin(), faults_per_run_.end());
  if (least >= 1.0) flags.push_back(fmt::format("page faults in timed runs: {:.0f} per run", least));
}

void ImplProbes::early_return(PreparedCase& prepared) {
  Places places(prepared);
  bool busy = false;
  for (int look = 0; look < early_polls; ++look) {
    prepared.reset(0);
    const auto before = places.look();
    (void)prepared.time_once(0);
    const auto at_once = places.look();
    const double used_s = processor_s();
    ::poll(nullptr, 0, later_ms);
    busy = busy || processor_s() - used_s > busy_share * later_ms * 1e-3;
    const auto later = places.look();
    for (std::size_t i = 0; i < later.size(); ++i) {
      const bool unwritten = places.poisoned(i) && later[i] == before[i] && at_once[i] == before[i];
      if (at_once[i] == later[i] && !unwritten) continue;
      blame(record_, Verdict::fail,
            unwritten ? fmt::format("nothing of '{}' was written {} ms after the launch had returned", places.name(i),
                                    later_ms)
                      : fmt::format("it returned before its work was done: '{}' changed within {} ms after that",
                                    places.name(i), later_ms));
      return;
    }
  }
  if (busy) {
    ::poll(nullptr, 0, spin_ms);
    const double used_s = processor_s();
    ::poll(nullptr, 0, busy_ms);
    busy_ = processor_s() - used_s > busy_share * busy_ms * 1e-3;
  }
  coverage_ = "; probed for early return";
}

void ImplProbes::novelty(PreparedCase& prepared, std::uint64_t seed) {
  const Stopwatch watch;
  std::atomic<std::uint64_t> runs{0};
  const auto run_ns = [&](std::uint64_t data) {
    prepared.refill(data);
    prepared.backend().on_each_thread([&] { forget_branches(hash_at(data, ++runs)); });
    return prepared.time_once(0).wall_ns.at(0);
  };
  std::vector<NoveltyPair> pairs;
  while (pairs.size() < 2 * novelty_pairs) {
    const std::uint64_t data = hash_at(seed, pairs.size() + 1);
    NoveltyPair pair;
    pair.new_ns = run_ns(data);
    pair.seen_ns = run_ns(data);
    if (!keeps_results({pair})) break;
    pairs.push_back(pair);
    if (watch.seconds() > max_novelty_s && pairs.size() < 2 * novelty_pairs) {
      coverage_ += fmt::format("; kept results probed in only {} pairs of runs, for lack of time", pairs.size());
      return;
    }
  }
  coverage_ += " and kept results";
  if (pairs.size() < 2 * novelty_pairs) return;
  blame(record_, Verdict::fail,
        fmt::format("{:.2g} times as fast on data that it has seen before: it keeps results", median_ratio(pairs)));
}

}  // namespace gpubench
