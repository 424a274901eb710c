#include "harness/python/check_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "harness/core/call_view.h"
#include "harness/core/error.h"
#include "harness/plan/names.h"
#include "reference/ops/builders.h"
#include "reference/ops/collective.h"

namespace gpubench {
namespace {

template <class Enum>
Enum value_named(const char* wanted, Enum otherwise, std::string_view what) {
  if (wanted == nullptr) return otherwise;
  const auto& names = enum_names<Enum>;
  const auto at = std::ranges::find(names, std::string_view(wanted));
  if (at == names.end())
    throw UsageError(fmt::format("{} '{}'; expected one of {}", what, wanted, fmt::join(names, ", ")));
  return static_cast<Enum>(at - names.begin());
}

AttributeValue value_of(const gpubench_attribute& attribute) {
  switch (attribute.type) {
    case GPUBENCH_BOOL: return attribute.whole != 0;
    case GPUBENCH_WHOLE: return attribute.whole;
    case GPUBENCH_REAL: return attribute.real;
    case GPUBENCH_WORD: return std::string_view(attribute.word);
    case GPUBENCH_LIST: return std::vector<std::int64_t>(attribute.list, attribute.list + attribute.count);
    default: throw UsageError(fmt::format("attribute '{}' has an unknown type", attribute.name));
  }
}

Attributes attributes_of_call(const OpKind& kind, const gpubench_call& call) {
  std::vector<NamedValue> values;
  for (std::size_t i = 0; i < call.attribute_count; ++i)
    values.push_back({call.attributes[i].name, value_of(call.attributes[i])});
  const std::vector<Attribute> known = make_attributes(kind).list();
  for (const Attribute& one : known) {
    const std::vector<std::string> asked = inputs_of_switch(kind, one.name);
    const bool given = std::any_of(call.tensors, call.tensors + call.input_count, [&](const gpubench_tensor& t) {
      return std::ranges::find(asked, t.operand) != asked.end();
    });
    if (given) values.push_back({one.name, true});
  }
  return make_attributes(kind, values);
}

std::string name_of(std::string_view operand, std::size_t item) {
  return item == 0 ? std::string(operand) : fmt::format("{}[{}]", operand, item);
}

// DLPack allows null strides: row-major.
TensorSpec spec_of(const gpubench_tensor& given) {
  const std::string name = name_of(given.operand, given.item);
  const DLTensor& dl = given.dl;
  constexpr std::int32_t cpu = 1;
  if (dl.device.device_type != cpu) throw UsageError(fmt::format("{} is on a device; copy it to the host", name));
  Shape shape(std::vector<std::int64_t>(dl.shape, dl.shape + dl.ndim));
  if (shape.elements() == 0) throw UsageError(fmt::format("{} {} has no elements", name, shape.to_string()));
  if (dl.data == nullptr) throw UsageError(fmt::format("{} {} has no memory", name, shape.to_string()));
  TensorSpec spec = tensor(name, value_named(given.type, DType::f32, "type"), std::move(shape), Role::activation);
  if (dl.strides != nullptr) spec.layout.strides.assign(dl.strides, dl.strides + dl.ndim);
  if (std::ranges::any_of(spec.layout.strides, [](std::int64_t stride) { return stride < 0; }))
    throw UsageError(fmt::format("{} has a negative stride", name));
  return spec;
}

// Throws ProgramError if the op's builder rejects the call: textbooks trust the shapes.
void expect_call(const OpCall& call, const Program& program) {
  Program plain;
  OpCall made = call;
  for (ValueId& id : made.inputs) id = plain.add(program.spec(id));
  append_call(plain, made, specs_of(program, call.outputs));
}

// The given tensors in the op's order of operands.
std::vector<const gpubench_tensor*> in_order(std::span<const gpubench_tensor> given, const OpKind& kind,
                                             std::string_view declared, const Attributes& attributes,
                                             std::string_view what) {
  std::map<std::pair<std::string, std::size_t>, const gpubench_tensor*> by_name;
  for (const gpubench_tensor& one : given) {
    if (!by_name.try_emplace({one.operand, one.item}, &one).second)
      throw UsageError(fmt::format("{}: {} is given twice", kind.name, name_of(one.operand, one.item)));
  }
  std::vector<const gpubench_tensor*> ordered;
  std::vector<std::string> expected, missing;
  for (const OperandName& wanted : operand_names(declared, attributes, given.size())) {
    expected.push_back(name_of(wanted.name, wanted.item));
    const auto found = by_name.find({wanted.name, wanted.item});
    if (found == by_name.end()) {
      missing.push_back(expected.back());
    } else {
      ordered.push_back(found->second);
      by_name.erase(found);
    }
  }
  std::vector<std::string> extra;
  for (const auto& [name, one] : by_name) extra.push_back(name_of(name.first, name.second));
  if (missing.empty() && extra.empty()) return ordered;
  throw UsageError(fmt::format("{}: {}{}{}{}{}; with these attributes its {} are {}", kind.name,
                               missing.empty() ? "" : "missing ", fmt::join(missing, ", "),
                               missing.empty() || extra.empty() ? "" : "; ", extra.empty() ? "" : "no operand ",
                               fmt::join(extra, ", "), what, fmt::join(expected, ", ")));
}

}  // namespace

const OpDefinition& definition_of(std::string_view op) {
  if (const OpDefinition* const found = find_definition(op)) return *found;
  std::vector<std::string> names;
  for (const OpDefinition* one : definitions()) names.emplace_back(one->kind().name);
  throw UsageError(fmt::format("no op '{}'{}", op, did_you_mean(std::string(op), names)));
}

std::vector<std::string> inputs_of_switch(const OpKind& kind, std::string_view attribute) {
  const Attributes off = make_attributes(kind);
  const std::vector<Attribute> known = off.list();
  const auto found = std::ranges::find(known, attribute, &Attribute::name);
  if (found == known.end() || !std::holds_alternative<bool>(found->value)) return {};
  Attributes on = off;
  on.set(attribute, true);
  std::vector<std::string> asked;
  std::string_view rest = kind.inputs;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const std::string operand(word.substr(0, word.find_first_of("?*")));
    if (word.ends_with('?') && on.has(operand) && !off.has(operand)) asked.push_back(operand);
  }
  return asked;
}

CheckedCall check_call(const gpubench_call& call, const JudgePolicy& policy) {
  const OpDefinition& definition = definition_of(call.op);
  const OpKind kind = definition.kind();
  if (is_collective(kind))
    throw UsageError(fmt::format("{} is a collective; only gpubench run checks collectives", kind.name));
  const Attributes attributes = attributes_of_call(kind, call);
  Math math;
  math.accumulate = value_named(call.accumulate, DType::f32, "accumulate");
  math.inputs = value_named(call.inputs, Math::Inputs::exact, "inputs");
  math.fast_accumulation = call.fast_accumulation != 0;
  math.split_k_in_output = call.split_k_in_output != 0;
  math.approximate_tanh = call.approximate_tanh != 0;

  Program program;
  OpCall made{kind, attributes, math, {}, {}, std::string(kind.name)};
  std::vector<const std::byte*> data;
  const auto take = [&](std::span<const gpubench_tensor> given, std::string_view declared, std::string_view what,
                        std::vector<ValueId>& ids, bool produced) {
    for (const gpubench_tensor* one : in_order(given, kind, declared, attributes, what)) {
      TensorSpec spec = spec_of(*one);
      data.push_back(static_cast<const std::byte*>(one->dl.data) +
                     bytes_of(spec.dtype, static_cast<std::int64_t>(one->dl.byte_offset) * 8 / bits_of(spec.dtype)));
      spec.name = program.unique_name(spec.name);
      ids.push_back(produced ? program.reserve(std::move(spec)) : program.add(std::move(spec)));
    }
  };
  const std::span<const gpubench_tensor> all(call.tensors, call.input_count + call.output_count);
  take(all.first(call.input_count), kind.inputs, "inputs", made.inputs, false);
  take(all.subspan(call.input_count), kind.outputs, "outputs", made.outputs, true);
  expect_call(made, program);
  program.append(std::move(made));

  const OpCall& op = program.op(0);
  std::vector<TensorView> inputs, outputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) inputs.emplace_back(program.spec(op.inputs[i]), data[i]);
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    outputs.emplace_back(program.spec(op.outputs[i]), data[op.inputs.size() + i]);
  CheckedCall checked{judge(program, 0, {inputs, outputs}, policy, "check"), ""};
  if (checked.parity.worst) {
    const std::vector<TensorSpec> input_specs = specs_of(program, op.inputs);
    const std::vector<TensorSpec> output_specs = specs_of(program, op.outputs);
    for (std::size_t i = 0; i < output_specs.size(); ++i) {
      if (output_specs[i].name == checked.parity.worst->tensor)
        checked.rule = definition.bound({op, input_specs, output_specs}, static_cast<int>(i));
    }
  }
  return checked;
}

}  // namespace gpubench
