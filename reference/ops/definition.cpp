#include "reference/ops/definition.h"

#include <algorithm>
#include <set>
#include <string>

namespace gpubench {
namespace {

std::vector<const OpDefinition*> in_alphabetical_order() {
  std::vector<const OpDefinition*> all;
  for (const Definitions& some : textbooks()) all.insert(all.end(), some.begin(), some.end());
  std::ranges::sort(all, {}, [](const OpDefinition* op) { return op->kind().name; });
  return all;
}

// Borders, every phase of a small stride, and the middle.
std::set<std::int64_t> marks(std::int64_t extent, std::int64_t stride) {
  std::set<std::int64_t> result{0, extent / 2, extent - 1};
  for (std::int64_t phase = 1; phase < std::min<std::int64_t>(stride, 4); ++phase)
    result.insert(std::min(phase, extent - 1));
  return result;
}

}  // namespace

std::span<const OpDefinition* const> definitions() {
  static const std::vector<const OpDefinition*> all = in_alphabetical_order();
  return all;
}

const OpDefinition* find_definition(std::string_view name) {
  const auto all = definitions();
  const auto found =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const OpDefinition* op, std::string_view wanted) { return op->kind().name < wanted; });
  return found != all.end() && (*found)->kind().name == name ? *found : nullptr;
}

const OpDefinition& definition(OpKind kind) {
  if (const OpDefinition* found = find_definition(kind.name)) return *found;
  std::vector<std::string_view> known;
  for (const OpDefinition* op : definitions()) known.push_back(op->kind().name);
  throw ProgramError("no op '" + std::string(kind.name) + "'; expected one of: " + with_commas(known));
}

void OpDefinition::derivative(Program&, const OpCall& call, GradientTape&) const {
  throw ProgramError(std::string(call.kind.name) + " has no derivative (op '" + call.label + "')");
}

double bytes_moved(std::span<const TensorSpec> tensors) {
  double bytes = 0.0;
  for (const TensorSpec& tensor : tensors) bytes += bytes_moved(tensor);
  return bytes;
}

double elements_of(std::span<const TensorSpec> tensors) {
  double elements = 0.0;
  for (const TensorSpec& tensor : tensors) elements += elements_of(tensor);
  return elements;
}

Cost cost_of(const Program& program, const OpCall& call) {
  return definition(call.kind).cost({call, specs_of(program, call.inputs), specs_of(program, call.outputs)});
}

Cost cost_of(const Program& program) {
  Cost total;
  for (const OpCall& call : program.ops()) {
    if (call.phase != Phase::timed) continue;
    const Cost cost = cost_of(program, call);
    total.flop += cost.flop;
    total.bytes += cost.bytes;
    total.message_bytes += cost.message_bytes;
  }
  return total;
}

std::optional<ValueId> incoming_gradient(const OpCall& call, const GradientTape& tape, ValueId output) {
  if (tape.is_loss(output)) {
    throw ProgramError(std::string(call.kind.name) + ": op '" + call.label +
                       "' makes the loss; expected cross_entropy_forward, or a seed with a gradient");
  }
  return tape.of(output);
}

void refuse_gradient_of_statistics(const OpCall& call, const GradientTape& tape) {
  for (const char* name : {"mean", "rstd", "running_mean'", "running_var'"}) {
    if (!declares(call.kind.outputs, name)) continue;
    const ValueId statistic = call.output(name);
    if (tape.of(statistic) || tape.is_loss(statistic)) {
      throw ProgramError(std::string(call.kind.name) + ": a gradient flows into a statistic of op '" + call.label +
                         "'; expected mean and rstd to be read by its backward only");
    }
  }
}

ValueId required_gradient(const Program& program, const OpCall& call, const GradientTape& tape, ValueId output) {
  if (const std::optional<ValueId> gradient = incoming_gradient(call, tape, output)) return *gradient;
  throw ProgramError(std::string(call.kind.name) + ": no gradient flows into '" + program.spec(output).name +
                     "'; expected one on each rank");
}

std::vector<ValueId> incoming_gradients(const Program& program, const OpCall& call, const GradientTape& tape) {
  std::vector<ValueId> gradients;
  for (const ValueId output : call.outputs) gradients.push_back(required_gradient(program, call, tape, output));
  return gradients;
}

void gather(const TensorView& view, std::span<const std::int64_t> wanted, std::int64_t offset, std::span<double> out) {
  if (offset == 0) return view.gather(wanted, 1, out);
  std::size_t first = 0;
  while (first < wanted.size()) {
    std::size_t last = first + 1;
    while (last < wanted.size() && wanted[last] == wanted[last - 1] + 1) ++last;
    view.read(offset + wanted[first], out.subspan(first, last - first));
    first = last;
  }
}

CheckUnits element_units(const Shape& shape, double flop_per_unit) {
  CheckUnits units;
  units.count = shape.elements();
  units.flop_per_unit = flop_per_unit;
  if (units.count == 0) return units;
  const std::int64_t row = shape.rank() == 0 ? 1 : shape[-1];
  const std::set<std::int64_t> ends{0, row - 1, std::min(row, units.count - 1), units.count - row, units.count - 1};
  units.landmarks.assign(ends.begin(), ends.end());
  return units;
}

namespace {

// Fill::norm_rows makes eight kinds of rows in turn.
std::vector<std::int64_t> row_landmarks(std::int64_t rows) {
  std::set<std::int64_t> units;
  for (std::int64_t row = 0; row < std::min<std::int64_t>(rows, 8); ++row) units.insert(row);
  if (rows > 0) units.insert(rows - 1);
  return {units.begin(), units.end()};
}

}  // namespace

CheckUnits norm_row_units(const Shape& x, std::int64_t elements, double flop_per_element) {
  const std::int64_t rows = x.elements() / x[-1];
  return {rows, elements, flop_per_element * static_cast<double>(x[-1]), row_landmarks(rows)};
}

std::vector<std::int64_t> image_landmarks(const Shape& shape, std::int64_t stride_h, std::int64_t stride_w) {
  std::set<std::int64_t> units;
  if (shape.elements() == 0) return {};
  for (const std::int64_t h : marks(shape[1], stride_h)) {
    for (const std::int64_t w : marks(shape[2], stride_w)) {
      units.insert((h * shape[2] + w) * shape[3]);
      units.insert((((shape[0] - 1) * shape[1] + h) * shape[2] + w) * shape[3] + shape[3] - 1);
    }
  }
  return {units.begin(), units.end()};
}

}  // namespace gpubench
