#include "harness/run/engine.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/step_parts.h"
#include "harness/measure/derive.h"
#include "harness/measure/protocol.h"
#include "harness/run/check.h"
#include "harness/run/forwarding_backend.h"
#include "harness/run/impl_probes.h"
#include "harness/run/timing.h"
#include "reference/ops/collective.h"

namespace gpubench {
namespace {

constexpr std::size_t max_grouped = 16;
constexpr std::int64_t max_grouped_bytes = std::int64_t{2} << 30U;
constexpr std::size_t arena_keep_bytes = std::size_t{2} << 30U;  // between groups

/// Calls `step`; an exception becomes the record's verdict, with the errors that the device's driver reports.
/// DeviceLost is rethrown, since no later case can be measured.
template <class Step>
void guarded(CaseRecord& record, std::string_view phase, Telemetry& telemetry, const Step& step) {
  const auto with_errors = [&](const char* what) {
    const std::vector<std::string> errors = telemetry.take_errors();
    return fmt::format("{}{}{} (in phase '{}')", what, errors.empty() ? "" : "; the driver reports ",
                       fmt::join(errors, ", "), phase);
  };
  try {
    step();
  } catch (const DoesNotFit& e) {
    blame(record, Verdict::skipped, e.what());
  } catch (const Unsupported& e) {
    blame(record, Verdict::unsupported, e.what());
  } catch (const DeviceLost& e) {
    blame(record, Verdict::error, with_errors(e.what()));
    throw;
  } catch (const ProgramError& e) {
    blame(record, Verdict::error, fmt::format("the workload is defective: {}", e.what()));
  } catch (const std::bad_alloc&) {
    blame(record, Verdict::error, fmt::format("out of host memory in phase '{}'", phase));
  } catch (const std::exception& e) {
    blame(record, Verdict::error, with_errors(e.what()));
  }
}

std::map<std::string, std::string> pins_of(const RunOptions& options, const std::string& id) {
  const auto found = options.pins.find(id);
  return found == options.pins.end() ? std::map<std::string, std::string>() : found->second;
}

CaseRecord with_last_round(const CaseRecord& record) {
  CaseRecord latest = record;
  latest.rounds.assign(1, record.rounds.back());
  latest.summary.rounds = static_cast<int>(record.rounds.size());
  for (OpParity& op : latest.parity.ops) op.worst.reset();
  return latest;
}

std::vector<std::pair<std::string, std::string>> implementations(const CaseRecord& record) {
  std::vector<std::pair<std::string, std::string>> all{{"", record.implementation}};
  for (const OpParity& op : record.parity.ops) all.emplace_back(op.label, op.implementation);
  return all;
}

// Throws DoesNotFit if the case does not fit even with all possible reuse of memory.
void require_room(const PlannedCase& planned, std::int64_t available) {
  if (planned.bytes > available) require_fit(minimal_memory(planned.workload->build(planned.c)).bytes(), available);
}

bool may_go_on(const CaseRecord& record) {
  return record.verdict == Verdict::pass || record.verdict == Verdict::unverified;
}

}  // namespace

struct Engine::Active {
  const PlannedCase* planned = nullptr;
  CaseRecord record;
  std::unique_ptr<PreparedCase> prepared;
  std::unique_ptr<CaseCheck> check;
  std::optional<ImplProbes> probes;  ///< if an op runs in an implementation under test
  std::size_t adopted = 0;           ///< rounds of an earlier process
  bool settled = false;              ///< has enough rounds, but continues until its contenders have
  bool timed = false;                ///< gets no more rounds
  bool finished = false;             ///< record handed over
  std::vector<std::string> flags{};  ///< for the summary
  [[nodiscard]] bool takes_turns() const { return !finished && !timed && prepared != nullptr; }
};

std::vector<std::size_t> order_of_pass(std::span<const std::string> ids, std::uint64_t seed, int pass) {
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::uint64_t key = hash_at(mix(seed), static_cast<std::uint64_t>(pass));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return hash(ids[a], key) < hash(ids[b], key); });
  return order;
}

Engine::Engine(Backend& backend, const RunOptions& options) : backend_(backend), options_(options) {
  contexts_[{1, ""}] = open(backend, nullptr);
  if (options.open_telemetry) telemetry_ = options.open_telemetry(backend.device());
  if (telemetry_ == nullptr) telemetry_ = std::make_unique<NoTelemetry>();
  if (options.open_choices) tuning_cache_ = options.open_choices(backend.device());
  if (tuning_cache_ == nullptr) tuning_cache_ = std::make_unique<NoTuningCache>();
}

void Engine::LeakIfHung::operator()(DeviceContext* context) const {
  static auto& left_behind = *new std::vector<DeviceContext*>;  // reachable for leak checkers
  if (context->backend.hangs()) {
    left_behind.push_back(context);
  } else {
    delete context;
  }
}

Engine::OwnedDevice Engine::open(Backend& device, std::unique_ptr<Backend> owner) const {
  Backend* outer = &device;
  if (options_.check == CheckMode::full || options_.check == CheckMode::own) {
    owner = std::make_unique<ReadBackBackend>(*outer, std::move(owner));
    outer = owner.get();
  }
  if (options_.error) {
    owner = with_error(*outer, *options_.error, std::move(owner));
    outer = owner.get();
  }
  return OwnedDevice(new DeviceContext{std::move(owner), *outer, Arena(*outer)});
}

const OwnImplementation* Engine::under_test(const std::string& contender) {
  if (contender.empty()) return nullptr;
  std::unique_ptr<OwnImplementation>& loaded = implementations_[contender];
  for (const NamedImplementation& one : options_.implementations) {
    if (loaded == nullptr && one.name == contender) loaded = std::make_unique<OwnImplementation>(one.name, one.file);
  }
  if (loaded == nullptr) throw BackendError(fmt::format("no file is given for implementation '{}'", contender));
  return loaded.get();
}

Engine::DeviceContext& Engine::context(int ranks, const std::string& contender) {
  OwnedDevice& one = contexts_[{ranks, contender}];
  if (one == nullptr) {
    const OwnImplementation* own = under_test(contender);
    if (ranks > 1 && !options_.open_ranks)
      throw Unsupported(fmt::format("the {} backend runs on one rank only", backend_.device().kind));
    std::unique_ptr<Backend> opened = ranks > 1 ? options_.open_ranks(ranks, own) : with_implementation(backend_, *own);
    Backend& backend = *opened;
    one = open(backend, std::move(opened));
  }
  return *one;
}

std::int64_t Engine::available_bytes(const Backend& backend) const {
  const std::int64_t device = backend.device().available_bytes;
  return options_.memory_limit_bytes > 0 ? std::min(options_.memory_limit_bytes, device) : device;
}

std::int64_t Engine::footprint(const PlannedCase& planned) const {
  const int copies =
      copies_for(planned.c.cache, planned.bytes, backend_.device().cache_bytes, available_bytes(backend_));
  return std::min(planned.bytes, available_bytes(backend_)) * (copies + 1);
}

std::vector<std::size_t> group_sizes(std::span<const PlannedCase* const> cases) {
  std::vector<std::size_t> sizes;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    bytes += cases[i]->bytes;
    const bool is_contender = i > 0 && cases[i]->id() == cases[i - 1]->id();
    const bool fits = !sizes.empty() && sizes.back() < max_grouped && bytes <= max_grouped_bytes;
    if (is_contender || fits) {
      ++sizes.back();
      continue;
    }
    sizes.push_back(1);
    bytes = cases[i]->bytes;
  }
  return sizes;
}

void Engine::run(std::span<const PlannedCase> cases, RunObserver& observer, const StopFlag& stop) {
  const std::int64_t limit = group_bytes_for(options_.protocol(), available_bytes(backend_));
  const std::int64_t max_contenders = available_bytes(backend_) / 2;  // the check needs the rest
  note_cache_errors(observer);
  std::size_t first = 0;
  while (first < cases.size() && stop == 0) {
    const int ranks = cases[first].c.ranks;
    std::size_t count = 1;
    std::int64_t bytes = footprint(cases[first]);
    for (; first + count < cases.size() && cases[first + count].c.ranks == ranks; ++count) {
      bytes += footprint(cases[first + count]);
      const bool is_contender = cases[first + count].id() == cases[first + count - 1].id();
      if (bytes > (is_contender ? max_contenders : limit)) break;
    }
    for (auto& [of, used] : contexts_) {
      if (used != nullptr) used->arena.reset(of.first == ranks ? arena_keep_bytes : 0);
    }
    run_group(cases.subspan(first, count), observer, stop);
    first += count;
  }
}

void Engine::run_group(std::span<const PlannedCase> group, RunObserver& observer, const StopFlag& stop) {
  std::vector<Active> active(group.size());
  for (std::size_t i = 0; i < group.size() && stop == 0; ++i) {
    active[i].planned = &group[i];
    to_the_end(active[i], observer, [&] { prepare(active[i], observer); });
  }
  rounds(active, observer, stop);
  for (Active& one : active) {
    if (stop != 0) return;
    if (!one.finished) to_the_end(one, observer, [&] { conclude(one, observer); });
  }
}

// The case that lost the device gets its record before DeviceLost is rethrown.
template <class Step>
void Engine::to_the_end(Active& active, RunObserver& observer, const Step& step) {
  try {
    step();
  } catch (const DeviceLost&) {
    if (!active.finished) finish(active, observer);
    throw;
  }
}

// Otherwise the case would measure the device's implementation under another name.
void Engine::expect_any_op(const PlannedCase& planned) {
  const OwnImplementation* own = under_test(planned.c.contender);
  if (own == nullptr) return;
  const Program program = planned.workload->build(planned.c);
  std::string why;
  for (const OpCall& call : program.ops()) {
    const std::string reason =
        declines(*own, call, specs_of_call(program, call), backend_.device(), options_.deterministic);
    if (call.phase == Phase::timed && reason.empty()) return;
    if (why.empty() && call.phase == Phase::timed) why = fmt::format("{}: {}", call.kind.name, reason);
  }
  throw Unsupported(fmt::format("{} takes no op of this case ({})", own->name(), why));
}

void Engine::prepare(Active& active, RunObserver& observer) {
  const PlannedCase& planned = *active.planned;
  CaseRecord& record = active.record;
  record = open_record(planned, options_);
  observer.phase(record.key(), "prepare");
  guarded(record, "prepare", *telemetry_, [&] {
    if (options_.memory_limit_bytes > 0) require_room(planned, options_.memory_limit_bytes);  // before opening a device
    active.probes.emplace(record);
    expect_any_op(planned);
    DeviceContext& at = context(planned.c.ranks, planned.c.contender);
    const std::int64_t available = available_bytes(at.backend);
    require_room(planned, available);
    active.prepared = std::make_unique<PreparedCase>(
        at.backend, at.arena, planned, options_.seed, available,
        PlanRequest{
            planned.c.contender.empty() ? pins_of(options_, planned.id()) : std::map<std::string, std::string>(),
            tuning_cache_.get(), options_.deterministic, options_.arithmetic, options_.alive});
    record.plan_s = active.prepared->plan_s();
    if (!active.prepared->rewrites().empty()) record.rewrites = active.prepared->rewrites();
    record.copies = active.prepared->copies();
    record.memory_bytes = active.prepared->memory_bytes();
    record.workspace_bytes = active.prepared->workspace_bytes();
    if (active.prepared->ops(Phase::timed).size() == 1) {
      record.implementation = active.prepared->implementation(active.prepared->ops(Phase::timed).front());
      record.choice = active.prepared->choice(active.prepared->ops(Phase::timed).front());
    } else {
      record.memory = memory_by_kind(active.prepared->program());
    }
    active.check = std::make_unique<CaseCheck>(*active.prepared, options_, record);
    if (!runs_own_implementation(*active.prepared)) active.probes.reset();
    if (active.probes) active.probes->look_at_process(active.prepared->backend(), "plan");
  });
  if (!may_go_on(record)) return finish(active, observer);

  observer.phase(record.key(), "check");
  const Stopwatch watch;
  guarded(record, "check", *telemetry_, [&] { active.check->alone(); });
  record.check_s += watch.seconds();
  guarded(record, "check", *telemetry_, [&] {
    if (!may_go_on(record)) return;
    active.prepared->make_copies(available_bytes(active.prepared->backend()));
    record.copies = active.prepared->copies();
    record.memory_bytes = active.prepared->memory_bytes();
    if (active.probes) active.probes->look_at_process(active.prepared->backend(), "check");
  });
  if (record.verdict == Verdict::downgraded) further_launches(active);  // probes the arithmetic
  if (!may_go_on(record)) return finish(active, observer);
  adopt_rounds(record, options_.protocol());
  active.adopted = record.rounds.size();
}

// Rounds belong to one measurement only if implementations and copies are equal. At least one round runs in this
// process, since the recheck needs the outputs of timed launches.
void Engine::adopt_rounds(CaseRecord& record, const Protocol& protocol) const {
  const auto found = options_.in_flight.find(record.key());
  if (found == options_.in_flight.end()) return;
  const CaseRecord& earlier = found->second;
  if (earlier.copies != record.copies || implementations(earlier) != implementations(record)) return;
  record.rounds = earlier.rounds;
  record.batch = earlier.batch;
  record.time_s = earlier.time_s;
  if (settled(protocol, record.rounds, record.batch, record.time_s)) record.rounds.pop_back();
}

void Engine::rounds(std::vector<Active>& group, RunObserver& observer, const StopFlag& stop) {
  const Protocol protocol = options_.protocol();
  const auto continues = [&group](const Active& active) {
    return active.takes_turns() && std::ranges::any_of(group, [&active](const Active& other) {
             return other.planned->id() == active.planned->id() && other.takes_turns() && !other.settled;
           });
  };
  for (int pass = 0;; ++pass) {
    std::vector<Active*> unfinished;
    std::vector<std::string> keys;
    for (Active& active : group) {
      if (!continues(active)) continue;
      unfinished.push_back(&active);
      keys.push_back(active.record.key());
    }
    if (unfinished.empty()) return;
    for (const std::size_t position : order_of_pass(keys, options_.seed, pass)) {
      if (stop != 0) return;
      Active& active = *unfinished[position];
      observer.tick();
      if (options_.another_round && !options_.another_round(active.record)) {
        active.timed = true;
        continue;
      }
      observer.phase(active.record.key(), "time");
      const std::size_t before = active.record.rounds.size();
      to_the_end(active, observer, [&] {
        hold_to_batch(active.record);
        if (active.probes) active.probes->before_round();
        guarded(active.record, "time", *telemetry_,
                [&] { time_round(*active.prepared, protocol, *telemetry_, active.record, before == active.adopted); });
        if (active.probes) active.probes->after_round();
        look_at_processors(group, observer);
        inject_slowdown(active);
        if (may_go_on(active.record)) check_round(active);
        if (active.record.rounds.size() > before) observer.round(with_last_round(active.record));
      });
      if (active.finished || active.timed) continue;
      if (!may_go_on(active.record)) {
        finish(active, observer);
      } else if (!options_.another_round) {
        active.settled = settled(protocol, active.record.rounds, active.record.batch, active.record.time_s);
      }
    }
  }
}

void Engine::look_at_processors(std::vector<Active>& group, RunObserver& observer) {
  const std::string change = processors_.take_change();
  if (change.empty() || !implementations_.empty() || user_binds_threads()) return;
  observer.note(processors_note(change));
  for (Active& one : group) {
    if (!one.finished) one.flags.push_back(fmt::format("processors changed from outside: {}", change));
  }
}

// Not part of the timing; runs before the next case's round, which has another working set. A fault ends the rounds,
// not the case, since the replay may name the op.
void Engine::check_round(Active& active) {
  const Stopwatch watch;
  guarded(active.record, "time", *telemetry_, [&] { active.timed = !active.check->after_round(); });
  active.record.check_s += watch.seconds();
}

void Engine::hold_to_batch(CaseRecord& record) const {
  const auto found = options_.batches.find(record.id);
  if (record.rounds.empty() && found != options_.batches.end()) record.batch = found->second;
}

void Engine::inject_slowdown(Active& active) {
  if (!options_.slowdown || active.record.rounds.empty() ||
      !runs_timed(active.prepared->program(), options_.slowdown->op))
    return;
  slow_down(*options_.slowdown, active.record.rounds.back());
}

void Engine::conclude(Active& active, RunObserver& observer) {
  CaseRecord& record = active.record;
  observer.phase(record.key(), "recheck");
  const Stopwatch watch;
  guarded(record, "recheck", *telemetry_, [&] {
    active.check->timed_buffers();
    active.check->rechecks();
    const bool probed = active.probes && record.verdict == Verdict::pass;
    if (probed) active.probes->early_return(*active.prepared);
    active.check->replay();
    if (probed && record.verdict == Verdict::pass) active.probes->novelty(*active.prepared, options_.seed);
    if (active.probes) active.probes->look_at_process(active.prepared->backend(), "recheck");
  });
  record.check_s += watch.seconds();

  record.summary = summarize(record.rounds, record.batch);
  const std::optional<double> joules = joules_per_run(active, observer);
  std::vector<OpShare> breakdown;
  std::optional<double> compute_only_ns;
  if (may_go_on(record) && active.prepared->ops(Phase::timed).size() > 1) {
    observer.phase(record.key(), "time");
    const Stopwatch timing;
    guarded(record, "time", *telemetry_, [&] {
      if (options_.breakdown) breakdown = time_ops_alone(*active.prepared, options_.protocol());
      compute_only_ns = time_compute_only(*active.prepared, options_.protocol());
    });
    record.time_s += timing.seconds();
  }
  if (options_.slowdown && runs_timed(active.prepared->program(), options_.slowdown->op))
    record.summary.flags.emplace_back(slowed_flag);
  if (active.probes) active.probes->add_flags();
  for (std::string& flag : active.flags) record.summary.flags.push_back(std::move(flag));
  for (std::string& flag : telemetry_flags(record.rounds, options_.locked_clock_mhz))
    record.summary.flags.push_back(std::move(flag));
  for (std::string& flag : active.prepared->backend().flags()) record.summary.flags.push_back(std::move(flag));
  if (record.summary.rounds == 0)
    blame(record, Verdict::error,
          "no valid round: " + (record.rounds.empty() ? "none was run" : record.rounds.back().note));
  guarded(record, "recheck", *telemetry_, [&] {
    const Workload& workload = *active.planned->workload;
    // The FLOP are those that the case declares; the bytes are those that the fused program moves.
    const Cost real = cost_of(active.prepared->program());
    const Cost cost{active.planned->cost.flop, real.bytes, real.message_bytes};
    record.derived = derive(workload.info(), workload.items(record.c), cost, record.summary, breakdown);
    record.derived.ranks = rank_spread(record.rounds);
    if (record.derived.ranks) record.derived.ranks->partners = partners_of(active.prepared->program());
    if (record.derived.ranks && compute_only_ns && record.summary.median_ns > 0.0) {
      record.derived.ranks->compute_only_ns = compute_only_ns;
      record.derived.ranks->exposed_communication = 1.0 - *compute_only_ns / record.summary.median_ns;
    }
    if (record.derived.ranks) {
      record.derived.ranks->units = active.prepared->backend().device().units;
      for (std::string& flag : straggler_flags(*record.derived.ranks)) record.summary.flags.push_back(std::move(flag));
    }
    add_energy(record.derived, joules, record.summary);
  });
  further_launches(active);
  finish(active, observer);
}

// Must come last: it overwrites the timed data.
void Engine::further_launches(Active& active) {
  if (active.record.verdict != Verdict::pass && active.record.verdict != Verdict::downgraded) return;
  const Stopwatch watch;
  guarded(active.record, "further launches", *telemetry_, [&] {
    active.check->further_launches();
    if (active.probes) active.probes->look_at_process(active.prepared->backend(), "further launches");
  });
  active.record.check_s += watch.seconds();
}

std::optional<double> Engine::joules_per_run(Active& active, RunObserver& observer) {
  CaseRecord& record = active.record;
  std::optional<double> joules = energy_per_run_j(record.rounds, record.summary.median_ns);
  if (joules || !options_.energy || !may_go_on(record)) return joules;
  observer.phase(record.key(), "time");
  const Stopwatch timing;
  guarded(record, "time", *telemetry_, [&] { joules = energy_of_window(*active.prepared, *telemetry_, record); });
  record.time_s += timing.seconds();
  return joules;
}

void Engine::finish(Active& active, RunObserver& observer) {
  if (active.check != nullptr)
    close_parity(active.record, options_.check, active.check->pauses(),
                 active.check->rounds_coverage() + (active.probes ? active.probes->coverage() : ""));
  active.probes.reset();
  active.check.reset();
  if (options_.error && active.prepared != nullptr && runs_timed(active.prepared->program(), options_.error->op))
    active.record.summary.flags.emplace_back(wrong_flag);
  // Only for cases that pass: a wrong or crashing implementation must not be chosen again.
  if (active.record.verdict == Verdict::pass && active.prepared != nullptr)
    tuning_cache_->keep(active.prepared->timed_choices());
  active.prepared.reset();
  active.finished = true;
  finished_.insert(active.record.key());
  observer.finished(active.record);
  note_cache_errors(observer);
}

void Engine::note_cache_errors(RunObserver& observer) {
  if (const std::string complaint = tuning_cache_->take_complaint(); !complaint.empty()) observer.note(complaint);
}

}  // namespace gpubench
