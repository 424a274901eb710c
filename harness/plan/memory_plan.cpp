#include "harness/plan/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace gpubench {
namespace {

struct Use {
  int first_write = -1;
  int last_touch = -1;
  bool shareable = false;
};

std::size_t at(StorageId id) { return static_cast<std::size_t>(id.index); }

bool is_consumed(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  return std::ranges::any_of(program.values_in(value.storage), [&](ValueId other) {
    const std::span<const int> readers = program.readers(other);
    return !readers.empty() && readers.back() > *value.producer && program.overlaps(id, other);
  });
}

// Not read, but another output of its op is: statistics and pre-activations of a forward that the backward recomputes.
bool is_by_product(const Program& program, ValueId id) {
  const Role role = program.spec(id).role;
  return (role == Role::activation || role == Role::statistic) &&
         std::ranges::any_of(program.op(*program.value(id).producer).outputs,
                             [&](ValueId output) { return is_consumed(program, output); });
}

bool is_shareable(const Program& program, StorageId id) {
  return std::ranges::all_of(program.values_in(id), [&](ValueId in) {
    const Value& value = program.value(in);
    if (value.source || !value.producer) return !value.source;
    return program.op(*value.producer).phase == Phase::timed &&
           (is_consumed(program, in) || is_by_product(program, in));
  });
}

std::vector<Use> uses_of(const Program& program) {
  std::vector<Use> uses(program.storages().size());
  for (int index = 0; index < static_cast<int>(program.ops().size()); ++index) {
    const OpCall& call = program.op(index);
    if (call.phase != Phase::timed) continue;
    for (const ValueId id : call.inputs) uses[at(program.value(id).storage)].last_touch = index;
    for (const ValueId id : call.outputs) {
      Use& use = uses[at(program.value(id).storage)];
      use.last_touch = index;
      if (use.first_write < 0) use.first_write = index;
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i)
    uses[i].shareable = uses[i].first_write >= 0 && is_shareable(program, {static_cast<int>(i)});
  return uses;
}

// The segment of each op; a set-up op has that of the timed op after it.
std::vector<int> segments_of(const Program& program, std::span<const Use> uses, int segments) {
  const std::size_t ops = program.ops().size();
  std::vector<int> segment(ops);
  if (segments >= static_cast<int>(ops)) {
    std::iota(segment.begin(), segment.end(), 0);
    return segment;
  }
  std::vector<std::int64_t> born(ops, 1);  // bytes; 1 for an op without a shareable output
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].shareable) born[static_cast<std::size_t>(uses[i].first_write)] += program.storages()[i].bytes;
  }
  const auto total = static_cast<double>(std::accumulate(born.begin(), born.end(), std::int64_t{0}));
  double before = 0.0;
  for (std::size_t op = 0; op < ops; ++op) {
    segment[op] = std::min(segments - 1, static_cast<int>(before / total * segments));
    before += static_cast<double>(born[op]);
  }
  return segment;
}

struct Filling {
  std::size_t slot = 0;
  std::map<int, int> turns;  // first segment -> last segment of a storage

  [[nodiscard]] bool is_free(int first, int last) const {
    const auto after = turns.upper_bound(last);
    return after == turns.begin() || std::prev(after)->second < first;
  }
};

}  // namespace

std::int64_t MemoryPlan::bytes() const {
  return std::accumulate(slots.begin(), slots.end(), std::int64_t{0},
                         [](std::int64_t sum, const MemorySlot& slot) { return sum + slot.bytes; });
}

MemoryPlan plan_memory(const Program& program, int segments) {
  const std::span<const Storage> storages = program.storages();
  const std::vector<Use> uses = uses_of(program);
  MemoryPlan plan;
  plan.segments = std::clamp(segments, 1, std::max(1, static_cast<int>(program.ops().size())));
  plan.slot_of.resize(storages.size());
  plan.follows.resize(storages.size());
  for (const Use& use : uses) plan.born.push_back(use.first_write);

  std::vector<StorageId> order;
  for (int i = 0; i < static_cast<int>(storages.size()); ++i) order.push_back({i});
  if (plan.segments > 1) {
    std::ranges::stable_sort(order,
                             [&](StorageId a, StorageId b) { return storages[at(a)].bytes > storages[at(b)].bytes; });
  }
  const std::vector<int> segment = segments_of(program, uses, plan.segments);
  std::map<std::pair<Memory, int>, std::vector<Filling>> shared;  // by memory kind and rank, the smallest slot last
  for (const StorageId id : order) {
    const Storage& storage = storages[at(id)];
    const Use& use = uses[at(id)];
    const auto new_slot = [&] {
      plan.slots.push_back({storage.bytes, storage.memory, storage.rank, {}});
      return plan.slots.size() - 1;
    };
    std::size_t slot = 0;
    if (plan.segments == 1 || !use.shareable) {
      slot = new_slot();
    } else {
      const int first = segment[static_cast<std::size_t>(use.first_write)];
      const int last = segment[static_cast<std::size_t>(use.last_touch)];
      std::vector<Filling>& fillings = shared[{storage.memory, storage.rank}];
      auto free = std::find_if(fillings.rbegin(), fillings.rend(),
                               [&](const Filling& filling) { return filling.is_free(first, last); });
      if (free == fillings.rend()) {
        fillings.push_back({new_slot(), {}});
        free = fillings.rbegin();
      }
      free->turns.emplace(first, last);
      slot = free->slot;
    }
    plan.slots[slot].storages.push_back(id);
    plan.slot_of[at(id)] = static_cast<int>(slot);
  }
  for (MemorySlot& slot : plan.slots) {
    std::ranges::sort(slot.storages, {}, [&](StorageId id) { return plan.born[at(id)]; });
    for (std::size_t turn = 1; turn < slot.storages.size(); ++turn)
      plan.follows[at(slot.storages[turn])] = slot.storages[turn - 1];
  }
  return plan;
}

MemoryPlan minimal_memory(const Program& program) {
  return plan_memory(program, static_cast<int>(program.ops().size()));
}

std::vector<std::vector<int>> dependencies(const Program& program, const MemoryPlan& memory, std::span<const int> ops) {
  std::vector<std::vector<int>> result = program.dependencies(ops);
  if (!memory.reuses()) return result;
  std::vector<std::vector<int>> touching(program.storages().size());  // by storage: indices into `ops`
  for (int place = 0; place < static_cast<int>(ops.size()); ++place) {
    const OpCall& call = program.op(ops[static_cast<std::size_t>(place)]);
    std::vector<int>& earlier = result[static_cast<std::size_t>(place)];
    const std::size_t before = earlier.size();
    for (const ValueId id : call.outputs) {
      const auto previous = memory.follows[at(program.value(id).storage)];
      if (previous) earlier.insert(earlier.end(), touching[at(*previous)].begin(), touching[at(*previous)].end());
    }
    if (earlier.size() > before) {
      std::ranges::sort(earlier);
      earlier.erase(std::unique(earlier.begin(), earlier.end()), earlier.end());
    }
    for (const std::vector<ValueId>* list : {&call.inputs, &call.outputs}) {
      for (const ValueId id : *list) touching[at(program.value(id).storage)].push_back(place);
    }
  }
  return result;
}

}  // namespace gpubench
