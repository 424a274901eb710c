#include "harness/run/prepared_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "harness/core/error.h"
#include "harness/measure/protocol.h"
#include "harness/parity/fill.h"
#include "harness/parity/judge.h"
#include "harness/parity/lower_precision.h"
#include "harness/run/case_memory.h"
#include "harness/run/timing.h"

namespace gpubench {

std::string readable_bytes(std::int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (value >= 1e9) return fmt::format("{:.1f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} MB", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.1f} kB", value / 1e3);
  return fmt::format("{} bytes", bytes);
}

void require_fit(std::int64_t needed, std::int64_t available) {
  if (needed > available) {
    throw DoesNotFit(fmt::format("needs {}, {} are available", readable_bytes(needed), readable_bytes(available)));
  }
}

namespace {

Fused fused_for(Backend& backend, const Program& program, bool wanted) {
  if (!wanted) return {program, {}};
  std::vector<bool> kept;
  for (const OpCall& call : program.ops()) kept.push_back(backend.keeps(call, specs_of_call(program, call)));
  return fuse(program, backend.fused_ops(), std::move(kept));
}

}  // namespace

PreparedCase::PreparedCase(Backend& backend, Arena& arena, const PlannedCase& planned, std::uint64_t seed,
                           std::int64_t available_bytes, const PlanRequest& request)
    : backend_(backend),
      arena_(arena),
      planned_(planned),
      fused_(fused_for(backend, planned.workload->build(planned.c), planned.c.fuse)) {
  for (int op = 0; op < static_cast<int>(program().ops().size()); ++op) {
    (program().op(op).phase == Phase::setup ? setup_ops_ : timed_ops_).push_back(op);
  }
  if (!request.arithmetic.empty()) judged_ = with_arithmetic(program(), request.arithmetic);
  if (timed_ops_.empty()) throw ProgramError(fmt::format("case '{}' has no op to time", planned.id()));
  sort_storages();
  plan_ops(request);

  const std::vector<std::size_t> of_rank = scratch_bytes();
  const auto scratch = static_cast<std::int64_t>(std::accumulate(of_rank.begin(), of_rank.end(), std::size_t{0}));
  std::int64_t kept = 0;  // second copy of the state
  for (const StorageId id : state_) kept += guarded_bytes(program().storage(id).bytes);
  plan_storages(scratch + kept, available_bytes);

  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    workspaces_.push_back(std::make_unique<GuardedBlock>(backend_, arena_, "the workspace", of_rank[rank],
                                                         Memory::device, static_cast<int>(rank)));
  }
  memory_bytes_ = scratch;
  copies_.push_back(bind_copy());
  fill_sources(seed);
}

void PreparedCase::sort_storages() {
  const std::size_t count = program().storages().size();
  std::vector<bool> timed(count);
  roots_.resize(count);
  for (int index = static_cast<int>(program().values().size()) - 1; index >= 0; --index) {
    const Value& value = program().values()[static_cast<std::size_t>(index)];
    const auto storage = static_cast<std::size_t>(value.storage.index);
    if (value.producer && program().op(*value.producer).phase == Phase::timed) timed[storage] = true;
    roots_[storage] = ValueId{index};  // the first value of a storage is the one that reserved it
  }
  for (std::size_t storage = 0; storage < count; ++storage) {
    const StorageId id{static_cast<int>(storage)};
    (!timed[storage] ? constants_ : program().is_state(id) ? state_ : produced_).push_back(id);
  }
}

void PreparedCase::plan_storages(std::int64_t other_bytes, std::int64_t available_bytes) {
  const int ops = static_cast<int>(program().ops().size());
  const auto needed = [&] { return guarded_bytes(memory_plan_) + other_bytes; };
  memory_plan_ = plan_memory(program(), 1);
  const std::int64_t all = needed();
  for (int segments = 2; needed() > available_bytes && memory_plan_.segments < ops; segments *= 2)
    memory_plan_ = plan_memory(program(), segments);
  if (needed() > available_bytes) require_fit(std::min(all, needed()), available_bytes);
  std::ranges::copy_if(produced_, std::back_inserter(left_),
                       [&](StorageId id) { return memory_plan_.keeps_memory(id); });
}

void PreparedCase::plan_ops(const PlanRequest& request) {
  for (const auto& [label, implementation] : request.pins) {
    const auto ops = program().ops();
    if (std::none_of(ops.begin(), ops.end(), [&label = label](const OpCall& call) { return call.label == label; })) {
      throw Unsupported(
          fmt::format("op '{}' is pinned to {}, but does not exist here: other ops are fused", label, implementation));
    }
  }
  const Stopwatch watch;
  std::vector<CallToPlan> calls = calls_to_plan(request);
  backend_.announce_plans(calls, request.alive);
  for (auto& [call, specs, options] : calls) {
    const int op = static_cast<int>(plans_.size());
    if (!options.pinned.empty()) pinned_ops_.insert(op);
    const CandidateJudge judge(judged_program(), op);
    options.judge = &judge;
    if (request.alive) request.alive();
    plans_.push_back(backend_.plan(*call, specs, options));
    if (plans_.back()->choice() == Choice::timed)
      timed_choices_[choice_key(*call, specs)] = plans_.back()->implementation();
    if (const std::string taken = plans_.back()->implementation(); !options.pinned.empty() && taken != options.pinned) {
      throw Unsupported(fmt::format("op '{}' is pinned to {}; here it is {}", call->label, options.pinned, taken));
    }
  }
  if (request.alive) request.alive();
  plan_s_ = watch.seconds();
}

std::vector<CallToPlan> PreparedCase::calls_to_plan(const PlanRequest& request) const {
  std::vector<CallToPlan> calls;
  for (const OpCall& call : program().ops()) {
    CallToPlan& next = calls.emplace_back(CallToPlan{&call, specs_of_call(program(), call)});
    next.options.deterministic = request.deterministic;
    next.options.alive = request.alive;
    if (const auto pin = request.pins.find(call.label); pin != request.pins.end()) {
      next.options.pinned = pin->second;
    } else if (request.tuning_cache != nullptr) {
      next.options.remembered = request.tuning_cache->recall(choice_key(call, next.tensors));
    }
  }
  return calls;
}

std::string PreparedCase::plan_key(int op) const {
  const OpCall& call = program().op(op);
  return choice_key(call, specs_of_call(program(), call)) + " " + implementation(op);
}

std::optional<Choice> PreparedCase::choice(int op) const {
  if (pinned_ops_.contains(op)) return Choice::pinned;
  const Choice choice = plans_.at(static_cast<std::size_t>(op))->choice();
  return choice == Choice::only ? std::nullopt : std::optional(choice);
}

std::optional<std::vector<std::string>> PreparedCase::rejected(int op) const {
  std::vector<std::string> rejected = plans_.at(static_cast<std::size_t>(op))->rejected();
  return rejected.empty() ? std::nullopt : std::optional(std::move(rejected));
}

std::vector<std::size_t> PreparedCase::scratch_bytes() const {
  std::vector<std::size_t> bytes(static_cast<std::size_t>(planned_.c.ranks));
  for (std::size_t op = 0; op < plans_.size(); ++op) {
    const std::optional<int> rank = rank_of(program(), program().ops()[op]);
    if (!rank) continue;
    std::size_t& own = bytes.at(static_cast<std::size_t>(*rank));
    own = std::max(own, plans_[op]->workspace_bytes());
  }
  return bytes;
}

std::int64_t PreparedCase::workspace_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& workspace : workspaces_) bytes += static_cast<std::int64_t>(workspace->bytes());
  return bytes;
}

std::string PreparedCase::check_workspace_guards() {
  std::vector<GuardedBlock*> guarded;
  for (const auto& workspace : workspaces_) guarded.push_back(workspace.get());
  for (const auto& [storage, kept] : kept_state_) guarded.push_back(kept.get());
  return check_guards_of(backend_, guarded);
}

void PreparedCase::fill_sources(std::uint64_t seed) {
  const std::string key = planned_.c.id_without_ranks();
  for (std::size_t storage = 0; storage < roots_.size(); ++storage) {
    const Value& root = program().value(roots_[storage]);
    GuardedBlock& block = memory(0).block(root.storage);
    if (root.source) {
      block.modify([&](std::span<std::byte> bytes) { fill(root.spec, key, seed, bytes); });
    } else if (!memory_plan_.follows[storage]) {
      begin_storage(0, root.storage);
    }
  }
}

PreparedCase::Copy PreparedCase::bind_copy() {
  Copy copy;
  copy.memory = std::make_unique<CaseMemory>(backend_, arena_, program(), memory_plan_);
  memory_bytes_ += guarded_bytes(memory_plan_);
  for (std::size_t op = 0; op < plans_.size(); ++op) {
    const OpCall& call = program().ops()[op];
    std::vector<Tensor> tensors;
    for (const ValueId id : call.inputs) tensors.push_back(copy.memory->tensor(program().value(id)));
    for (const ValueId id : call.outputs) tensors.push_back(copy.memory->tensor(program().value(id)));
    Workspace workspace;
    if (const std::optional<int> rank = rank_of(program(), call)) {
      const GuardedBlock& block = *workspaces_.at(static_cast<std::size_t>(*rank));
      workspace = {block.data(), block.bytes()};
    }
    copy.ops.push_back(backend_.bind(plans_[op], tensors, workspace));
  }
  return copy;
}

Launch PreparedCase::sequence_of(const Copy& copy, std::span<const int> ops, std::optional<LaunchMode> mode) const {
  std::vector<Launch> launches;
  for (const int op : ops) launches.push_back(copy.ops[static_cast<std::size_t>(op)]);
  return backend_.sequence(launches, {dependencies(program(), memory_plan_, ops), mode.value_or(planned_.c.launch)});
}

const Launch& PreparedCase::launch(int copy, int op) const {
  return copies_.at(static_cast<std::size_t>(copy)).ops.at(static_cast<std::size_t>(op));
}

std::vector<Launch> PreparedCase::timed_launches() const {
  std::vector<Launch> launches;
  for (const Copy& copy : copies_) launches.push_back(copy.timed);
  return launches;
}

Launch PreparedCase::segment(int first, int last, std::optional<LaunchMode> mode) const {
  const auto begin = std::lower_bound(timed_ops_.begin(), timed_ops_.end(), first);
  return sequence_of(copies_.front(), {begin, std::lower_bound(begin, timed_ops_.end(), last)}, mode);
}

Launch PreparedCase::without_collectives() const {
  std::vector<int> on_one_rank;
  std::copy_if(timed_ops_.begin(), timed_ops_.end(), std::back_inserter(on_one_rank),
               [this](int op) { return rank_of(program(), program().op(op)).has_value(); });
  return on_one_rank.size() == timed_ops_.size() ? nullptr : sequence_of(copies_.front(), on_one_rank);
}

void PreparedCase::keep_state() {
  for (const StorageId id : state_) {
    std::unique_ptr<GuardedBlock>& kept = kept_state_[id.index];
    const Storage& storage = program().storage(id);
    if (kept == nullptr)
      kept = std::make_unique<GuardedBlock>(backend_, arena_, "the kept state of '" + storage.name + "'",
                                            static_cast<std::size_t>(storage.bytes), storage.memory, storage.rank);
    kept->copy_from(memory(0).block(id));
  }
}

void PreparedCase::set_up() {
  for (const int op : setup_ops_) backend_.run(launch(0, op));
  keep_state();
}

void PreparedCase::set_up_to_record() {
  set_up();
  if (planned_.c.launch != LaunchMode::graph) return;
  for (const int op : timed_ops_) backend_.run(launch(0, op));
}

void PreparedCase::restore(int copy) {
  for (const StorageId id : state_) memory(copy).block(id).copy_from(kept_state(id));
}

void PreparedCase::restore_after(int op) {
  std::set<int> overwritten;
  for (const ValueId output : program().op(op).outputs) overwritten.insert(program().value(output).storage.index);
  for (const StorageId id : state_) {
    if (overwritten.contains(id.index)) memory(0).block(id).copy_from(kept_state(id));
  }
}

void PreparedCase::reset(int copy, Stretch poisoned) {
  restore(copy);
  for (const StorageId id : produced_) {
    if (!memory_plan_.follows[static_cast<std::size_t>(id.index)]) begin_storage(copy, id, poisoned);
  }
}

RoundTimes PreparedCase::time_once(int copy) {
  const Launch& launch = timed(copy);
  return backend_.time({&launch, 1}, {.cadence = planned_.c.cadence});
}

void PreparedCase::begin_storage(int copy, StorageId id, Stretch poisoned) {
  GuardedBlock& block = memory(copy).block(id);
  if (memory_plan_.is_shared(id)) block.write_guards();
  block.poison(program().spec(roots_[static_cast<std::size_t>(id.index)]).dtype, poisoned);
}

void PreparedCase::begin_storages(int copy, int first, int last) {
  if (!memory_plan_.reuses()) return;
  for (const StorageId id : produced_) {
    const auto at = static_cast<std::size_t>(id.index);
    const bool now = memory_plan_.born[at] >= first && memory_plan_.born[at] < last;
    if (now && memory_plan_.follows[at]) begin_storage(copy, id);
  }
}

void PreparedCase::make_copies(std::int64_t available_bytes) {
  const int wanted = copies_for(planned_.c.cache, memory_plan_.bytes(), backend_.device().cache_bytes, available_bytes);
  const int before = copies();
  while (copies() < wanted) copies_.push_back(bind_copy());
  for (const StorageId id : before < wanted ? constants_ : std::vector<StorageId>()) {
    for (int copy = before; copy < wanted; ++copy) memory(copy).block(id).copy_from(memory(0).block(id));
  }
  for (int copy = 0; copy < copies(); ++copy) {
    reset(copy);
    copies_[static_cast<std::size_t>(copy)].timed = sequence_of(copies_[static_cast<std::size_t>(copy)], timed_ops_);
  }
}

void PreparedCase::refill(std::uint64_t seed) {
  fill_sources(seed);
  set_up();
  reset(0);
}

void PreparedCase::write(ValueId id, const std::function<void(const TensorSpec& spec, std::byte* to)>& elements) {
  const Value& value = program().value(id);
  GuardedBlock& block = memory(0).block(value.storage);
  if (memory_plan_.is_shared(value.storage)) block.write_guards();
  block.modify([&](std::span<std::byte> bytes) { elements(value.spec, bytes.data() + value.offset_bytes); });
}

void PreparedCase::give(ValueId id, const HostTensor& data) {
  write(id,
        [&](const TensorSpec& spec, std::byte* to) { write_bits(spec, 0, data.elements(), data.bytes.data(), to); });
}

void PreparedCase::give(ValueId id, const SparseTensor& data) {
  write(id, [&](const TensorSpec& spec, std::byte* to) {
    if (data.rest == 0.0 && spec.layout.is_row_major(spec.shape)) {
      std::fill_n(to, bytes_of(spec.dtype, spec.shape.elements()), std::byte{0});
    } else {
      for (std::int64_t e = 0; e < spec.shape.elements(); ++e)
        store(spec.dtype, to, spec.layout.offset(spec.shape, e), data.rest);
    }
    for (const SparseTensor::Element& element : data.elements)
      store(spec.dtype, to, spec.layout.offset(spec.shape, element.linear), element.value);
  });
}

void PreparedCase::begin_outputs(int op) {
  const OpCall& call = program().op(op);
  std::set<int> kept;
  for (const ValueId input : call.inputs) kept.insert(program().value(input).storage.index);
  for (const ValueId output : call.outputs) {
    const StorageId storage = program().value(output).storage;
    if (kept.insert(storage.index).second) begin_storage(0, storage);
  }
}

void PreparedCase::reverse_inputs() {
  reset(0);
  for (const ValueId id : roots_) {
    const Value& root = program().value(id);
    // In other layouts padding would move between the elements.
    if (!root.source || !root.spec.layout.is_row_major(root.spec.shape)) continue;
    memory(0).block(root.storage).modify([&](std::span<std::byte> bytes) { reverse_elements(root.spec.dtype, bytes); });
  }
  set_up();
  reset(0);
}

}  // namespace gpubench
