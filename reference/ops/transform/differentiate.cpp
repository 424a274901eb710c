#include "reference/ops/transform/differentiate.h"

#include <algorithm>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/transform/gradient_ledger.h"

namespace gpubench {
namespace {

std::string quoted(const Program& program, ValueId id) { return "'" + program.spec(id).name + "'"; }

void check_request(const Program& program, std::span<const Seed> seeds, std::span<const ValueId> wanted) {
  if (seeds.empty()) throw ProgramError("differentiate: no seed; expected a loss, or a value with its gradient");
  for (const Seed& seed : seeds) {
    const TensorSpec& spec = program.spec(seed.value);
    if (!seed.gradient && (spec.shape.elements() != 1 || !is_float(spec.dtype))) {
      throw ProgramError("differentiate: the seed '" + spec.to_string() +
                         "' has no gradient; expected one, or a loss of one element");
    }
  }
  for (const ValueId id : wanted) {
    if (!is_float(program.spec(id).dtype)) {
      throw ProgramError("differentiate: " + quoted(program, id) + " is of type " +
                         std::string(name(program.spec(id).dtype)) + "; only floating-point values have gradients");
    }
  }
}

class Path {
 public:
  Path(const Program& program, const ValueFamilies& families, std::span<const Seed> seeds,
       std::span<const ValueId> wanted)
      : program_(program), families_(families), direct_(families.size(), false), on_path_(program.ops().size(), false) {
    for (const ValueId id : wanted) direct_[index(id)] = true;
    std::vector<bool> depends(on_path_.size());
    for (std::size_t op = 0; op < depends.size(); ++op) depends[op] = follow(program.ops()[op]);
    const std::vector<bool> reaching = reaching_a_seed(seeds);
    for (std::size_t op = 0; op < depends.size(); ++op) on_path_[op] = depends[op] && reaching[op];
    collect_needs(seeds);
  }

  [[nodiscard]] bool contains(int op) const { return on_path_[static_cast<std::size_t>(op)]; }
  [[nodiscard]] const GradientNeeds& needs() const { return needs_; }

  /// Whether a wanted value flows into this one. Flow into a proper part does not affect its siblings.
  [[nodiscard]] bool needed(ValueId id) const {
    if (!is_float(program_.spec(id).dtype)) return false;
    const std::vector<ValueId>& members = families_.members(families_.root(id));
    return std::any_of(members.begin(), members.end(), [&](ValueId member) {
      const bool flows_into_id = families_.covers(id) || families_.covers(member) || member == families_.canonical(id);
      return flows_into_id && direct_[index(member)];
    });
  }

 private:
  [[nodiscard]] std::size_t index(ValueId id) const { return static_cast<std::size_t>(families_.canonical(id).index); }

  bool follow(const OpCall& op) {
    if (std::none_of(op.inputs.begin(), op.inputs.end(), [this](ValueId id) { return needed(id); })) return false;
    for (const ValueId output : op.outputs) direct_[index(output)] = true;
    return true;
  }

  [[nodiscard]] std::vector<bool> reaching_a_seed(std::span<const Seed> seeds) const {
    std::set<ValueId> roots;
    for (const Seed& seed : seeds) roots.insert(families_.root(seed.value));
    std::vector<bool> reaching(on_path_.size());
    for (std::size_t op = reaching.size(); op-- > 0;) {
      const OpCall& call = program_.ops()[op];
      reaching[op] = std::any_of(call.outputs.begin(), call.outputs.end(),
                                 [&](ValueId id) { return roots.contains(families_.root(id)); });
      if (!reaching[op]) continue;
      for (const ValueId input : call.inputs) roots.insert(families_.root(input));
    }
    return reaching;
  }

  void collect_needs(std::span<const Seed> seeds) {
    for (int id = 0; id < static_cast<int>(families_.size()); ++id) {
      if (families_.covers({id}) && direct_[index({id})]) needs_.wholes.insert(families_.root({id}));
    }
    const auto read = [this](ValueId id) {
      if (needed(id)) ++needs_.readers[families_.canonical(id)];
    };
    for (const Seed& seed : seeds) {
      if (seed.gradient) read(seed.value);
    }
    for (std::size_t op = 0; op < on_path_.size(); ++op) {
      if (!on_path_[op]) continue;
      for (const ValueId input : program_.ops()[op].inputs) read(input);
    }
  }

  const Program& program_;
  const ValueFamilies& families_;
  std::vector<bool> direct_;  // by canonical value: wanted, or made by an op that a wanted value flows into
  std::vector<bool> on_path_;
  GradientNeeds needs_;
};

class Tape final : public GradientTape {
 public:
  Tape(Program& program, const Path& path, GradientLedger& ledger, const std::set<ValueId>& losses,
       DType gradient_operand, Math math, std::map<ValueId, ValueId> gradients)
      : program_(program),
        path_(path),
        ledger_(ledger),
        losses_(losses),
        gradient_operand_(gradient_operand),
        math_(math),
        gradients_(std::move(gradients)) {}

  [[nodiscard]] std::optional<ValueId> of(ValueId output) const override {
    const auto found = gradients_.find(output);
    return found == gradients_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] bool is_loss(ValueId output) const override { return losses_.contains(output); }
  [[nodiscard]] bool wanted(ValueId input) const override { return path_.needed(input); }
  [[nodiscard]] ValueId destination(ValueId input) override { return ledger_.destination(input); }
  [[nodiscard]] DType gradient_operand() const override { return gradient_operand_; }
  void contribute(ValueId input, ValueId gradient) override {
    if (path_.needed(input)) ledger_.contribute(input, gradient, math_);
  }
  [[nodiscard]] std::string label(const OpCall& forward, std::string_view suffix) const override {
    return program_.unique_name(forward.label + "." + std::string(suffix));
  }

 private:
  Program& program_;
  const Path& path_;
  GradientLedger& ledger_;
  const std::set<ValueId>& losses_;
  DType gradient_operand_;
  Math math_;
  std::map<ValueId, ValueId> gradients_;
};

void reverse(Program& program, int index, const Path& path, GradientLedger& ledger, const std::set<ValueId>& losses,
             DType gradient_operand) {
  const OpCall call = program.op(index);  // a copy: appending ops moves the program's
  std::map<ValueId, ValueId> gradients;
  bool flows = false;
  for (const ValueId output : call.outputs) {
    const std::optional<ValueId> gradient = ledger.gradient(output);
    const bool loss = losses.contains(output);
    if (gradient && loss) {
      throw ProgramError("differentiate: " + quoted(program, output) +
                         " is a loss and is read on the way to another seed; " + "expected a loss that nothing reads");
    }
    if (gradient) gradients.emplace(output, *gradient);
    flows = flows || gradient || loss;
  }
  if (!flows) return;
  Tape tape(program, path, ledger, losses, gradient_operand, call.math, std::move(gradients));
  definition(call.kind).derivative(program, call, tape);
}

ValueId oldest_version(const Program& program, ValueId id) {
  while (program.value(id).updates) id = *program.value(id).updates;
  return id;
}

// Whether `newer` is `version`, a later version of it, or a part of one.
bool derives_from(const Program& program, ValueId newer, ValueId version) {
  if (newer == version) return true;
  const Value& value = program.value(newer);
  return (value.updates && derives_from(program, *value.updates, version)) ||
         (value.part_of && derives_from(program, *value.part_of, version));
}

using UpdatesOfStorage = std::map<StorageId, std::vector<ValueId>>;

UpdatesOfStorage updates_of(const Program& program) {
  UpdatesOfStorage updates;
  for (int id = 0; id < static_cast<int>(program.values().size()); ++id) {
    const Value& value = program.value({id});
    if (value.updates && value.producer) updates[value.storage].push_back({id});
  }
  return updates;
}

// Throws ProgramError if an earlier op put a newer version into the storage of an input.
void check_not_overwritten(const Program& program, int op, const UpdatesOfStorage& updates) {
  const OpCall& call = program.op(op);
  for (const ValueId input : call.inputs) {
    const auto found = updates.find(program.value(input).storage);
    if (found == updates.end()) continue;
    for (const ValueId id : found->second) {
      const Value& newer = program.value(id);
      if (*newer.producer >= op || derives_from(program, input, id)) continue;
      if (!program.overlaps(oldest_version(program, id), oldest_version(program, input))) continue;
      throw ProgramError("differentiate: op '" + call.label + "' would read " + quoted(program, input) + " after op '" +
                         program.op(*newer.producer).label + "' has overwritten it with '" + newer.spec.name +
                         "'; differentiate first, or keep a copy");
    }
  }
}

}  // namespace

std::map<ValueId, ValueId> differentiate(Program& program, std::span<const Seed> seeds, std::span<const ValueId> wanted,
                                         DType gradient_operand) {
  check_request(program, seeds, wanted);
  const int forward_ops = static_cast<int>(program.ops().size());
  const ValueFamilies families(program);
  const Path path(program, families, seeds, wanted);
  GradientLedger ledger(program, families, path.needs());

  std::set<ValueId> losses;
  for (const Seed& seed : seeds) {
    if (!seed.gradient) losses.insert(seed.value);
    if (seed.gradient && path.needed(seed.value)) ledger.contribute(seed.value, *seed.gradient, Math{});
  }
  for (int op = forward_ops - 1; op >= 0; --op) {
    if (path.contains(op)) reverse(program, op, path, ledger, losses, gradient_operand);
  }

  std::map<ValueId, ValueId> gradients;
  for (const ValueId id : wanted) {
    const std::optional<ValueId> gradient = ledger.gradient(id);
    if (!gradient) throw ProgramError("differentiate: " + quoted(program, id) + " is wanted but influences no seed");
    gradients.emplace(id, *gradient);
  }
  const UpdatesOfStorage updates = updates_of(program);
  for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
    if (op >= forward_ops || path.contains(op)) check_not_overwritten(program, op, updates);
  }
  return gradients;
}

}  // namespace gpubench
