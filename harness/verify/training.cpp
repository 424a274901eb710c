#include "harness/verify/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <numeric>

#include "harness/core/error.h"
#include "harness/parity/fill.h"

namespace gpubench {
namespace {

// Fills are equal for all recipes of a model.
constexpr std::string_view training_key = "training";

constexpr std::string_view master_suffix = ".master";

/// The source's name in the f32 model.
std::string plain_name(std::string name) {
  if (name.ends_with(master_suffix)) name.resize(name.size() - master_suffix.size());
  return name;
}

bool is_own_source(const Value& value) { return value.source && !value.part_of; }

bool is_optimizer(const OpCall& call) { return declares(call.kind.inputs, "lr"); }

std::vector<double> filled(const TensorSpec& spec, std::uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  fill(spec, training_key, seed, bytes);
  return values_of(TensorView(spec, bytes.data()));
}

HostTensor rounded_to(const TensorSpec& spec, std::span<const double> values) {
  HostTensor tensor(spec);
  for (std::size_t e = 0; e < values.size(); ++e) tensor.set(static_cast<std::int64_t>(e), values[e]);
  return tensor;
}

/// Only the batch is cut into parts in a step on several ranks.
bool is_batch(const Value& value) { return is_own_source(value) && !value.spec.placement.spread.empty(); }

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

std::vector<ValueId> losses_of(const Program& program) {
  std::vector<ValueId> losses;
  for (const OpCall& call : program.ops()) {
    if (declares(call.kind.outputs, "loss")) losses.push_back(call.output("loss"));
  }
  return losses;
}

bool is_training_step(const Program& program) {
  return !losses_of(program).empty() && std::ranges::any_of(program.ops(), is_optimizer);
}

bool shows_training(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  if (!program.survives(id) || !is_float(value.spec.dtype) || bits_of(value.spec.dtype) < 16) return false;
  const OpCall& producer = program.op(*value.producer);
  if (producer.phase != Phase::timed) return false;
  if (value.spec.role == Role::gradient) return true;
  if (value.spec.role == Role::scalar) {
    return std::ranges::any_of(std::array{"loss", "norm"}, [&](const char* name) {
      return declares(producer.kind.outputs, name) && producer.output(name) == id;
    });
  }
  if (!value.updates) return false;
  const Value& old = program.value(*value.updates);
  return !old.producer || program.op(*old.producer).phase == Phase::setup;
}

ReferenceTraining::ReferenceTraining(const Program& step, std::uint64_t seed, int batches, int steps, int kept,
                                     const std::function<void()>& alive)
    : step_(step), seed_(seed), batches_(batches) {
  if (!is_training_step(step_)) throw ProgramError("training: the program has no loss, or no optimizer");
  const Program wide = widen(step_);
  TextbookMachine machine(wide);
  machine.fill_sources(training_key, seed_, step_);
  const auto give = [&](ValueId id, std::span<const double> values) {
    machine.give(id, rounded_to(wide.spec(id), values).view());
  };
  for (const OpCall& call : step_.ops()) {
    if (!is_optimizer(call)) continue;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorSpec& spec = step_.spec(call.inputs[i]);
      const std::string name = operand_names(call.kind.inputs, call.attributes, call.inputs.size())[i].name;
      if (name == "step" && std::ranges::find(numbers_, spec.name) == numbers_.end()) numbers_.push_back(spec.name);
      if (spec.role == Role::state && is_own_source(step_.value(call.inputs[i])))
        give(call.inputs[i], std::vector<double>(static_cast<std::size_t>(spec.shape.elements())));
    }
  }
  std::vector<ValueId> sources, state;
  for (int i = 0; i < static_cast<int>(step_.values().size()); ++i) {
    if (!is_own_source(step_.value({i}))) continue;
    sources.push_back({i});
    if (step_.is_state(step_.value({i}).storage))
      state.push_back({i});
    else
      constants_.emplace(step_.spec({i}).name, values_of(machine.view({i})));
  }
  machine.run(Phase::setup, {}, {});
  for (int number = 0; number < steps; ++number) {
    alive();
    if (number < kept) {
      Contents& now = states_.emplace_back();
      for (const ValueId id : state) now.emplace(step_.spec(id).name, values_of(machine.view(id)));
    }
    const Contents given = data(number);
    for (const ValueId id : sources) {
      if (const auto found = given.find(step_.spec(id).name); found != given.end()) give(id, found->second);
    }
    machine.run(Phase::timed, {}, {});
    std::vector<double> losses;
    for (const ValueId id : losses_of(step_)) losses.push_back(machine.view(id)[0]);
    losses_.push_back(mean_of(losses));
  }
}

ReferenceTraining::Contents ReferenceTraining::data(int step) const {
  Contents contents;
  for (const std::string& name : numbers_) contents.emplace(name, std::vector<double>{static_cast<double>(step + 1)});
  const auto batch = static_cast<std::uint64_t>(step % batches_);
  for (const Value& value : step_.values()) {
    if (is_batch(value)) contents.emplace(value.spec.name, filled(value.spec, seed_ + 1 + batch));
  }
  return contents;
}

SourceValues ReferenceTraining::data(const Program& recipe, int step) const {
  const Contents contents = data(step);
  SourceValues values;
  for (int i = 0; i < static_cast<int>(recipe.values().size()); ++i) {
    const Value& value = recipe.value({i});
    if (!is_own_source(value)) continue;
    if (const auto found = contents.find(value.spec.name); found != contents.end())
      values.emplace(ValueId{i}, rounded_to(value.spec, found->second));
  }
  return values;
}

SourceValues ReferenceTraining::sources(const Program& recipe, int step) const {
  const Contents& state = states_.at(static_cast<std::size_t>(step));
  SourceValues values = data(recipe, step);
  for (int i = 0; i < static_cast<int>(recipe.values().size()); ++i) {
    const Value& value = recipe.value({i});
    if (!is_own_source(value) || values.contains({i})) continue;
    const std::string name = plain_name(value.spec.name);
    const auto found = state.find(name);
    const auto constant = constants_.find(name);
    values.emplace(ValueId{i}, rounded_to(value.spec, found != state.end()           ? found->second
                                                      : constant != constants_.end() ? constant->second
                                                                                     : filled(value.spec, seed_)));
  }
  return values;
}

TextbookTrainee::TextbookTrainee(Program program, int number)
    : program_(std::move(program)), machine_(program_), number_(static_cast<std::uint64_t>(number)) {}

void TextbookTrainee::begin(const SourceValues& sources) {
  go_on(sources);
  machine_.run(Phase::setup, {}, {});
}

void TextbookTrainee::go_on(const SourceValues& data) {
  for (const auto& [id, tensor] : data) machine_.give(id, tensor.view());
}

void TextbookTrainee::step() {
  constexpr std::uint64_t seeds_of_one = std::uint64_t{1} << 32U;  // above the seeds of CorrectRuns
  const Disturbance disturbance((number_ + 1) * seeds_of_one + ++steps_, 0.5, false);
  machine_.run(Phase::timed, disturbance, {}, [this](int op) { after(op); });
}

double loss_left(Trainee& trainee) {
  std::vector<double> losses;
  for (const ValueId id : losses_of(trainee.program())) {
    const std::optional<TensorView> loss = trainee.left(id);
    losses.push_back(loss ? (*loss)[0] : std::numeric_limits<double>::quiet_NaN());
  }
  return mean_of(losses);
}

double error_over_allowed(const EndToEndResult& result) {
  if (result.passed()) return result.error == 0.0 ? 0.0 : result.error / result.allowed;
  const double ratio = result.error / result.allowed;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

namespace {

StepParity judged(const Program& program, const CorrectRuns& right, int step, const Judged& one) {
  StepParity parity{.step = step + 1, .loss = loss_left(*one.trainee)};
  std::vector<double> exact;
  for (const ValueId id : losses_of(program)) exact.push_back(right.exact(id)[0]);
  parity.exact_loss = mean_of(exact);
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) {
    if (!shows_training(program, {i}) || (one.compares && !one.compares(program, {i}))) continue;
    const std::optional<TensorView> left = one.trainee->left({i});
    if (!left) continue;
    const EndToEndResult result = right.compare({i}, *left);
    const double ratio = error_over_allowed(result);
    if (parity.tensors++ == 0 || ratio > parity.worst) {
      parity.worst = ratio;
      parity.worst_tensor = result;
    }
    if (!result.passed()) parity.rejected.push_back(result);
  }
  return parity;
}

}  // namespace

std::vector<StepParity> judge_step(const Program& program, const ReferenceTraining& reference, int step,
                                   std::span<const Judged> several) {
  const SourceValues sources = reference.sources(program, step);
  TextbookMachine given(program);
  for (const auto& [id, tensor] : sources) given.give(id, tensor.view());
  given.run(Phase::setup, {}, {});
  const auto start = [&](TextbookMachine& machine) {
    for (int i = 0; i < static_cast<int>(program.values().size()); ++i) {
      const Value& value = program.value({i});
      if (is_own_source(value) || (value.producer && program.op(*value.producer).phase == Phase::setup))
        machine.give({i}, given.view({i}));
    }
  };
  const auto run = [&sources](Trainee& trainee) {
    trainee.begin(sources);
    trainee.step();
  };
  std::vector<std::future<void>> steps;
  for (const Judged& one : several.subspan(1))
    steps.push_back(std::async(std::launch::async, run, std::ref(*one.trainee)));
  run(*several.front().trainee);
  for (std::future<void>& one : steps) one.get();
  std::vector<std::unique_ptr<CorrectRuns>> right;  // by choice of experts
  std::vector<StepParity> parities;
  for (const Judged& one : several) {
    TextbookMachine::Choices choices = choices_of(program, [&](ValueId id) { return one.trainee->left(id); });
    auto found = std::ranges::find_if(right, [&](const auto& runs) { return runs->choices() == choices; });
    if (found == right.end()) {
      right.push_back(std::make_unique<CorrectRuns>(program, start, Phase::timed, std::move(choices),
                                                    static_cast<std::uint64_t>(step)));
      found = right.end() - 1;
    }
    parities.push_back(judged(program, **found, step, one));
  }
  return parities;
}

std::vector<double> free_losses(Trainee& trainee, const ReferenceTraining& reference, int steps,
                                const std::function<void()>& alive) {
  std::vector<double> losses;
  trainee.begin(reference.sources(trainee.program(), 0));
  for (int step = 0; step < steps; ++step) {
    alive();
    if (step > 0) trainee.go_on(reference.data(trainee.program(), step));
    trainee.step();
    losses.push_back(loss_left(trainee));
  }
  return losses;
}

}  // namespace gpubench
