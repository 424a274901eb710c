#include "harness/parity/end_to_end.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <numbers>

#include "harness/core/program.h"
#include "harness/parity/fill.h"
#include "harness/parity/textbook_outputs.h"
#include "reference/ops/definition.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/quantize.h"

namespace gpubench {
namespace {

// Derived in end_to_end.h.
constexpr std::uint64_t disturbed_runs = 3;
constexpr double steps_the_other_way = 9.0;  ///< elements that an optimizer moves in the other direction

void store_element(std::byte* base, const TensorSpec& spec, std::int64_t linear, double value) {
  store(spec.dtype, base, spec.layout.offset(spec.shape, linear), value);
}

}  // namespace

TextbookMachine::TextbookMachine(const Program& program) : program_(program) {
  for (const Storage& storage : program.storages()) memory_.emplace_back(static_cast<std::size_t>(storage.bytes));
}

void TextbookMachine::fill_sources(std::string_view case_key, std::uint64_t seed, const Program& types) {
  for (std::size_t i = 0; i < program_.values().size(); ++i) {
    const Value& value = program_.values()[i];
    if (!value.source || value.part_of) continue;
    const TensorSpec& stored = types.values()[i].spec;
    std::vector<std::byte> bytes(static_cast<std::size_t>(stored.bytes()));
    fill(stored, case_key, seed, bytes);
    const TensorView source(stored, bytes.data());
    std::byte* base = data(value.storage) + value.offset_bytes;
    for (std::int64_t e = 0; e < stored.shape.elements(); ++e) store_element(base, value.spec, e, source[e]);
  }
}

void TextbookMachine::give(ValueId id, const TensorView& data) {
  const Value& value = program_.value(id);
  std::byte* base = this->data(value.storage) + value.offset_bytes;
  for (std::int64_t e = 0; e < value.spec.shape.elements(); ++e) store_element(base, value.spec, e, data[e]);
}

void TextbookMachine::run(std::optional<Disturbance> disturb, const Choices& choices) {
  run(Phase::setup, disturb, choices);
  run(Phase::timed, disturb, choices);
}

void TextbookMachine::run(Phase phase, std::optional<Disturbance> disturb, const Choices& choices,
                          const std::function<void(int op)>& after) {
  for (int index = 0; index < static_cast<int>(program_.ops().size()); ++index) {
    if (program_.op(index).phase != phase) continue;
    run_op(index, disturb, choices);
    for (const ValueId output : program_.op(index).outputs) {
      const std::span<const int> readers = program_.readers(output);
      const bool has_kink = std::any_of(readers.begin(), readers.end(),
                                        [&](int reader) { return program_.op(reader).kind == relu_forward_kind; });
      if (disturb && disturb->kinks && has_kink) push_over_zero(output, (disturb->seed - 1) % disturbed_runs + 1);
    }
    if (after) after(index);
  }
}

void TextbookMachine::push_over_zero(ValueId id, std::uint64_t which) {
  const TensorView values = view(id);
  std::vector<std::pair<double, std::int64_t>> sizes;
  for (std::int64_t e = 0; e < values.shape().elements(); ++e) {
    if (values[e] != 0.0) sizes.emplace_back(std::fabs(values[e]), e);
  }
  if (sizes.size() < which) return;
  const auto chosen = sizes.begin() + static_cast<std::ptrdiff_t>(which) - 1;
  std::nth_element(sizes.begin(), chosen, sizes.end());
  const Value& value = program_.value(id);
  store_element(data(value.storage) + value.offset_bytes, value.spec, chosen->second, -values[chosen->second]);
}

namespace {

bool take_choices(const OpCall& op, const TextbookMachine::Choices& choices, std::vector<HostTensor>& outputs) {
  bool any = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto chosen = choices.find(op.outputs[i]);
    if (chosen == choices.end()) continue;
    any = true;
    for (std::size_t e = 0; e < chosen->second.size(); ++e)
      outputs[i].set(static_cast<std::int64_t>(e), chosen->second[e]);
  }
  return any;
}

}  // namespace

TextbookMachine::Choices choices_of(const Program& program, const LeftValues& run) {
  TextbookMachine::Choices choices;
  for (const OpCall& op : program.ops()) {
    // The integers of quantize_blocks are scales, computed from its input as floats are.
    if (!definition(op.kind).reads_written(op) || op.kind == quantize_blocks_kind) continue;
    for (const ValueId output : op.outputs) {
      if (is_float(program.spec(output).dtype)) continue;
      if (const std::optional<TensorView> chosen = run(output))
        chosen->read(0, choices.emplace(output, chosen->shape().elements()).first->second);
    }
  }
  return choices;
}

void TextbookMachine::run_op(int index, std::optional<Disturbance> disturb, const Choices& choices) {
  const OpCall& op = program_.op(index);
  std::vector<TensorView> inputs;
  for (const ValueId id : op.inputs) inputs.push_back(view(id));
  const std::vector<TensorSpec> outputs = specs_of(program_, op.outputs);
  // All outputs are evaluated before any is stored: an update overwrites what the other outputs still read.
  std::vector<HostTensor> results = textbook_outputs({op, inputs, outputs}, disturb);
  if (take_choices(op, choices, results)) {  // dependent outputs follow from the copied ones
    const std::vector<HostTensor> first = std::move(results);
    results = textbook_outputs({op, inputs, outputs, views_of(first)}, disturb);
    take_choices(op, choices, results);
  }
  for (std::size_t output = 0; output < results.size(); ++output) {
    const Value& value = program_.value(op.outputs[output]);
    std::byte* base = data(value.storage) + value.offset_bytes;
    const HostTensor& result = results[output];  // same type: its bits are copied
    if (value.spec.layout.is_row_major(value.spec.shape)) {
      std::ranges::copy(result.bytes, base);
      continue;
    }
    for (std::int64_t e = 0; e < result.elements(); ++e)
      store_bits(value.spec.dtype, base, value.spec.layout.offset(value.spec.shape, e),
                 load_bits(value.spec.dtype, result.bytes.data(), e));
  }
}

TensorView TextbookMachine::view(ValueId id) const {
  const Value& value = program_.value(id);
  return {value.spec, memory_[static_cast<std::size_t>(value.storage.index)].data() + value.offset_bytes};
}

namespace {

/// The error of a tensor: its 2-norm, and the effective number of elements, (sum e^2)^2 / sum e^4: all if they are
/// alike, 1 if one has the whole error.
struct Error {
  double norm = 0.0;
  double elements = 1.0;
};

/// 0 where both are NaN, as the loss of a batch without labels, or the same infinity. The check rejects steps with
/// other NaNs before.
double error_between(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)) ? 0.0 : a - b; }

Error error_of(const TensorView& got, const TensorView& want) {
  double squares = 0.0, fourths = 0.0;
  for (std::int64_t e = 0; e < want.shape().elements(); ++e) {
    const double apart = error_between(got[e], want[e]), square = apart * apart;
    squares += square;
    fourths += square * square;
  }
  const bool tells = fourths > 0.0 && std::isfinite(fourths);
  return {std::sqrt(squares), tells ? squares * squares / fourths : 1.0};
}

/// See end_to_end.h.
double rarely_smaller(double degrees) { return std::min(10.0, std::pow(10.0, 2.0 / degrees)); }

/// How runs differ from each other, by two vectors that are independent if the runs are, without their common part: (r1
/// - r2) / sqrt 2 and (r1 + r2 - 2 r3) / sqrt 6.
struct Variation {
  double size = 0.0;     ///< the root of the mean of their squared norms
  double degrees = 1.0;  ///< a lower bound of the degrees of freedom, right nine times in ten
};

/// For normal vectors u, v with d degrees of freedom, a = |u|^2, b = |v|^2, c = u v: (a - b)^2 + 4 c^2 has mean 8 d,
/// and ((a + b) / 2)^2 has mean d^2 + d. The former is about exponential: one time in ten it is less than a tenth of
/// its mean, and d looks ten times too large.
Variation variation_of(const TensorView& r1, const TensorView& r2, const TensorView& r3) {
  double a = 0.0, b = 0.0, c = 0.0;
  const std::int64_t elements = r1.shape().elements();
  for (std::int64_t e = 0; e < elements; ++e) {
    const double u = error_between(r1[e], r2[e]) / std::numbers::sqrt2;
    const double v = (error_between(r1[e], r3[e]) + error_between(r2[e], r3[e])) / std::sqrt(6.0);
    a += u * u;
    b += v * v;
    c += u * v;
  }
  const double apart = (a - b) * (a - b) + 4.0 * c * c;
  const double degrees = (2.0 * (a + b) * (a + b) / apart - 1.0) / 10.0;
  const auto most = static_cast<double>(std::max<std::int64_t>(elements, 1));
  return {std::sqrt((a + b) / 2.0), degrees > 1.0 ? std::min(degrees, most) : 1.0};  // 0 / 0 gives 1
}

double largest_difference(const TensorView& a, const TensorView& b) {
  double largest = 0.0;
  for (std::int64_t e = 0; e < a.shape().elements(); ++e)
    largest = std::max(largest, std::fabs(error_between(a[e], b[e])));
  return largest;
}

double norm(const TensorView& a) {
  double sum = 0.0;
  for (std::int64_t e = 0; e < a.shape().elements(); ++e) sum += a[e] * a[e];
  return std::sqrt(sum);
}

}  // namespace

double textbook_flop(const Program& program) {
  double flop = 0.0;
  for (const OpCall& call : program.ops()) flop += textbook_flop(program, call);
  return flop;
}

CorrectRuns::CorrectRuns(const Program& program, const Start& start, Phase first, TextbookMachine::Choices choices,
                         std::uint64_t round)
    : program_(program),
      wide_(widen(program)),
      first_(first),
      choices_(std::move(choices)),
      exact_(wide_),
      before_(wide_),
      disturbed_(disturbed_runs, TextbookMachine(program)) {
  const auto run = [&](TextbookMachine& machine, std::optional<Disturbance> disturb) {
    start(machine);
    if (first_ == Phase::setup) machine.run(Phase::setup, disturb, choices_);
    machine.run(Phase::timed, disturb, choices_);
  };
  std::vector<std::future<void>> runs;
  for (std::uint64_t i = 0; i < disturbed_runs; ++i)
    runs.push_back(std::async(std::launch::async, run, std::ref(disturbed_[i]), round * disturbed_runs + i + 1));
  run(exact_, {});
  start(before_);
  for (std::future<void>& one : runs) one.get();
}

bool CorrectRuns::is_given(ValueId id) const {
  const Value& value = program_.value(id);
  return value.source ||
         (first_ == Phase::timed && value.producer && program_.op(*value.producer).phase == Phase::setup);
}

EndToEndResult CorrectRuns::compare(ValueId id, const TensorView& got) const {
  const TensorSpec& spec = program_.spec(id);
  const TensorView want = exact_.view(id);
  Error worst;
  for (const TextbookMachine& run : disturbed_) {
    const Error error = error_of(run.view(id), want);
    if (error.norm > worst.norm) worst = error;
  }
  const Variation variation = variation_of(disturbed_[0].view(id), disturbed_[1].view(id), disturbed_[2].view(id));
  double allowed = 2.0 * std::max(rarely_smaller(worst.elements) * worst.norm,
                                  worst.norm + (rarely_smaller(variation.degrees) - 1.0) * variation.size);
  if (const auto old = program_.value(id).updates; spec.role == Role::parameter && old && is_given(*old)) {
    const double step = largest_difference(want, before_.view(*old));
    allowed = std::hypot(allowed, 2.0 * step * std::sqrt(steps_the_other_way));
  }
  return {spec.name, spec.role, norm(want), error_of(got, want).norm, allowed};
}

std::vector<EndToEndResult> CorrectRuns::compare(const LeftValues& real) const {
  std::vector<EndToEndResult> results;
  for (int i = 0; i < static_cast<int>(program_.values().size()); ++i) {
    const ValueId id{i};
    if (!program_.survives(id) || !is_float(program_.spec(id).dtype)) continue;
    if (const std::optional<TensorView> got = real(id)) results.push_back(compare(id, *got));
  }
  return results;
}

std::vector<EndToEndResult> end_to_end(const Program& program, std::string_view case_key, std::uint64_t seed,
                                       const LeftValues& real) {
  const auto start = [&](TextbookMachine& machine) { machine.fill_sources(case_key, seed, program); };
  return CorrectRuns(program, start, Phase::setup, choices_of(program, real)).compare(real);
}

}  // namespace gpubench
