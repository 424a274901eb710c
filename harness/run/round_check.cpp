#include "harness/run/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/parity/compare_elements.h"
#include "harness/run/case_memory.h"
#include "harness/run/case_record.h"
#include "harness/run/recheck_plan.h"

namespace gpubench {
namespace {

// Limit of transfers over the bus after a round: about 20 ms.
constexpr std::int64_t max_bytes_of_round = std::int64_t{256} << 20U;
constexpr std::int64_t max_round_suspects = 1000;

HostBytes content_of(PreparedCase& prepared, int copy, StorageId id) { return prepared.memory(copy).block(id).copy(); }

}  // namespace

Fingerprints fingerprints_of(PreparedCase& prepared, int copy, const std::vector<StorageId>& storages) {
  Fingerprints prints;
  for (const StorageId id : storages) prints[id.index] = prepared.memory(copy).block(id).fingerprint();
  return prints;
}

RoundCheck::RoundCheck(PreparedCase& prepared, const OpJudge& judge, CaseRecord& record)
    : prepared_(prepared), judge_(judge), record_(record), watched_(prepared.produced()) {
  watched_.insert(watched_.end(), prepared.state().begin(), prepared.state().end());
}

void RoundCheck::begin(int copies, bool whole) {
  const std::size_t pairs = watched_.size() * static_cast<std::size_t>(copies);
  const bool seen = prepared_.backend().examines_memory();
  std::int64_t bytes = 0;
  std::int64_t all = 0;
  for (const StorageId id : watched_) all += copies * prepared_.program().storage(id).bytes;
  chosen_.clear();
  if (next_ >= pairs) next_ = 0;
  while (chosen_.size() < pairs) {
    const StorageId id = watched_[next_ % watched_.size()];
    bytes += prepared_.program().storage(id).bytes;
    if (!seen && !whole && bytes > max_bytes_of_round && !chosen_.empty()) break;
    chosen_.emplace(static_cast<int>(next_ / watched_.size()), id.index);
    next_ = (next_ + 1) % pairs;
  }
  partial_ = chosen_.size() < pairs;
  counts_ = rounds_ != record_.rounds.size();
  if (!counts_) return;
  rounds_ = record_.rounds.size();
  event_ = fmt::format("round {}", rounds_);
  left_bytes_ += all;
}

std::vector<StorageId> RoundCheck::differing(int copy) {
  std::vector<StorageId> looked_at;
  for (const StorageId id : watched_) {
    if (chosen_.contains({copy, id.index})) looked_at.push_back(id);
  }
  const std::int64_t runs = runs_ = record_.rounds.back().times.runs;
  const bool has_state = !prepared_.state().empty();
  const bool repeats = has_state || prepared_.memory_plan().reuses();
  std::vector<StorageId> differ;
  if ((repeats && varies_) || (has_state && runs == 0)) return differ;  // no expected value
  found_ = fingerprints_of(prepared_, copy, looked_at);
  for (const auto& [storage, print] : found_) {
    const std::int64_t bytes = prepared_.program().storage({storage}).bytes;
    if (!has_state) {
      compared_bytes_ += counts_ ? bytes : 0;
      if (judged_.at(storage) != print) differ.push_back({storage});
      continue;
    }
    const auto [at, fresh] = states_.try_emplace({copy, runs, storage}, print);
    if (!fresh && counts_) compared_bytes_ += bytes;
    if (at->second != print) differ.push_back({storage});
  }
  return differ;
}

std::vector<StorageId> RoundCheck::recheck(int copy, int number) {
  const bool has_state = !prepared_.state().empty();
  rechecks_ = number;
  event_ = fmt::format("recheck {}", number);
  prepared_.reset(copy);
  runs_ = prepared_.time_once(copy).runs;
  std::vector<StorageId> differ;
  if (varies_ && (has_state || prepared_.memory_plan().reuses())) return differ;  // no expected value
  found_ = fingerprints_of(prepared_, copy, watched_);
  for (const auto& [storage, print] : found_) {
    const std::uint64_t expected =
        has_state ? rechecked_.try_emplace(storage, print).first->second : judged_.at(storage);
    if (expected != print) differ.push_back({storage});
  }
  return differ;
}

bool RoundCheck::settle(int copy, const std::vector<StorageId>& differing, const std::function<std::int64_t()>& again) {
  // In reused memory most inputs have been overwritten.
  if (!prepared_.state().empty() || prepared_.memory_plan().reuses()) return repeat(copy, differing, again);
  // After differences within the bound, one copy per round is judged, in turn: each costs a run and a comparison.
  if (varies_ && rechecks_ == 0 && static_cast<int>(rounds_) % prepared_.copies() != copy) return false;
  return judge_remaining(copy, differing);
}

struct RoundCheck::Left {
  StorageContents content;
  std::map<int, StorageContents> read_before;  ///< by op: of inputs that are overwritten before the launch ends
  StorageReader now;

  [[nodiscard]] const std::byte* operator()(StorageId id) {
    const auto found = content.find(id.index);
    return found == content.end() ? now[id] : found->second.bytes.data();  // no op writes other storages
  }
};

bool RoundCheck::judge_remaining(int copy, const std::vector<StorageId>& differing) {
  const Program& program = prepared_.program();
  const RecheckPlan plan = plan_recheck(program, prepared_.memory_plan());
  Left left{{}, {}, StorageReader(prepared_, copy)};
  for (const StorageId id : prepared_.produced()) left.content[id.index] = content_of(prepared_, copy, id);

  prepared_.reset(copy);
  for (const int op : prepared_.ops(Phase::timed)) {
    const OpLocations& where = plan.ops[static_cast<std::size_t>(op)];
    for (std::size_t i = 0; i < where.inputs.size(); ++i) {
      if (where.inputs[i].at_end() || !where.outputs_at_end()) continue;
      const StorageId id = program.value(program.op(op).inputs[i]).storage;
      left.read_before[op][id.index] = content_of(prepared_, copy, id);
    }
    prepared_.backend().run(prepared_.launch(copy, op));
  }
  if (fingerprints_of(prepared_, copy, prepared_.produced()) != judged_) varies_ = true;

  bool fault = false;
  StorageReader& again = left.now;
  for (const int op : prepared_.ops(Phase::timed)) {
    const OpCall& call = program.op(op);
    const OpLocations& where = plan.ops[static_cast<std::size_t>(op)];
    if (!where.outputs_at_end()) continue;  // the op that overwrote them is judged
    std::vector<StorageBytes> outputs;
    std::vector<StorageBytes> expected;
    for (const ValueId id : call.outputs) {
      outputs.emplace_back(left(program.value(id).storage));
      expected.emplace_back(again[program.value(id).storage]);
    }
    const std::vector<TensorView> got = views_of(program, call.outputs, outputs);
    const std::vector<TensorView> wanted = views_of(program, call.outputs, expected);
    std::vector<std::vector<std::int64_t>> suspects(call.outputs.size());
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::ranges::count(differing, program.value(call.outputs[i]).storage) == 0) continue;
      ElementDifferences apart = difference(got[i], wanted[i], max_round_suspects);
      elements += apart.elements;
      suspects[i] = std::move(apart.largest);
    }
    if (elements == 0) continue;
    std::vector<StorageBytes> inputs;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const StorageId id = program.value(call.inputs[i]).storage;
      inputs.emplace_back(where.inputs[i].at_end() ? left(id) : left.read_before[op][id.index].bytes.data());
    }
    OpParity parity = judge_.judge(op, inputs, outputs, "timed", suspects);
    if (parity.verdict == Verdict::pass) {
      varies_ = true;
      within_bound_ += elements;
      if (passed_.insert(op).second) add_op(record_, std::move(parity));
      continue;
    }
    parity.reason = fmt::format("{} left {} element{} in copy {} that differ{} from the checked results; {}", event_,
                                elements, elements == 1 ? "" : "s", copy, elements == 1 ? "s" : "", parity.reason);
    fault = true;
    if (where.all_at_end()) {
      add_op(record_, std::move(parity));
    } else {
      parity.reason += "; or an earlier op is wrong, whose result was overwritten in the same run";
      deferred_.push_back(std::move(parity));  // the replay names the op if it finds the same fault
    }
  }
  return fault;
}

// Two equal repetitions prove the round wrong; different repetitions prove nothing.
bool RoundCheck::repeat(int copy, const std::vector<StorageId>& differing, const std::function<std::int64_t()>& again) {
  std::vector<Fingerprints> repeated;
  for (int i = 0; i < 2; ++i) {
    if (again() != runs_ && !prepared_.state().empty()) return false;  // not comparable
    repeated.push_back(fingerprints_of(prepared_, copy, differing));
  }
  if (repeated[0] != repeated[1]) {
    varies_ = true;
    return false;
  }
  const auto& [storage, print] = *repeated[0].begin();
  const bool this_one = print != found_.at(storage);
  const std::string_view name = prepared_.program().storage({storage}).name;
  if (!this_one && prepared_.state().empty()) {
    deferred_reason_ = fmt::format(
        "op {} failed in timed: every round leaves other bits of '{}' in copy {} than the ops "
        "run one by one",
        writer_of(storage), name, copy);
    return true;
  }
  const std::string reason = fmt::format(
      "op {} failed in timed: {} left other bits of '{}' in copy {} than two repetitions of the same {} from the "
      "same state, which agree",
      writer_of(storage),
      this_one        ? event_
      : rechecks_ > 0 ? "an earlier recheck"
                      : "an earlier round",
      name, copy, runs_ == 1 ? "run" : fmt::format("{} runs", runs_));
  blame(record_, Verdict::fail, reason);
  return true;
}

std::string RoundCheck::writer_of(int storage) const {
  const Program& program = prepared_.program();
  std::string label;
  for (const int op : prepared_.ops(Phase::timed)) {
    for (const ValueId id : program.op(op).outputs) {
      if (program.value(id).storage.index == storage)
        label = fmt::format("'{}' ({})", program.op(op).label, program.op(op).kind.name);
    }
  }
  return label;
}

void RoundCheck::report_deferred() {
  for (OpParity& parity : deferred_) add_op(record_, std::move(parity));
  deferred_.clear();
  if (!deferred_reason_.empty()) blame(record_, Verdict::fail, std::exchange(deferred_reason_, {}));
}

double detection_probability(int rechecks, int launches) { return 1.0 - std::pow(1.0 - 1.0 / launches, rechecks); }

std::string recheck_text(int rechecks) {
  int launches = 10;  // power of ten near `rechecks`
  while (launches <= rechecks / 10) launches *= 10;
  const std::string rate =
      launches >= 1000 ? fmt::format("{},{:03}", launches / 1000, launches % 1000) : std::to_string(launches);
  return fmt::format("{} recheck{}: a fault in 1 of {} launches is seen with {:.2g}%", rechecks,
                     rechecks == 1 ? "" : "s", rate, std::min(99.9, 100.0 * detection_probability(rechecks, launches)));
}

std::string RoundCheck::rechecks_coverage() const {
  if (varies_ && (!prepared_.state().empty() || prepared_.memory_plan().reuses()))
    return fmt::format("{} recheck{} not compared, since bits vary", rechecks_, rechecks_ == 1 ? "" : "s");
  return recheck_text(rechecks_) + (varies_ ? ", if it is outside its bounds, since bits vary" : "");
}

std::string RoundCheck::coverage() const {
  if (rounds_ == 0) return {};
  return rechecks_ == 0 ? rounds_coverage() : fmt::format("{}; {}", rounds_coverage(), rechecks_coverage());
}

std::string RoundCheck::rounds_coverage() const {
  const std::string rounds = fmt::format("{} round{}", rounds_, rounds_ == 1 ? "" : "s");
  if (varies_ && prepared_.state().empty() && prepared_.memory_plan().reuses())
    return fmt::format("the bits of its results vary from run to run: {} not compared", rounds);
  if (varies_ && !prepared_.state().empty())
    return fmt::format("the bits of its state vary from run to run: {} not compared", rounds);
  if (varies_) {
    return fmt::format("{}: bits vary from run to run, {} elements that differed within their bound", rounds,
                       within_bound_);
  }
  if (compared_bytes_ == 0) return fmt::format("{}: not compared, since no two have the same number of runs", rounds);
  const double share = 100.0 * static_cast<double>(compared_bytes_) / static_cast<double>(left_bytes_);
  return fmt::format("{}: {} of their results compared, bit for bit", rounds,
                     compared_bytes_ >= left_bytes_ ? "all" : fmt::format("{:.2g}%", share));
}

}  // namespace gpubench
