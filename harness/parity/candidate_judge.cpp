#include "harness/parity/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/parity/compare_elements.h"
#include "harness/parity/sample.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

// fp64 work for one output of one candidate: 20 ms on a core, 500 elements of a product of k = 4096.
constexpr double sample_flop = 20e6;

}  // namespace

CandidateJudge::CandidateJudge(const Program& program, int op)
    : CandidateJudge(program.op(op), specs_of_call(program, program.op(op))) {}

CandidateJudge::CandidateJudge(OpCall call, std::span<const TensorSpec> tensors) : call_(std::move(call)) {
  const std::size_t inputs = std::min(call_.inputs.size(), tensors.size());
  inputs_.assign(tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(inputs));
  outputs_.assign(tensors.begin() + static_cast<std::ptrdiff_t>(inputs), tensors.end());
}

std::string CandidateJudge::objection(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size()) {
    throw ProgramError(fmt::format("op '{}' was given {} inputs and {} outputs to judge, expected {} and {}",
                                   call_.label, inputs.size(), outputs.size(), inputs_.size(), outputs_.size()));
  }
  const OpDefinition& textbook = definition(call_.kind);
  for (int output = 0; output < static_cast<int>(outputs.size()); ++output) {
    const TensorView& view = outputs[static_cast<std::size_t>(output)];
    const CheckUnits units = textbook.units({call_, inputs_, outputs_}, output);
    const UnitChoice choice = choose_units(units, sample_flop, {}, hash(view.spec().name));
    const std::vector<std::int64_t> wanted = choice.slice(0, choice.size());
    const auto per_unit = static_cast<std::size_t>(units.elements);
    std::vector<Expected> judged(wanted.size() * per_unit);
    textbook.evaluate({call_, inputs, outputs_, outputs}, output, wanted, judged);
    Tally tally;
    std::vector<double> got(per_unit);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::int64_t linear = wanted[i] * units.elements;
      view.read(linear, got);
      compare(linear, std::span<const Expected>(judged).subspan(i * per_unit, per_unit), view.dtype(), got, tally);
    }
    if (tally.bad > 0) {
      return fmt::format("{} of {} judged elements of '{}' outside their bound, by up to {:.3g} times", tally.bad,
                         tally.judged, view.spec().name, tally.error_over_bound);
    }
  }
  return {};
}

}  // namespace gpubench
