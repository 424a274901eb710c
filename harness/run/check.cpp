#include "harness/run/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/parity/end_to_end.h"
#include "harness/parity/exact_data.h"
#include "harness/parity/sample.h"
#include "harness/run/timing.h"

namespace gpubench {
namespace {

/// Inputs up to this size are fingerprinted around every op, larger ones once around all ops.
constexpr std::int64_t cheap_to_watch_bytes = std::int64_t{32} << 20U;

/// fp64 operations up to which the textbook runs a whole program, four times: about 10 s on two cores.
constexpr double max_end_to_end_flop = 2e9;

bool any_overlap(const Program& program, std::span<const ValueId> values, ValueId value) {
  return std::any_of(values.begin(), values.end(), [&](ValueId other) { return program.overlaps(other, value); });
}

bool overlap_each_other(const Program& program, std::span<const ValueId> values) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (any_overlap(program, values.first(i), values[i])) return true;
  }
  return false;
}

bool is_affordable(const CallSpecs& op, double flop_budget) {
  for (int output = 0; output < static_cast<int>(op.outputs.size()); ++output) {
    if (min_work(definition(op.call.kind).units(op, output)) <= flop_budget) return true;
  }
  return false;
}

std::vector<StorageId> only_read(const Program& program, const OpCall& call) {
  std::vector<StorageId> found;
  for (const ValueId input : call.inputs) {
    const StorageId storage = program.value(input).storage;
    const bool written = std::any_of(call.outputs.begin(), call.outputs.end(),
                                     [&](ValueId output) { return program.value(output).storage == storage; });
    if (!written && std::find(found.begin(), found.end(), storage) == found.end()) found.push_back(storage);
  }
  return found;
}

std::vector<StorageId> touched_by(const Program& program, const OpCall& call) {
  std::vector<StorageId> found;
  for (const std::vector<ValueId>* list : {&call.inputs, &call.outputs}) {
    for (const ValueId id : *list) found.push_back(program.value(id).storage);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

CaseCheck::CaseCheck(PreparedCase& prepared, const RunOptions& options, CaseRecord& record)
    : prepared_(prepared),
      options_(options),
      record_(record),
      judge_(prepared, options),
      rounds_(prepared, judge_, record) {}

void CaseCheck::judge_op(int op, std::span<const StorageBytes> inputs, std::span<const StorageBytes> outputs,
                         const LaunchKind& kind, const std::string& fault) {
  OpParity parity = with_fault(judge_.judge(op, inputs, outputs, kind.phase, {}, kind.sums), fault);
  if (parity.verdict != Verdict::pass && !kind.data.empty())
    parity.reason = fmt::format("on {}: {}", kind.data, parity.reason);
  add_op(record_, std::move(parity));
}

void CaseCheck::alone() {
  if (options_.check == CheckMode::off) return prepared_.set_up_to_record();
  for (const int op : prepared_.ops(Phase::setup)) alone(op);
  prepared_.keep_state();
  constants_ = fingerprints_of(prepared_, 0, prepared_.constants());
  for (const int op : prepared_.ops(Phase::timed)) alone(op);
  look_at_guards(0, "an op in check");
  look_at_constants(0, constants_, "an op in check");
  rounds_.expect(fingerprints_of(prepared_, 0, prepared_.produced()));
  end_to_end();
}

// Finds programs of correct ops in which an op is missing or reads the wrong tensor.
void CaseCheck::end_to_end() {
  const Program& program = prepared_.program();
  if (options_.check != CheckMode::full || program.ops().size() < 2 || record_.verdict != Verdict::pass ||
      !(textbook_flop(program) <= max_end_to_end_flop)) {
    return;
  }
  if (options_.alive) options_.alive();
  StorageReader reader(prepared_);
  const auto results = gpubench::end_to_end(prepared_.judged_program(), prepared_.planned().c.id_without_ranks(),
                                            options_.seed, [&](ValueId id) -> std::optional<TensorView> {
                                              const Value& value = program.value(id);
                                              if (!prepared_.memory_plan().keeps_memory(value.storage))
                                                return std::nullopt;
                                              return TensorView(value.spec, reader[value.storage] + value.offset_bytes);
                                            });
  add_end_to_end(record_, results);
}

void CaseCheck::alone(int op, const LaunchKind& kind) {
  if (options_.alive) options_.alive();
  const Program& program = prepared_.program();
  const OpCall& call = program.op(op);
  CaseMemory& memory = prepared_.memory(0);

  StorageContents read_before;  // inputs that the op updates
  for (const ValueId input : call.inputs) {
    const StorageId id = program.value(input).storage;
    if (!any_overlap(program, call.outputs, input) || read_before.contains(id.index)) continue;
    read_before[id.index] = memory.block(id).copy();
  }
  std::vector<StorageId> watched = only_read(program, call);
  std::int64_t watched_bytes = 0;
  for (const StorageId id : watched) watched_bytes += program.storage(id).bytes;
  if (watched_bytes > cheap_to_watch_bytes) watched.clear();
  const Fingerprints before = fingerprints_of(prepared_, 0, watched);

  prepared_.begin_storages(0, op, op + 1);
  prepared_.backend().run(prepared_.launch(0, op));

  std::string fault;
  for (const StorageId id : touched_by(program, call)) {
    const std::string damage = memory.check_guards(id);
    if (fault.empty()) fault = damage;
  }
  if (fault.empty()) fault = prepared_.check_workspace_guards();
  for (const auto& [storage, print] : fingerprints_of(prepared_, 0, watched)) {
    if (fault.empty() && before.at(storage) != print)
      fault = fmt::format("changed its input '{}'", program.storage({storage}).name);
  }

  StorageReader reader(prepared_);
  std::vector<StorageBytes> inputs;
  for (const ValueId id : call.inputs) {
    const StorageId storage = program.value(id).storage;
    inputs.push_back(any_overlap(program, call.outputs, id) ? read_before.at(storage.index).bytes.data()
                                                            : reader[storage]);
  }
  std::vector<StorageBytes> outputs;
  for (const ValueId id : call.outputs) outputs.push_back(reader.output(call, id));
  judge_op(op, inputs, outputs, kind, fault);
}

// The last timed op of each plan, in reverse order, so that no launch reads results of special data.
void CaseCheck::for_each_plan(const std::function<void(int op)>& launch) {
  std::set<std::string> plans;
  const std::vector<int>& ops = prepared_.ops(Phase::timed);
  for (auto op = ops.rbegin(); op != ops.rend() && record_.verdict == Verdict::pass; ++op) {
    const bool is_first = plans.insert(prepared_.plan_key(*op)).second;
    if (!is_first || !judge_.has_further_launches(*op)) continue;
    if (!overlap_each_other(prepared_.program(), prepared_.program().op(*op).inputs)) launch(*op);
  }
}

void CaseCheck::further_launches() {
  if (options_.check == CheckMode::off) return;
  for_each_plan([this](int op) { on_revealing_data(op); });
  probe_plans(prepared_, options_, judge_, record_);
  for_each_plan([this](int op) { on_exact_data(op); });
}

void CaseCheck::on_exact_data(int op) {
  const Program& program = prepared_.judged_program();
  const OpCall& call = program.op(op);
  const std::vector<TensorSpec> inputs = specs_of(program, call.inputs), outputs = specs_of(program, call.outputs);
  const std::optional<ExactData> data = exact_data({call, inputs, outputs}, options_.seed);
  if (!data) return;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) prepared_.give(call.inputs[i], data->inputs[i]);
  prepared_.begin_outputs(op);
  alone(op, {"exact", "", {true, data->multiple_of}});
}

void CaseCheck::on_revealing_data(int op) {
  const Program& program = prepared_.program();
  const OpCall& call = program.op(op);
  const std::vector<TensorSpec> inputs = specs_of(program, call.inputs), outputs = specs_of(program, call.outputs);
  const CallSpecs specs{call, inputs, outputs};
  const OpDefinition& meaning = definition(call.kind);
  for (const RevealingData& data : meaning.revealing_data(specs)) {
    if (judge_.mode_of(op) == CheckMode::sample && !data.sparse && !is_affordable(specs, judge_.budget(op))) continue;
    // Another storage may have overwritten inputs in shared memory.
    const bool is_there = std::ranges::all_of(
        call.inputs, [&](ValueId id) { return !prepared_.memory_plan().is_shared(program.value(id).storage); });
    if (!is_there && data.inputs.size() < inputs.size()) continue;
    for (const RevealingData::Input& input : data.inputs) {
      HostTensor tensor(inputs[input.index]);
      fill(tensor, input);
      prepared_.give(call.inputs[input.index], tensor);
    }
    prepared_.begin_outputs(op);
    alone(op, {"special", data.name, sums_of(data)});
  }
}

void CaseCheck::look_at_guards(int copy, const std::string& where) {
  std::string damage = prepared_.memory(copy).check_guards();
  if (damage.empty()) damage = prepared_.check_workspace_guards();
  if (!damage.empty()) blame(record_, Verdict::fail, where + " " + damage);
}

void CaseCheck::look_at_constants(int copy, const Fingerprints& before, const std::string& where) {
  const Program& program = prepared_.program();
  for (const auto& [storage, print] : fingerprints_of(prepared_, copy, prepared_.constants())) {
    if (before.at(storage) == print) continue;
    std::string readers;
    for (const OpCall& call : program.ops()) {
      const bool reads = std::any_of(call.inputs.begin(), call.inputs.end(), [&, id = storage](ValueId input) {
        return program.value(input).storage.index == id;
      });
      if (reads) readers += fmt::format("{}'{}' ({})", readers.empty() ? "" : ", ", call.label, call.kind.name);
    }
    blame(record_, Verdict::fail,
          fmt::format("{} changed constant '{}', read by {}", where, program.storage({storage}).name,
                      readers.empty() ? "no op" : readers));
  }
}

int CaseCheck::touched() const {
  const std::int64_t runs = record_.batch * static_cast<std::int64_t>(record_.rounds.back().times.device_ns.size());
  return static_cast<int>(std::min<std::int64_t>(prepared_.copies(), runs));
}

bool CaseCheck::after_round(bool whole) {
  if (options_.check == CheckMode::off || record_.rounds.empty()) return true;
  // In the order of the rotation, to leave the same content in the cache.
  rounds_.begin(touched(), whole);
  for (int copy = 0; copy < touched(); ++copy) {
    if (options_.alive) options_.alive();
    const auto again = [&] {
      for (int each = 0; each < prepared_.copies(); ++each) prepared_.restore(each);
      const RoundPlan plan = plan_of_round(prepared_, options_.protocol(), record_);
      return prepared_.backend().time(prepared_.timed_launches(), plan).runs;
    };
    if (faulty(copy, rounds_.differing(copy), again)) return false;
  }
  return true;
}

bool CaseCheck::faulty(int copy, const std::vector<StorageId>& differing, const std::function<std::int64_t()>& again) {
  if (differing.empty()) return false;
  look_at_guards(copy, "the timed launch");
  look_at_constants(copy, constants_, "the timed launch");
  return record_.verdict != Verdict::pass  // a damaged guard or constant explains the difference
         || rounds_.settle(copy, differing, again);
}

void CaseCheck::rechecks() {
  if (options_.check == CheckMode::off || record_.rounds.empty()) return;
  for (int number = 1; number <= options_.rechecks && record_.verdict == Verdict::pass; ++number) {
    if (options_.alive) options_.alive();
    const int copy = (number - 1) % prepared_.copies();
    const auto again = [&] {
      prepared_.reset(copy);
      return prepared_.time_once(copy).runs;
    };
    if (faulty(copy, rounds_.recheck(copy, number), again)) return;
  }
  for (int copy = 0; copy < std::min(prepared_.copies(), options_.rechecks); ++copy)
    look_at_guards(copy, "the timed launch");
}

void CaseCheck::timed_buffers() {
  if (options_.check == CheckMode::off || record_.rounds.empty()) return;
  for (int copy = 0; copy < touched(); ++copy) {
    if (options_.alive) options_.alive();
    look_at_guards(copy, "the timed launch");
    look_at_constants(copy, constants_, "the timed launch");
  }
  if (record_.verdict == Verdict::pass && rounds_.partial()) (void)after_round(true);
}

void CaseCheck::replay() {
  if (options_.check == CheckMode::off) return;
  const RecheckPlan plan = plan_recheck(prepared_.program(), prepared_.memory_plan());
  pauses_ = static_cast<int>(plan.pauses.size());
  prepared_.reverse_inputs();
  const Fingerprints turned = fingerprints_of(prepared_, 0, prepared_.constants());

  KeptContents kept;
  replay_in_segments(plan, kept);
  const std::optional<Fingerprints> in_segments =
      prepared_.memory_plan().reuses() ? std::optional(final_fingerprints()) : std::nullopt;
  if (!plan.pauses.empty()) prepared_.reset(0);
  prepared_.backend().run(prepared_.timed(0));

  look_at_guards(0, "the timed launch");
  look_at_constants(0, turned, "the timed launch");
  judge_ops(plan, std::nullopt, kept);
  if (in_segments) compare_with_segments(*in_segments);
  rounds_.report_deferred();
}

// At each pause, judges the ops that are due and keeps other values that will be overwritten.
void CaseCheck::replay_in_segments(const RecheckPlan& plan, KeptContents& kept) {
  const int ops = static_cast<int>(prepared_.program().ops().size());
  const bool reuses = prepared_.memory_plan().reuses();
  int done = 0;
  for (std::size_t i = 0; i < plan.pauses.size(); ++i) {
    const Checkpoint& pause = plan.pauses[i];
    if (options_.alive) options_.alive();
    prepared_.backend().run(prepared_.segment(done, pause.before_op));
    if (reuses) look_at_outputs(done, pause.before_op);
    done = pause.before_op;
    judge_ops(plan, done, kept);
    for (const int storage : pause.storages) kept[done][storage] = prepared_.memory(0).block({storage}).copy();
    for (const Checkpoint& earlier : std::span(plan.pauses).first(i)) {
      if (earlier.needed_until && *earlier.needed_until <= done) kept.erase(earlier.before_op);
    }
    prepared_.begin_storages(0, done, i + 1 < plan.pauses.size() ? plan.pauses[i + 1].before_op : ops);
  }
  if (reuses) prepared_.backend().run(prepared_.segment(done, ops));
}

// Checks the guards of the outputs of ops [first, last). Call before other storages take over their memory.
void CaseCheck::look_at_outputs(int first, int last) {
  for (const int op : prepared_.ops(Phase::timed)) {
    if (op < first || op >= last) continue;
    for (const ValueId output : prepared_.program().op(op).outputs) {
      const std::string damage = prepared_.memory(0).check_guards(prepared_.program().value(output).storage);
      if (!damage.empty()) blame(record_, Verdict::fail, "the timed launch " + damage);
    }
  }
}

void CaseCheck::judge_ops(const RecheckPlan& plan, std::optional<int> pause, const KeptContents& kept) {
  const Program& program = prepared_.program();
  StorageReader reader(prepared_);
  StorageContents restored;
  const auto is_in_memory = [&](const ValueLocation& where) {
    return where.at_end() || (pause && where.pause == *pause);
  };
  const auto find = [&](ValueId id, const ValueLocation& where) -> const std::byte* {
    const StorageId storage = program.value(id).storage;
    if (is_in_memory(where)) return reader[storage];
    if (where.kind == ValueLocation::Kind::pause) return kept.at(where.pause).at(storage.index).bytes.data();
    const auto [at, fresh] = restored.try_emplace(storage.index);
    if (fresh) at->second = prepared_.kept_state(storage).read();
    return at->second.bytes.data();
  };
  for (const int op : prepared_.ops(Phase::timed)) {
    const OpCall& call = program.op(op);
    const OpLocations& where = plan.ops[static_cast<std::size_t>(op)];
    if (where.judged_before != pause) continue;
    std::vector<StorageBytes> inputs;
    std::vector<StorageBytes> outputs;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) inputs.emplace_back(find(call.inputs[i], where.inputs[i]));
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      outputs.push_back(is_in_memory(where.outputs[i]) ? reader.output(call, call.outputs[i])
                                                       : find(call.outputs[i], where.outputs[i]));
    }
    judge_op(op, inputs, outputs, {"recheck"}, "");
  }
}

Fingerprints CaseCheck::final_fingerprints() {
  std::vector<StorageId> storages = prepared_.produced();
  storages.insert(storages.end(), prepared_.state().begin(), prepared_.state().end());
  return fingerprints_of(prepared_, 0, storages);
}

// The whole timed launch must give the same bits as its judged segments.
void CaseCheck::compare_with_segments(const Fingerprints& in_segments) {
  const Fingerprints whole = final_fingerprints();
  if (whole == in_segments) return;
  prepared_.reset(0);
  prepared_.backend().run(prepared_.timed(0));
  if (final_fingerprints() != whole) {
    segments_vary_ = true;
    return;
  }
  const auto differing =
      std::ranges::find_if(whole, [&](const auto& one) { return in_segments.at(one.first) != one.second; });
  blame(record_, Verdict::fail,
        fmt::format("the timed launch gave other bits of '{}' than the same ops in segments, equal in two launches",
                    prepared_.program().storage({differing->first}).name));
}

std::string CaseCheck::rounds_coverage() const {
  std::string text = rounds_.coverage();
  const MemoryPlan& plan = prepared_.memory_plan();
  if (!plan.reuses()) return text;
  if (!text.empty()) text += "; ";
  text += fmt::format("memory reused, {} instead of {}", readable_bytes(plan.bytes()),
                      readable_bytes(prepared_.program().bytes()));
  if (segments_vary_) text += "; bits vary from run to run: the whole launch was not compared with its segments";
  return text;
}

}  // namespace gpubench
