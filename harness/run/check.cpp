#include "harness/run/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "harness/core/hash.h"
#include "harness/run/content.h"
#include "harness/run/recheck_plan.h"

namespace gpubench {
namespace {

/// Inputs up to this size are fingerprinted around every single op; larger ones once around all of them.
constexpr std::int64_t cheap_to_watch_bytes = std::int64_t{32} << 20U;
/// No op is left with less than this of the case's budget.
constexpr double smallest_budget_flop = 2.5e5;

double work_of(const Program& program, int op) {
  const OpCall& call = program.op(op);
  double elements = 0.0;
  for (const ValueId output : call.outputs) elements += static_cast<double>(program.spec(output).shape.elements());
  return std::max(cost_of(program, call).flop, elements);
}

bool any_overlap(const Program& program, std::span<const ValueId> values, ValueId value) {
  return std::any_of(values.begin(), values.end(), [&](ValueId other) { return program.overlaps(other, value); });
}

std::vector<TensorView> views_of(const Program& program, std::span<const ValueId> ids,
                                 std::span<const std::byte* const> storages) {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Value& value = program.value(ids[i]);
    views.emplace_back(value.spec, storages[i] + value.offset_bytes);
  }
  return views;
}

/// Host access to the storages of one copy, each read at most once.
class StorageReader {
 public:
  explicit StorageReader(CaseMemory& memory) : memory_(memory) {}
  const std::byte* operator[](StorageId id) {
    auto [at, fresh] = read_.try_emplace(id.index);
    if (fresh) at->second = memory_.block(id).read();
    return at->second.bytes.data();
  }

 private:
  CaseMemory& memory_;
  std::map<int, HostBytes> read_;
};

/// Storages that the op reads and does not write.
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

double budget_flop(Tier tier) {
  switch (tier) {
    case Tier::smoke: return 20e6;
    case Tier::quick: return 120e6;
    case Tier::standard:
    case Tier::large: return 500e6;
  }
  return 20e6;
}

Fingerprints fingerprints_of(PreparedCase& prepared, int copy, const std::vector<StorageId>& storages) {
  Fingerprints prints;
  for (const StorageId id : storages) prints[id.index] = fingerprint(prepared.memory(copy).block(id).read().bytes);
  return prints;
}

CaseCheck::CaseCheck(PreparedCase& prepared, const RunOptions& options, CaseRecord& record)
    : prepared_(prepared), options_(options), record_(record) {
  for (int op = 0; op < static_cast<int>(prepared.program().ops().size()); ++op)
    total_work_ += work_of(prepared.program(), op);
}

JudgePolicy CaseCheck::policy_for(int op, std::string_view phase) const {
  const double budget = budget_flop(options_.tier);
  const double share = total_work_ > 0.0 ? work_of(prepared_.program(), op) / total_work_ : 1.0;
  JudgePolicy policy;
  policy.mode = options_.check;
  policy.flop_budget = std::max(budget * share, smallest_budget_flop);
  policy.seed = hash(phase, hash(prepared_.program().op(op).label, mix(options_.seed)));
  policy.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return policy;
}

void CaseCheck::judge_op(int op, std::span<const std::byte* const> inputs, std::span<const std::byte* const> outputs,
                         const std::string& phase, const std::string& fault) {
  const Program& program = prepared_.program();
  const std::vector<TensorView> input_views = views_of(program, program.op(op).inputs, inputs);
  const std::vector<TensorView> output_views = views_of(program, program.op(op).outputs, outputs);
  if (options_.alive) options_.alive();
  OpParity parity = judge(program, op, {input_views, output_views}, policy_for(op, phase), phase);
  parity.implementation = prepared_.implementation(op);
  parity.choice = prepared_.choice(op);
  if (!fault.empty()) {
    parity.reason = parity.verdict == Verdict::fail ? fault + "; " + parity.reason : fault;
    parity.verdict = worse(parity.verdict, Verdict::fail);
  }
  add_op(record_, std::move(parity));
}

void CaseCheck::alone() {
  if (options_.check == CheckMode::off) {
    prepared_.set_up();
    return;
  }
  for (const int op : prepared_.ops(Phase::setup)) alone(op);
  prepared_.keep_state();
  constants_ = fingerprints_of(prepared_, 0, prepared_.constants());
  for (const int op : prepared_.ops(Phase::timed)) alone(op);
  look_at_guards(0, "an op in check");
  look_at_constants(0, constants_, "an op in check");
  judged_content_ = fingerprints_of(prepared_, 0, prepared_.produced());
}

void CaseCheck::alone(int op) {
  if (options_.alive) options_.alive();
  const Program& program = prepared_.program();
  const OpCall& call = program.op(op);
  CaseMemory& memory = prepared_.memory(0);

  StorageContents read_before;  // of storages that the op updates: what the textbook has to see
  for (const ValueId input : call.inputs) {
    const StorageId id = program.value(input).storage;
    if (!any_overlap(program, call.outputs, input) || read_before.contains(id.index)) continue;
    const HostBytes content = memory.block(id).read();
    read_before[id.index].assign(content.bytes.begin(), content.bytes.end());
  }
  std::vector<StorageId> watched = only_read(program, call);
  std::int64_t watched_bytes = 0;
  for (const StorageId id : watched) watched_bytes += program.storage(id).bytes;
  if (watched_bytes > cheap_to_watch_bytes) watched.clear();
  const Fingerprints before = fingerprints_of(prepared_, 0, watched);

  prepared_.backend().run(prepared_.launch(0, op));

  std::string fault;
  for (const StorageId id : touched_by(program, call)) {
    const std::string damage = memory.block(id).take_damage();
    if (fault.empty()) fault = damage;
  }
  if (fault.empty()) fault = prepared_.take_workspace_damage();
  for (const auto& [storage, print] : fingerprints_of(prepared_, 0, watched)) {
    if (fault.empty() && before.at(storage) != print)
      fault = fmt::format("changed its input '{}'", program.storage({storage}).name);
  }

  StorageReader reader(memory);
  std::vector<const std::byte*> inputs;
  for (const ValueId id : call.inputs) {
    const StorageId storage = program.value(id).storage;
    inputs.push_back(any_overlap(program, call.outputs, id) ? read_before.at(storage.index).data() : reader[storage]);
  }
  std::vector<const std::byte*> outputs;
  for (const ValueId id : call.outputs) outputs.push_back(reader[program.value(id).storage]);
  judge_op(op, inputs, outputs, "check", fault);
}

void CaseCheck::look_at_guards(int copy, const std::string& where) {
  std::string damage = prepared_.memory(copy).take_damage();
  if (damage.empty()) damage = prepared_.take_workspace_damage();
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
          fmt::format("{} changed '{}', which is only read, by {}", where, program.storage({storage}).name,
                      readers.empty() ? "no op" : readers));
  }
}

void CaseCheck::timed_buffers() {
  if (options_.check == CheckMode::off || record_.rounds.empty()) return;
  const std::int64_t runs = record_.batch * static_cast<std::int64_t>(record_.rounds.back().times.device_ns.size());
  const int touched = static_cast<int>(std::min<std::int64_t>(prepared_.copies(), runs));  // later copies had no turn
  for (int copy = 0; copy < touched; ++copy) {
    if (options_.alive) options_.alive();
    look_at_guards(copy, "the timed launch");
    look_at_constants(copy, constants_, "the timed launch");
    if (!prepared_.state().empty()) continue;
    if (fingerprints_of(prepared_, copy, prepared_.produced()) != judged_content_) judge_left(copy, "timed");
  }
}

void CaseCheck::judge_left(int copy, const std::string& phase) {
  const Program& program = prepared_.program();
  const RecheckPlan plan = plan_recheck(program);
  StorageReader reader(prepared_.memory(copy));
  for (const int op : prepared_.ops(Phase::timed)) {
    if (!plan.ops[static_cast<std::size_t>(op)].all_at_end()) continue;  // the replay judges it
    std::vector<const std::byte*> inputs;
    std::vector<const std::byte*> outputs;
    for (const ValueId id : program.op(op).inputs) inputs.push_back(reader[program.value(id).storage]);
    for (const ValueId id : program.op(op).outputs) outputs.push_back(reader[program.value(id).storage]);
    judge_op(op, inputs, outputs, phase, "");
  }
}

void CaseCheck::replay() {
  if (options_.check == CheckMode::off) return;
  const Program& program = prepared_.program();
  const RecheckPlan plan = plan_recheck(program);
  pauses_ = static_cast<int>(plan.pauses.size());
  prepared_.turn_data();
  const Fingerprints turned = fingerprints_of(prepared_, 0, prepared_.constants());

  std::map<int, StorageContents> kept;  // by the op before which the run paused
  int done = 0;
  for (const Pause& pause : plan.pauses) {
    prepared_.backend().run(prepared_.segment(done, pause.before_op));
    done = pause.before_op;
    for (const int storage : pause.storages) {
      const HostBytes content = prepared_.memory(0).block({storage}).read();
      kept[done][storage].assign(content.bytes.begin(), content.bytes.end());
    }
  }
  if (done > 0) prepared_.reset(0);
  prepared_.backend().run(prepared_.timed(0));

  look_at_guards(0, "the timed launch");
  look_at_constants(0, turned, "the timed launch");
  StorageReader reader(prepared_.memory(0));
  const auto find = [&](ValueId id, const Whereabouts& where) -> const std::byte* {
    const StorageId storage = program.value(id).storage;
    switch (where.kind) {
      case Whereabouts::Kind::end: return reader[storage];
      case Whereabouts::Kind::restored: return prepared_.state_content().at(storage.index).data();
      case Whereabouts::Kind::pause: return kept.at(where.pause).at(storage.index).data();
    }
    return nullptr;
  };
  for (const int op : prepared_.ops(Phase::timed)) {
    const OpCall& call = program.op(op);
    const OpWhereabouts& where = plan.ops[static_cast<std::size_t>(op)];
    std::vector<const std::byte*> inputs;
    std::vector<const std::byte*> outputs;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) inputs.push_back(find(call.inputs[i], where.inputs[i]));
    for (std::size_t i = 0; i < call.outputs.size(); ++i) outputs.push_back(find(call.outputs[i], where.outputs[i]));
    judge_op(op, inputs, outputs, "recheck", "");
  }
}

}  // namespace gpubench
