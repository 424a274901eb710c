#include "harness/verify/selftest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/parity/textbook_outputs.h"
#include "harness/run/check.h"
#include "harness/run/prepared_case.h"

namespace gpubench {
namespace {

class Records final : public RunObserver {
 public:
  void phase(std::string_view, std::string_view) override {}
  void finished(const CaseRecord& record) override { all.push_back(record); }
  void note(std::string_view) override {}
  void tick() override {}
  std::vector<CaseRecord> all;
};

// Kind, constants and types, independent of the program.
std::string text_of(const OpCall& call, std::span<const std::string_view> types) {
  const std::string constants = call.attributes.to_string();
  return fmt::format("{}{}{} ({})", call.kind.name, constants.empty() ? "" : ", ", constants, fmt::join(types, " "));
}

// Without repetitions, since lists of tensors may be long.
std::vector<std::string_view> types_of(const Program& program, const OpCall& call) {
  std::vector<std::string_view> types;
  for (const std::vector<ValueId>* ids : {&call.inputs, &call.outputs}) {
    for (const ValueId id : *ids) types.push_back(name(program.spec(id).dtype));
  }
  types.erase(std::unique(types.begin(), types.end()), types.end());
  return types;
}

std::vector<std::string_view> unique_types(std::span<const std::string_view> types) {
  std::vector<std::string_view> once;
  for (const std::string_view type : types) {
    if (std::ranges::find(once, type) == once.end()) once.push_back(type);
  }
  return once;
}

class Selftest {
 public:
  Selftest(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
           const SelftestEffort& effort, const SelftestProgress& progress, const StopFlag& stop)
      : backend_(backend), cases_(cases), options_(options), effort_(effort), progress_(progress), stop_(stop) {
    for (const FaultFamily& family : fault_families())
      result_.rows.push_back({.name = std::string(family.name),
                              .where = std::string(family.where),
                              .rule = std::string(name(family.rule))});
    options_.judged = [this](const Program& program, int op, const OpView& view, const OpParity& parity) {
      judged(program, op, view, parity);
    };
    options_.check_flop = effort.clean_check_flop;
    options_.breakdown = false;
  }

  SelftestResult run() {
    // Largest first: of calls that differ only in shapes, the first that is small enough gets faults.
    std::vector<const PlannedCase*> chosen;
    for (const PlannedCase& planned : cases_) {
      if (planned.cost.flop <= effort_.max_case_flop) chosen.push_back(&planned);
    }
    std::ranges::stable_sort(chosen, std::greater{}, [](const PlannedCase* one) { return one->cost.flop; });
    const auto step_is_done = [this] { result_.steps_done += stop_ == 0 ? 1 : 0; };
    result_.steps = static_cast<std::int64_t>(chosen.size()) + 2;
    for (std::size_t i = 0; i < chosen.size() && stop_ == 0; ++i) {
      progress_(fmt::format("{} of {} cases: {}", i + 1, chosen.size(), chosen[i]->id()), result_);
      const std::int64_t wanted = effort_.clean_launches - result_.clean_launches;
      const auto cases_left = static_cast<std::int64_t>(chosen.size() - i);
      try {
        one_case(*chosen[i], (wanted + cases_left - 1) / cases_left);
      } catch (const Unsupported& e) {
        result_.left_out.push_back(fmt::format("{}: {}", chosen[i]->id(), e.what()));
      }
      step_is_done();
    }
    faulty_devices();
    step_is_done();
    std::vector<FaultRow> shared = parallel_selftest(
        cases_, effort_, options_.seed, result_.alarms, [&](const std::string& now) { progress_(now, result_); },
        stop_);
    step_is_done();
    std::ranges::move(shared, std::back_inserter(result_.rows));
    for (FaultRow& row : result_.rows) {
      if (effort_.needs_every_family && row.faults == 0 && stop_ == 0 && result_.unmeasured.empty())
        row.escaped.emplace_back("never tried");
    }
    return std::move(result_);
  }

 private:
  void one_case(const PlannedCase& planned, std::int64_t launches) {
    Backend& backend = of_ranks(planned.c.ranks);
    Arena arena(backend);
    PreparedCase prepared(backend, arena, planned, options_.seed, backend.device().available_bytes,
                          PlanRequest{.alive = options_.alive});
    current_ = planned.id();
    const std::int64_t before = result_.clean_launches;
    for (std::uint64_t trial = 0; stop_ == 0; ++trial) {
      if (trial > 0) {
        options_.seed = hash_at(mix(seed_), trial);
        prepared.refill(options_.seed);
      }
      CaseRecord record = open_record(planned, options_);
      CaseCheck check(prepared, options_, record);
      check.alone();
      check.further_launches();
      // Faults of no element: a changed input, a damaged guard.
      if (record.verdict != Verdict::pass && result_.alarms.empty())
        result_.alarms.push_back(fmt::format("{}: {}", current_, record.reason));
      const std::int64_t done = result_.clean_launches - before;
      if (done == 0 || done >= launches || planned.bytes > effort_.max_repeated_bytes) break;  // 0: no judged launch
    }
    options_.seed = seed_;
    ++result_.clean_cases;
  }

  [[nodiscard]] Backend& of_ranks(int ranks) {
    if (ranks == 1) return backend_;
    if (!options_.open_ranks)
      throw Unsupported(fmt::format("the {} backend runs on one rank only", backend_.device().kind));
    std::unique_ptr<Backend>& several = several_[ranks];
    if (several == nullptr) several = options_.open_ranks(ranks, nullptr);
    return *several;
  }

  void judged(const Program& program, int op, const OpView& view, const OpParity& parity) {
    ++result_.clean_launches;
    result_.clean_elements += parity.judged;
    if (parity.verdict != Verdict::pass) {
      result_.alarms.push_back(
          fmt::format("{} of {}: {}: {}", parity.label, current_, name(parity.verdict), parity.reason));
      return;
    }
    const OpCall& call = program.op(op);
    const std::vector<std::string_view> types = types_of(program, call);
    const std::string signature = text_of(call, types);
    if (seen_.contains(signature) || textbook_flop(program, call) > effort_.max_fault_flop) return;
    seen_.insert(signature);
    const std::string what = text_of(call, unique_types(types));
    kinds_.insert(std::string(call.kind.name));
    result_.ops = static_cast<std::int64_t>(seen_.size());
    result_.kinds = static_cast<std::int64_t>(kinds_.size());
    JudgePolicy policy;
    policy.mode = CheckMode::full;
    policy.seed = options_.seed;
    policy.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const FaultReport report = inject_faults(program, op, view, policy, options_.alive);
    for (const FaultTrial& trial : report.trials) add(trial, what);
    for (const std::string& alarm : report.alarms) result_.alarms.push_back(fmt::format("{}: {}", what, alarm));
  }

  void add(const FaultTrial& trial, const std::string& what) {
    const FaultFamily& family = fault_families()[trial.family];
    FaultRow& row = result_.rows[trial.family];
    const std::string text = fmt::format("{}, {}", trial.name, what);
    ++row.faults;
    // Tensors that are equal on all ranks are compared by bits, so faults within the bound are found.
    if (trial.caught_by == CheckRule::identical && trial.size <= 1.0 && trial.rule == CheckRule::bound) {
      ++row.caught;
    } else if (trial.caught_by == trial.rule) {
      if (++row.caught == 1 || row.weakest_name.empty() || trial.size < row.weakest) {
        row.weakest = trial.size;
        row.weakest_name = text;
      }
    } else if (trial.size > 1.0 || family.certain || trial.caught_by != CheckRule::none) {
      row.escaped.push_back(
          fmt::format("{}: {:.3g} of its bound, caught by {}", text, trial.size, name(trial.caught_by)));
    } else {
      ++row.unseen;
      row.hidden.push_back(fmt::format("{}: {:.3g} of its bound", text, trial.size));
    }
  }

  // The cheapest case of each kind of timed op, the cheapest kinds first.
  [[nodiscard]] std::vector<std::pair<std::string, PlannedCase>> cheapest_by_kind() const {
    std::map<std::string, const PlannedCase*> by_kind;
    for (const PlannedCase& planned : cases_) {
      const Program program = planned.workload->build(planned.c);
      for (const OpCall& call : program.ops()) {
        if (call.phase != Phase::timed ||
            std::ranges::none_of(call.outputs, [&](ValueId id) { return is_float(program.spec(id).dtype); }))
          continue;
        const PlannedCase*& cheapest = by_kind[std::string(call.kind.name)];
        if (cheapest == nullptr || planned.cost.flop + planned.cost.bytes < cheapest->cost.flop + cheapest->cost.bytes)
          cheapest = &planned;
      }
    }
    std::vector<std::pair<std::string, PlannedCase>> all;
    for (const auto& [kind, planned] : by_kind) all.emplace_back(kind, *planned);
    std::ranges::stable_sort(all, {}, [](const auto& one) { return one.second.cost.flop + one.second.cost.bytes; });
    if (all.size() > effort_.kinds_per_error)
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(effort_.kinds_per_error), all.end());
    return all;
  }

  void faulty_devices() {
    const auto kinds = cheapest_by_kind();
    for (const ErrorKind error : enum_values<ErrorKind>) {
      if (error == ErrorKind::rare) continue;  // for soaks: may not occur in few rounds
      FaultRow row{.name = std::string(describe(error)), .where = "device", .rule = "fail"};
      for (const auto& [kind, planned] : kinds) {
        if (stop_ != 0) return;
        progress_(fmt::format("a faulty device ({}): {}", name(error), planned.id()), result_);
        RunOptions faulty = options_;
        faulty.judged = nullptr;
        faulty.check_flop.reset();
        faulty.preset = Preset::minimal;
        faulty.rounds = 6;
        faulty.error = InjectedError{kind, error, std::make_shared<std::atomic<std::int64_t>>(0)};
        Records records;
        run_in_process(backend_, std::span(&planned, 1), faulty, records, stop_);
        if (stop_ != 0) return;  // the case has no verdict
        for (const CaseRecord& record : records.all) {
          if (record.verdict == Verdict::error) {
            result_.unmeasured.push_back(fmt::format("{} in {}: {}", kind, record.id, record.reason));
            continue;
          }
          if (*faulty.error->effects == 0) continue;  // the op was fused, or the fault changes nothing
          ++row.faults;
          if (is_rejected(record.verdict)) {
            ++row.caught;
          } else {
            row.escaped.push_back(fmt::format("{} in {}: {}", kind, record.id, name(record.verdict)));
          }
        }
      }
      result_.rows.push_back(std::move(row));
    }
  }

  Backend& backend_;
  std::span<const PlannedCase> cases_;
  RunOptions options_;
  std::uint64_t seed_ = options_.seed;
  const SelftestEffort& effort_;
  const SelftestProgress& progress_;
  const StopFlag& stop_;
  SelftestResult result_;
  std::set<std::string> seen_, kinds_;
  std::string current_;
  std::map<int, std::unique_ptr<Backend>> several_;
};

}  // namespace

bool SelftestResult::has_failed() const {
  return !alarms.empty() || std::ranges::any_of(rows, [](const FaultRow& row) { return !row.escaped.empty(); });
}

bool SelftestResult::passed() const {
  return !has_failed() && unmeasured.empty() && clean_launches > 0 && ops > 0 &&
         std::ranges::any_of(rows, [](const FaultRow& row) { return row.caught > 0; });
}

SelftestResult selftest(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                        const SelftestEffort& effort, const SelftestProgress& progress, const StopFlag& stop) {
  return Selftest(backend, cases, options, effort, progress, stop).run();
}

}  // namespace gpubench
