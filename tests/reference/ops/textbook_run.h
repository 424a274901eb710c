// Programs run by the textbook on small host tensors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/definition.h"
#include "tests/thrown_text.h"

namespace gpubench::testing {

inline constexpr Math f32_math{};
inline constexpr Math f64_math{DType::f64, Math::Inputs::exact, false, false};

inline ValueId source(Program& program, std::string name, DType dtype, Shape shape, Role role = Role::input) {
  return program.add(tensor(std::move(name), dtype, std::move(shape), role));
}

/// Reproducible values in (-1, 1) with mean about zero.
inline std::vector<double> spread(std::int64_t count, std::uint64_t seed) {
  std::vector<double> values;
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    values.push_back(static_cast<double>(static_cast<std::int64_t>(state) >> 11) * 0x1p-52);
  }
  return values;
}

/// Memory for every storage of a program, and the textbook as its backend.
class TextbookRun {
 public:
  explicit TextbookRun(const Program& program) : program_(program) {}

  /// Logical elements in row-major order, rounded to the tensor's type.
  void set(ValueId id, const std::vector<double>& values) {
    const TensorSpec& spec = program_.spec(id);
    ASSERT_EQ(static_cast<std::int64_t>(values.size()), spec.shape.elements()) << spec.to_string();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t offset = spec.layout.offset(spec.shape, static_cast<std::int64_t>(i));
      store(spec.dtype, data(id), offset, values[i]);
    }
  }

  std::vector<double> get(ValueId id) {
    std::vector<double> values(static_cast<std::size_t>(program_.spec(id).shape.elements()));
    view(id).read(0, values);
    return values;
  }

  TensorView view(ValueId id) { return {program_.spec(id), data(id)}; }

  /// Expected values of the wanted units of one output, for the current memory.
  std::vector<Expected> judge(int op, int output, const std::vector<std::int64_t>& wanted) {
    return judge(op, output, wanted, {});
  }
  std::vector<Expected> judge(int op, int output) { return judge(op, output, all_units(op, output)); }

  std::vector<Expected> judge_stored(int op, int output) {
    std::vector<TensorView> written;
    for (const ValueId id : program_.op(op).outputs) written.push_back(view(id));
    return judge(op, output, all_units(op, output), written);
  }

  CheckUnits units(int op, int output) const {
    const OpCall& call = program_.op(op);
    return definition(call.kind).units({call, specs_of(program_, call.inputs), specs_of(program_, call.outputs)},
                                       output);
  }

  void run(int op) {
    const OpCall& call = program_.op(op);
    std::vector<std::vector<double>> results;
    for (std::size_t output = 0; output < call.outputs.size(); ++output) {
      results.emplace_back();
      for (const Expected& judged : judge(op, static_cast<int>(output))) results.back().push_back(judged.value);
    }
    for (std::size_t output = 0; output < call.outputs.size(); ++output) set(call.outputs[output], results[output]);
  }

  void run() {
    for (std::size_t op = 0; op < program_.ops().size(); ++op) run(static_cast<int>(op));
  }

 private:
  std::vector<Expected> judge(int op, int output, const std::vector<std::int64_t>& wanted,
                              const std::vector<TensorView>& written) {
    const OpCall& call = program_.op(op);
    std::vector<TensorView> inputs;
    for (const ValueId input : call.inputs) inputs.push_back(view(input));
    const std::vector<TensorSpec> outputs = specs_of(program_, call.outputs);
    const std::int64_t elements = units(op, output).elements;
    std::vector<Expected> judged(wanted.size() * static_cast<std::size_t>(elements));
    definition(call.kind).evaluate({call, inputs, outputs, written}, output, wanted, judged);
    return judged;
  }
  [[nodiscard]] std::vector<std::int64_t> all_units(int op, int output) const {
    std::vector<std::int64_t> all(static_cast<std::size_t>(units(op, output).count));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    return all;
  }

  std::byte* data(ValueId id) {
    const Value& value = program_.value(id);
    std::vector<std::byte>& memory = memory_[value.storage];
    memory.resize(static_cast<std::size_t>(program_.storage(value.storage).bytes));
    return memory.data() + value.offset_bytes;
  }

  const Program& program_;
  std::map<StorageId, std::vector<std::byte>> memory_;
};

inline std::vector<double> values_of(const std::vector<Expected>& judged) {
  std::vector<double> values;
  for (const Expected& one : judged) values.push_back(one.value);
  return values;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_LE(std::fabs(got[i] - expected[i]), tolerance)
        << "element " << i << ": " << got[i] << " for " << expected[i];
}

/// The checker's rule.
inline bool within(const Expected& judged, DType type, double got) {
  return round_to(type, judged.value - judged.bound) <= got && got <= round_to(type, judged.value + judged.bound);
}

/// Sparse subsets and single units equal a full evaluation, bit for bit.
inline void expect_subsets_agree(TextbookRun& run, int op, int output) {
  const std::vector<Expected> all = run.judge(op, output);
  const CheckUnits units = run.units(op, output);
  const auto elements = static_cast<std::size_t>(units.elements);
  for (const std::int64_t step : {std::int64_t{2}, std::int64_t{3}, std::int64_t{7}}) {
    std::vector<std::int64_t> wanted;
    for (std::int64_t unit = units.count - 1; unit >= 0; unit -= step) wanted.insert(wanted.begin(), unit);
    const std::vector<Expected> some = run.judge(op, output, wanted);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const Expected& expected = all[static_cast<std::size_t>(wanted[i / elements]) * elements + i % elements];
      EXPECT_EQ(some[i].value, expected.value) << "unit " << wanted[i / elements] << " of every " << step;
      EXPECT_EQ(some[i].bound, expected.bound) << "unit " << wanted[i / elements] << " of every " << step;
    }
  }
  for (const std::int64_t landmark : units.landmarks) {
    EXPECT_GE(landmark, 0);
    EXPECT_LT(landmark, units.count);
  }
}

/// A tape for one op, with given gradients of outputs, that records contributions.
class SingleOpTape : public GradientTape {
 public:
  explicit SingleOpTape(Program& program) : program_(program) {}

  std::map<ValueId, ValueId> given;
  std::optional<ValueId> loss;
  std::vector<ValueId> wanted_inputs;
  std::multimap<ValueId, ValueId> contributions;

  std::optional<ValueId> of(ValueId output) const override {
    const auto found = given.find(output);
    return found == given.end() ? std::nullopt : std::optional(found->second);
  }
  bool is_loss(ValueId output) const override { return loss == output; }
  bool wanted(ValueId input) const override {
    return std::find(wanted_inputs.begin(), wanted_inputs.end(), input) != wanted_inputs.end();
  }
  ValueId destination(ValueId input) override {
    EXPECT_TRUE(destinations_.insert(input).second) << "two destinations for " << program_.spec(input).name;
    const TensorSpec spec = program_.spec(input);
    return program_.reserve(tensor(program_.unique_name("d" + spec.name), spec.dtype, spec.shape, Role::gradient));
  }
  DType gradient_operand() const override { return DType::f8_e5m2; }
  void contribute(ValueId input, ValueId gradient) override {
    EXPECT_EQ(program_.spec(gradient).shape, program_.spec(input).shape);
    EXPECT_EQ(program_.spec(gradient).dtype, program_.spec(input).dtype);
    contributions.emplace(input, gradient);
  }
  std::string label(const OpCall& forward, std::string_view suffix) const override {
    return program_.unique_name(forward.label + "." + std::string(suffix));
  }

 private:
  Program& program_;
  std::set<ValueId> destinations_;
};

/// Compares the derivative rule of op 0, in fp64, with central differences of sum(dy * output) for each wanted source.
/// `fixed`: values of all sources. Error of the differences: h^2 third derivatives and eps / h, both about 1e-10.
inline void expect_derivative_agrees(Program& program, ValueId output,
                                     const std::map<ValueId, std::vector<double>>& fixed,
                                     const std::vector<ValueId>& wanted) {
  const Shape shape = program.spec(output).shape;
  const ValueId dy = source(program, "seed gradient", DType::f64, shape, Role::gradient);
  const std::vector<double> seed = spread(shape.elements(), 77);
  SingleOpTape tape(program);
  tape.given[output] = dy;
  tape.wanted_inputs = wanted;
  const OpCall forward = program.op(0);
  definition(forward.kind).derivative(program, forward, tape);

  TextbookRun run(program);
  for (const auto& [id, values] : fixed) run.set(id, values);
  run.set(dy, seed);
  run.run();
  const auto objective = [&](ValueId id, std::vector<double> values, std::size_t element, double step) {
    values[element] += step;
    TextbookRun moved(program);
    for (const auto& [other, kept] : fixed) moved.set(other, kept);
    moved.set(id, values);
    moved.run(0);
    const std::vector<double> y = moved.get(output);
    double sum = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += seed[i] * y[i];
    return sum;
  };
  for (const ValueId id : wanted) {
    ASSERT_GT(tape.contributions.count(id), 0U) << program.spec(id).name;
    std::vector<double> gradient(fixed.at(id).size(), 0.0);
    const auto [first, last] = tape.contributions.equal_range(id);
    for (auto summand = first; summand != last; ++summand) {
      const std::vector<double> values = run.get(summand->second);
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += values[i];
    }
    constexpr double h = 1e-5;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double slope = (objective(id, fixed.at(id), i, h) - objective(id, fixed.at(id), i, -h)) / (2.0 * h);
      EXPECT_LE(std::fabs(gradient[i] - slope), 1e-8) << program.spec(id).name << "[" << i << "]";
    }
  }
}

using Labels = std::vector<std::string>;
inline Labels labels_of(const Program& program) {
  Labels labels;
  for (const OpCall& op : program.ops()) labels.push_back(op.label);
  return labels;
}

/// The first value of this name; an invalid id if there is none.
inline ValueId named(const Program& program, const std::string& name) {
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) {
    if (program.spec({i}).name == name) return {i};
  }
  return {};
}

template <class Build>
std::string program_error(Build build) {
  return thrown_text<ProgramError>([&] { build(); });
}

/// The error of differentiating op 0 if a gradient flows into this output; empty if it may.
inline std::string refused_gradient(Program& program, ValueId output) {
  const TensorSpec spec = program.spec(output);
  SingleOpTape tape(program);
  tape.given[output] = source(program, "seed", spec.dtype, spec.shape, Role::gradient);
  const OpCall call = program.op(0);
  return program_error([&] { definition(call.kind).derivative(program, call, tape); });
}

}  // namespace gpubench::testing
