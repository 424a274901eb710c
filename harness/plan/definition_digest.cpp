#include "harness/plan/plan.h"

#include <array>
#include <charconv>
#include <string>

#include "harness/core/hash.h"
#include "harness/core/tuning_cache.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

class Digest {
 public:
  void text(std::string_view part) { digest_ = hash(part, digest_); }
  void whole(std::int64_t number) { text(std::to_string(number)); }
  void count(double number) {
    constexpr int digits = 12;
    std::array<char, 40> buffer{};
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::general, digits).ptr;
    text(std::string_view(buffer.data(), static_cast<std::size_t>(end - buffer.data())));
  }
  [[nodiscard]] std::uint64_t value() const { return digest_; }

 private:
  std::uint64_t digest_ = 0;
};

void add(Digest& digest, std::span<const ValueId> ids) {
  digest.whole(static_cast<std::int64_t>(ids.size()));
  for (const ValueId id : ids) digest.whole(id.index);
}

// Replicas, and shards by rank on a mesh of one axis, are defined by tensor axis, rank and ranks alone.
void add(Digest& digest, const Placement& placement) {
  const std::vector<AxisSpread>& spreads = placement.spread;
  for (const int where : {spreads.empty() ? -1 : spreads.front().tensor_axis, placement.rank, placement.ranks})
    digest.whole(where);
  for (const AxisSpread& spread : spreads) {
    for (const std::int64_t section : spread.sections) digest.whole(section);
    const bool by_rank = spread.part == placement.rank && spread.parts == placement.ranks;
    if (spreads.size() == 1 && spread.kind == AxisSpread::Kind::sharded && by_rank) continue;
    for (const int part : {static_cast<int>(spread.kind), spread.tensor_axis, spread.part, spread.parts})
      digest.whole(part);
  }
}

// The index of the kind, or another number once its values have changed.
int number_of(Fill::Kind kind) {
  constexpr int masked = 1009;  // was 9 while all labels of a small batch could be masked
  return kind == Fill::Kind::masked ? masked : static_cast<int>(kind);
}

void add(Digest& digest, const Value& value) {
  const TensorSpec& spec = value.spec;
  digest.text(name(spec.dtype));
  digest.text(spec.shape.to_string());
  digest.text(spec.layout.to_string(spec.shape));
  digest.text(name(spec.placement.memory));
  add(digest, spec.placement);
  digest.whole(value.storage.index);
  digest.whole(value.offset_bytes);
  if (!value.source) return;
  digest.text(spec.name);  // the seed of a fill depends on the name
  digest.whole(number_of(spec.fill.kind));
  digest.count(spec.fill.scale);
  digest.whole(spec.fill.low);
  digest.whole(spec.fill.high);
}

void add(Digest& digest, const Program& program, const OpCall& op) {
  std::vector<ValueId> tensors = op.inputs;
  tensors.insert(tensors.end(), op.outputs.begin(), op.outputs.end());
  digest.text(choice_key(op, specs_of(program, tensors)));  // kind, attributes, arithmetic
  digest.whole(op.phase == Phase::timed ? 1 : 0);
  add(digest, op.inputs);
  add(digest, op.outputs);
  if (!op.group.empty() && op.group != RankGroup::first(program.spec(op.outputs[0]).placement.ranks))
    digest.text(op.group.to_string());
  const Cost cost = cost_of(program, op);
  for (const double count : {cost.flop, cost.bytes, cost.message_bytes}) digest.count(count);
}

}  // namespace

std::uint64_t definition_digest(const Case& c, const Workload& workload, const Program& program) {
  Digest digest;
  digest.text(c.id());
  digest.text(name(c.cache));  // decides the number of runs in a sample
  digest.text(name(c.cadence));
  digest.text(workload.info().item);
  digest.count(workload.items(c));
  for (const Value& value : program.values()) add(digest, value);
  for (const OpCall& op : program.ops()) add(digest, program, op);
  return digest.value();
}

}  // namespace gpubench
