#include "harness/run/check.h"

#include <algorithm>
#include <thread>

#include "harness/core/hash.h"
#include "harness/run/own_implementation.h"

namespace gpubench {
namespace {

constexpr double smallest_budget_flop = 2.5e5;

double work_of(const Program& program, int op) {
  const OpCall& call = program.op(op);
  double elements = 0.0;
  for (const ValueId output : call.outputs) elements += static_cast<double>(program.spec(output).shape.elements());
  return std::max(cost_of(program, call).flop, elements);
}

}  // namespace

double budget_flop(Tier tier) {
  switch (tier) {
    case Tier::smoke: return 20e6;
    case Tier::quick: return 60e6;
    case Tier::standard:
    case Tier::large: return 500e6;
  }
  return 20e6;
}

const std::byte* StorageReader::operator[](StorageId id) {
  auto [at, fresh] = read_.try_emplace(id.index);
  if (fresh) at->second = memory_.block(id).read();
  return at->second.bytes.data();
}

StorageBytes StorageReader::output(const OpCall& call, ValueId id) {
  Backend& device = prepared_.backend();
  const Value& value = prepared_.program().value(id);
  if (device.host_visible() || !device.examines_memory() || read_.contains(value.storage.index) ||
      definition(call.kind).reads_written(call) || !row_view(value.spec)) {
    return (*this)[value.storage];
  }
  return {memory_.block(value.storage).data(), &device};
}

std::vector<TensorView> views_of(const Program& program, std::span<const ValueId> ids,
                                 std::span<const StorageBytes> storages) {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Value& value = program.value(ids[i]);
    const std::byte* const data = storages[i].data + value.offset_bytes;
    if (storages[i].device == nullptr) {
      views.emplace_back(value.spec, data);
    } else {
      views.emplace_back(value.spec, data, *storages[i].device, row_view(value.spec).value());
    }
  }
  return views;
}

OpJudge::OpJudge(const PreparedCase& prepared, const RunOptions& options) : prepared_(prepared), options_(options) {
  for (int op = 0; op < static_cast<int>(prepared.program().ops().size()); ++op)
    total_work_ += work_of(prepared.program(), op);
}

double OpJudge::budget(int op) const {
  const double budget = options_.check_flop.value_or(budget_flop(options_.tier));
  const double share = total_work_ > 0.0 ? work_of(prepared_.program(), op) / total_work_ : 1.0;
  return std::max(budget * share, std::min(budget, smallest_budget_flop));
}

CheckMode OpJudge::mode_of(int op) const {
  if (options_.check != CheckMode::own) return options_.check;
  return prepared_.implementation(op).starts_with(own_plan_prefix) ? CheckMode::full : CheckMode::sample;
}

bool OpJudge::has_further_launches(int op) const {
  return options_.check != CheckMode::own || mode_of(op) == CheckMode::full;
}

JudgePolicy OpJudge::policy_for(int op, std::string_view phase) const {
  JudgePolicy policy;
  policy.mode = mode_of(op);
  policy.flop_budget = budget(op);
  policy.seed = hash(phase, hash(prepared_.program().op(op).label, mix(options_.seed)));
  policy.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  policy.cause_flop = usual_cause_flop;
  return policy;
}

OpParity OpJudge::judge(int op, std::span<const StorageBytes> inputs, std::span<const StorageBytes> outputs,
                        const std::string& phase, std::span<const std::vector<std::int64_t>> suspects,
                        const SumsOfData& sums) const {
  if (options_.alive) options_.alive();
  const Program& program = prepared_.judged_program();
  const std::vector<TensorView> input_views = views_of(program, program.op(op).inputs, inputs);
  const std::vector<TensorView> output_views = views_of(program, program.op(op).outputs, outputs);
  const OpView view{input_views, output_views, suspects};
  JudgePolicy policy = policy_for(op, phase);
  policy.sums = sums;
  policy.affordable_only = phase == "special" && policy.mode == CheckMode::sample && !sums.sparse;
  OpParity parity = gpubench::judge(program, op, view, policy, phase);
  if (options_.judged) options_.judged(program, op, view, parity);
  if (is_rejected(parity.verdict) && !options_.save_failures.empty())
    parity.reason += "; " + save_failure(options_.save_failures, prepared_.planned().key(), program, op,
                                         {input_views, output_views}, parity, room_for_failures_);
  parity.implementation = prepared_.implementation(op);
  parity.choice = prepared_.choice(op);
  parity.rejected = prepared_.rejected(op);
  return parity;
}

OpParity with_fault(OpParity parity, const std::string& fault) {
  if (fault.empty()) return parity;
  parity.reason = is_rejected(parity.verdict) ? fault + "; " + parity.reason : fault;
  parity.verdict = worse(parity.verdict, Verdict::fail);
  return parity;
}

}  // namespace gpubench
