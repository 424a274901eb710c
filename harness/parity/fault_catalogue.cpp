#include "harness/parity/fault_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/parity/compare_elements.h"
#include "harness/parity/exact_data.h"
#include "harness/parity/faults.h"
#include "harness/parity/on_threads.h"
#include "harness/parity/rounding.h"
#include "harness/parity/sample.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {
namespace {

enum Family : std::size_t {
  unwritten_run,
  nan_element,
  infinite_element,
  zeros,
  signs,
  doubled,
  exponent_bit,
  lower_bit,
  lanes,
  scaled,
  stale_run,
  neighbours,
  shifted,
  one_rank,
  cut_store,
  narrow_store,
  split_sum,
  call_fault,  ///< the first of CallFault; the others follow in its order
  unstable_form = call_fault + enum_names<CallFault>.size(),
  another_formula,
  nan_lost,  ///< SpecialKind follows in its order
  infinity_lost,
  zeros_ignored,
  denormals_flushed,
  constants_ignored
};

constexpr FaultFamily of(CallFault fault) {
  return {name(fault), fault < CallFault::wrong_constant ? "operand" : "constant"};
}

constexpr std::array families{
    FaultFamily{"a run of 32 elements unwritten", "memory", true, CheckRule::poison},
    FaultFamily{"one element is NaN", "memory", true},
    FaultFamily{"one element is infinite", "memory", true},
    FaultFamily{"all zeros", "memory", true},
    FaultFamily{"all signs flipped", "memory", true},
    FaultFamily{"all doubled", "memory"},
    FaultFamily{"top bit of one exponent flipped", "memory"},
    FaultFamily{"a lower bit of one element flipped", "memory"},
    FaultFamily{"three bits of every 32nd element flipped", "memory"},
    FaultFamily{"all scaled by 1 + 2^-k", "memory"},
    FaultFamily{"a run of 32 elements of another result", "memory"},
    FaultFamily{"two neighbours swapped", "memory"},
    FaultFamily{"all shifted by one element", "memory"},
    FaultFamily{"one rank differs in one bit", "memory", true, CheckRule::identical},
    FaultFamily{"stored toward zero", "store"},
    FaultFamily{"rounded to a narrower type first", "store"},
    FaultFamily{"sum kept in 16 bits", "store"},
    of(CallFault::operand_left_out),
    of(CallFault::end_left_out),
    of(CallFault::end_doubled),
    of(CallFault::ends_swapped),
    of(CallFault::operand_shifted),
    of(CallFault::axes_swapped),
    of(CallFault::axis_reversed),
    of(CallFault::operand_narrower),
    of(CallFault::one_sign),
    of(CallFault::wrong_index),
    of(CallFault::wrong_constant),
    of(CallFault::wrong_epsilon),
    of(CallFault::wrong_switch),
    of(CallFault::wrong_geometry),
    FaultFamily{"formula that cancels, overflows or saturates", "formula", true},
    FaultFamily{"another formula", "formula"},
    FaultFamily{"NaN of an operand lost", "special data", true},
    FaultFamily{"infinity of an operand lost", "special data", true},
    FaultFamily{"zeros, and the result of other data", "special data"},
    FaultFamily{"denormals taken for zeros", "special data"},
    FaultFamily{"constants, and the result of other data", "special data"},
};
static_assert(families.size() == constants_ignored + 1);

constexpr std::int64_t marked_elements = 32;
constexpr std::int64_t lane_stride = 32;
constexpr int chunks_of_a_sum = 8;

using Outputs = std::optional<std::vector<HostTensor>>;

struct Fault {
  Family family;
  std::string name;
  std::function<Outputs()> leave;
  bool has_poison = true;  ///< of an output: no correct result looks like its poison
};

int explicit_fraction_bits(DType type) { return static_cast<int>(-std::log2(unit_roundoff(type))) - 1; }

class Injector {
 public:
  Injector(const Program& program, int op, const OpView& clean, const JudgePolicy& policy,
           const std::function<void()>& alive)
      : program_(program), op_(op), call_(program.op(op)), policy_(policy), alive_(alive) {
    for (const TensorView& input : clean.inputs) inputs_.emplace_back(input);
    for (const TensorView& output : clean.outputs) {
      outputs_.emplace_back(output);
      output_specs_.push_back(outputs_.back().spec);
    }
    input_views_ = views_of(inputs_);
    output_views_ = views_of(outputs_);
    for (int i = 0; i < static_cast<int>(outputs_.size()); ++i)
      truth_.push_back(expected_output({call_, input_views_, output_specs_, output_views_, policy_.sums.exact}, i));
  }

  std::vector<FaultTrial> run() {
    for (std::size_t i = 0; i < outputs_.size(); ++i) corrupt(i);
    different_ranks();
    split_sums();
    call_wrongly();
    for (std::size_t i = 0; i < outputs_.size(); ++i) compute_otherwise(i);
    for (UnstableForm& form : unstable_forms(call_, inputs_, outputs_))
      add(unstable_form, std::string(form.name), [left = std::move(form.left)] { return left; });
    return try_all();
  }

  std::vector<FaultTrial> run(Family family, std::string name, const std::vector<HostTensor>& left) {
    add(family, std::move(name), [&left] { return left; });
    return try_all();
  }
  /// Why the check wrongly rejects correct outputs, or wrongly accepts ones without a right answer (argmax of numbers
  /// with a NaN); empty where its verdict is right.
  [[nodiscard]] std::string alarm() const {
    const OpParity parity = judge(program_, op_, {views_of(inputs_), views_of(outputs_)}, policy_, "check");
    if (is_rejected(parity.verdict) != has_answer()) return "";
    return has_answer() ? parity.reason : "accepted, though no answer is right";
  }

 private:
  void add(Family family, std::string name, std::function<Outputs()> leave) {
    faults_.push_back({family, std::move(name), std::move(leave)});
  }

  static std::string name_of(const std::string& detail, const HostTensor& tensor) {
    return fmt::format("{}{}'{}'", detail, detail.empty() ? "" : " of ", tensor.spec.name);
  }

  void on_output(Family family, std::size_t i, const std::string& detail, std::function<void(HostTensor&)> change) {
    add(family, name_of(detail, outputs_[i]), [this, i, change = std::move(change)]() -> Outputs {
      std::vector<HostTensor> left = outputs_;
      change(left[i]);
      return left;
    });
    faults_.back().has_poison = !poison_is_ambiguous(outputs_[i].spec.dtype);
  }

  void corrupt(std::size_t i) {
    const HostTensor& output = outputs_[i];
    const DType type = output.spec.dtype;
    const std::int64_t count = output.elements();
    if (count == 0) return;
    const std::int64_t middle = static_cast<std::int64_t>(mix(policy_.seed + i) % static_cast<std::uint64_t>(count));
    const std::int64_t first = std::min(middle, std::max<std::int64_t>(0, count - marked_elements));
    const std::int64_t last = std::min(count, first + marked_elements);
    on_output(unwritten_run, i, "", [=](HostTensor& t) {
      for (std::int64_t e = first; e < last; ++e) store_poison(t.spec.dtype, t.bytes.data(), e);
    });
    on_output(stale_run, i, "", [=](HostTensor& t) {
      const HostTensor right = t;
      for (std::int64_t e = first; e < last; ++e) t.set(e, right.get((e + count / 2 + 1) % count));
    });
    const auto each = [](auto change) {
      return [change](HostTensor& t) {
        for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, change(t.get(e)));
      };
    };
    on_output(zeros, i, "", each([](double) { return 0.0; }));
    on_output(neighbours, i, "", [=](HostTensor& t) {
      const std::int64_t next = (middle + 1) % count;
      const double held = t.get(middle);
      t.set(middle, t.get(next));
      t.set(next, held);
    });
    on_output(shifted, i, "", [=](HostTensor& t) { read_from(t, [=](std::int64_t e) { return (e + 1) % count; }); });
    if (!is_float(type)) return;
    on_output(signs, i, "", each([](double v) { return -v; }));
    on_output(doubled, i, "", each([](double v) { return 2.0 * v; }));
    if (type != DType::f4_e2m1) {
      on_output(nan_element, i, "", [=](HostTensor& t) { t.set(middle, std::numeric_limits<double>::quiet_NaN()); });
      if (type != DType::f8_e4m3)
        on_output(infinite_element, i, "",
                  [=](HostTensor& t) { t.set(middle, std::numeric_limits<double>::infinity()); });
    }
    on_output(exponent_bit, i, "", [=](HostTensor& t) { t.flip(middle, std::uint64_t{1} << (bits_of(type) - 2)); });
    const int fraction = explicit_fraction_bits(type);
    for (int bit = fraction; bit >= 0; --bit)
      on_output(lower_bit, i, fmt::format("bit {}", bit),
                [=](HostTensor& t) { t.flip(middle, std::uint64_t{1} << bit); });
    for (int bit = fraction - 2; bit >= 0; --bit) {
      on_output(lanes, i, fmt::format("bits {} to {}", bit, bit + 2), [=](HostTensor& t) {
        for (std::int64_t e = middle % lane_stride; e < count; e += lane_stride) t.flip(e, std::uint64_t{7} << bit);
      });
    }
    for (int k = 1; k <= fraction; ++k)
      on_output(scaled, i, fmt::format("k = {}", k), each([k](double v) { return v * (1.0 + std::ldexp(1.0, -k)); }));
    store_wrongly(i, type);
  }

  void from_truth(Family family, std::size_t i, const std::string& detail, std::function<double(double)> rounded) {
    on_output(family, i, detail, [this, i, rounded = std::move(rounded)](HostTensor& t) {
      for (std::size_t e = 0; e < truth_[i].size(); ++e)
        t.set(static_cast<std::int64_t>(e), rounded(truth_[i][e].value));
    });
  }

  void store_wrongly(std::size_t i, DType type) {
    from_truth(cut_store, i, "", [type](double v) { return toward_zero(type, v); });
    if (type == DType::f32 || type == DType::f64) {
      for (const DType narrow : {DType::bf16, DType::f16})
        from_truth(narrow_store, i, std::string(name(narrow)), [narrow](double v) { return round_to(narrow, v); });
    } else {  // twice: to two more bits than the type's, then to the type
      const int bits = explicit_fraction_bits(type) + 3;
      from_truth(narrow_store, i, fmt::format("{} bits", bits), [bits](double v) { return with_bits(bits, v); });
    }
  }

  void different_ranks() {
    for (const std::vector<int>& group : definition(call_.kind).identical_outputs(call_)) {
      if (group.size() < 2) continue;
      const auto last = static_cast<std::size_t>(group.back());
      on_output(one_rank, last, "", [](HostTensor& t) { t.flip(t.elements() / 2, 1); });
    }
  }

  void call_wrongly() {
    for (WrongCall& wrong : wrong_calls(call_, specs_of(inputs_), output_specs_)) {
      add(static_cast<Family>(call_fault + static_cast<std::size_t>(wrong.fault)), std::move(wrong.detail),
          [this, call = std::move(wrong.call), i = wrong.input, change = std::move(wrong.change)]() -> Outputs {
            std::vector<HostTensor> inputs = inputs_;
            if (change) {
              change(inputs[i]);
              if (inputs[i].bytes == inputs_[i].bytes) return {};
            }
            return computed(call, inputs);
          });
    }
  }

  void compute_otherwise(std::size_t i) {
    std::vector<std::int64_t> places(truth_[i].size());
    std::iota(places.begin(), places.end(), 0);
    for (OtherFormula& other :
         other_formulas({call_, input_views_, output_specs_, output_views_, policy_.sums.exact}, static_cast<int>(i))) {
      on_output(another_formula, i, other.name, [places, values = std::move(other.values)](HostTensor& t) {
        const std::vector<Expected> expected = values(places);
        for (const std::int64_t e : places) t.set(e, expected[static_cast<std::size_t>(e)].value);
      });
    }
  }

  /// The textbook's outputs for another call or other operands; nothing where the op refuses these.
  Outputs computed(const OpCall& call, const std::vector<HostTensor>& inputs) const {
    try {
      return textbook_outputs({call, views_of(inputs), output_specs_});
    } catch (const ProgramError&) {
      return {};
    }
  }

  /// Splits the first operand of a linear op; the parts' sums are rounded, and so is their total.
  void split_sums() {
    if (inputs_.empty() || !is_float(inputs_[0].spec.dtype) || call_.math.split_k_in_output) return;
    const std::vector<TensorSpec> input_specs = specs_of(inputs_);
    if (definition(call_.kind).linear_axes({call_, input_specs, output_specs_}, 0).empty()) return;
    for (const DType narrow : {DType::bf16, DType::f16}) {
      if (call_.math.accumulate == narrow) continue;
      for (int axis = 0; axis < inputs_[0].spec.shape.rank(); ++axis) {
        if (inputs_[0].spec.shape[axis] < chunks_of_a_sum) continue;
        add(split_sum, fmt::format("{} along axis {} of '{}'", name(narrow), axis, inputs_[0].spec.name),
            [this, narrow, axis] { return summed_in(narrow, axis); });
      }
    }
  }

  Outputs summed_in(DType narrow, int axis) const {
    const AxisView along(inputs_[0].spec.shape, axis);
    std::vector<TensorSpec> wide = output_specs_;
    for (TensorSpec& spec : wide) spec.dtype = is_float(spec.dtype) ? DType::f64 : spec.dtype;
    std::vector<HostTensor> nothing = inputs_;
    for (std::int64_t e = 0; e < nothing[0].elements(); ++e) nothing[0].set(e, 0.0);
    const std::vector<HostTensor> rest = textbook_outputs({call_, views_of(nothing), wide});  // a bias
    std::vector<double> sums(truth_[0].size(), 0.0);
    std::vector<int> summands(sums.size(), 0);
    for (int chunk = 0; chunk < chunks_of_a_sum; ++chunk) {
      std::vector<HostTensor> inputs = inputs_;
      for (std::int64_t at = 0; at < along.extent; ++at) {
        if (at * chunks_of_a_sum / along.extent != chunk)
          along.each(at, [&](std::int64_t e) { inputs[0].set(e, 0.0); });
      }
      const std::vector<HostTensor> part = textbook_outputs({call_, views_of(inputs), wide});
      for (std::size_t e = 0; e < sums.size(); ++e) {
        const auto at = static_cast<std::int64_t>(e);
        const double value = part[0].get(at) - rest[0].get(at);
        summands[e] += value != 0.0 ? 1 : 0;
        sums[e] = round_to(narrow, sums[e] + round_to(narrow, value));
      }
    }
    const auto summed = [](int parts) { return parts > 1; };
    if (std::none_of(summands.begin(), summands.end(), summed)) return {};  // the axis is not summed
    std::vector<HostTensor> left = outputs_;
    for (std::size_t e = 0; e < sums.size(); ++e) {
      const auto at = static_cast<std::int64_t>(e);
      left[0].set(at, sums[e] + rest[0].get(at));
    }
    return left;
  }

  std::vector<FaultTrial> try_all() const {
    std::vector<std::optional<FaultTrial>> trials(faults_.size());
    const std::thread::id calling = std::this_thread::get_id();
    on_threads(policy_.threads, std::ssize(faults_), [&](std::int64_t fault) {
      const auto i = static_cast<std::size_t>(fault);
      if (alive_ && std::this_thread::get_id() == calling) alive_();
      trials[i] = try_one(faults_[i]);
    });
    std::vector<FaultTrial> tried;
    for (std::optional<FaultTrial>& trial : trials) {
      if (trial) tried.push_back(std::move(*trial));
    }
    return tried;
  }

  std::optional<FaultTrial> try_one(const Fault& fault) const {
    const Outputs left = fault.leave();
    if (!left) return {};
    FaultTrial trial{fault.family, fault.name, families[fault.family].rule};
    bool changed = false;
    const std::vector<std::vector<Expected>> own = expected_of(*left);
    const std::vector<std::vector<Expected>>& truth = own.empty() ? truth_ : own;
    for (std::size_t i = 0; i < left->size(); ++i) {
      const HostTensor& output = (*left)[i];
      for (std::int64_t e = 0; e < output.elements(); ++e) {
        const double got = output.get(e);
        const Expected& expected = truth[i][static_cast<std::size_t>(e)];
        const bool is_same = got == outputs_[i].get(e) || got == round_to(output.spec.dtype, expected.value);
        changed = changed || !is_same;
        if (is_same && own.empty()) continue;  // judged on written outputs, its right value may change
        trial.size = std::max(trial.size, error_over_bound(expected, output.spec.dtype, got));
      }
    }
    if (fault.family == unwritten_run) {
      trial.size = std::numeric_limits<double>::infinity();
      if (!fault.has_poison) trial.rule = CheckRule::bound;
    }
    // Exact numbers make one wrong bit exceed the bound too.
    if (fault.family == one_rank && trial.size > 1.0) trial.rule = CheckRule::bound;
    if (!changed && fault.family != unwritten_run && fault.family != one_rank) return {};
    JudgePolicy policy = policy_;
    policy.threads = 1;
    const std::vector<TensorView> inputs = views_of(inputs_);
    const std::vector<TensorView> written = views_of(*left);
    trial.caught_by = rule_of(judge(program_, op_, {inputs, written}, policy, "check"), written);
    return trial;
  }

  /// The right values of outputs that are judged on written ones; empty for others, whose right values don't change.
  [[nodiscard]] std::vector<std::vector<Expected>> expected_of(const std::vector<HostTensor>& left) const {
    std::vector<std::vector<Expected>> expected;
    if (!definition(call_.kind).reads_written(call_)) return expected;
    const std::vector<TensorView> inputs = views_of(inputs_);
    const std::vector<TensorView> written = views_of(left);
    for (int i = 0; i < static_cast<int>(outputs_.size()); ++i)
      expected.push_back(expected_output({call_, inputs, output_specs_, written, policy_.sums.exact}, i));
    return expected;
  }

  [[nodiscard]] bool has_answer() const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (!is_float(outputs_[i].spec.dtype) &&
          std::ranges::any_of(truth_[i], [](const Expected& expected) { return std::isnan(expected.value); }))
        return false;
    }
    return true;
  }

  static CheckRule rule_of(const OpParity& parity, std::span<const TensorView> written) {
    if (!is_rejected(parity.verdict)) return CheckRule::none;
    const auto is_unwritten = [](const TensorView& output) { return scan(output, 0).unwritten > 0; };
    if (std::ranges::any_of(written, is_unwritten)) return CheckRule::poison;
    return parity.bad > 0 ? CheckRule::bound : CheckRule::identical;
  }

  const Program& program_;
  int op_;
  const OpCall& call_;
  const JudgePolicy& policy_;
  const std::function<void()>& alive_;
  std::vector<HostTensor> inputs_, outputs_;
  std::vector<TensorView> input_views_, output_views_;
  std::vector<TensorSpec> output_specs_;
  std::vector<std::vector<Expected>> truth_;
  std::vector<Fault> faults_;
};

}  // namespace

std::span<const FaultFamily> fault_families() { return families; }

namespace {

bool is_same_fault(const FaultTrial& a, const FaultTrial& b) { return a.family == b.family && a.name == b.name; }

/// A launch on other data, which every run has too (CaseCheck::further_launches).
struct OtherLaunch {
  std::string_view data;
  std::vector<HostTensor> inputs;
  SumsOfData sums;
};

std::vector<OtherLaunch> other_launches(const CallSpecs& op, std::span<const HostTensor> usual, std::uint64_t seed) {
  std::vector<OtherLaunch> all;
  if (std::optional<ExactData> data = exact_data(op, seed))
    all.push_back({"exact data", std::move(data->inputs), {true, data->multiple_of}});
  for (const RevealingData& data : definition(op.call.kind).revealing_data(op)) {
    OtherLaunch launch{data.name, {usual.begin(), usual.end()}, sums_of(data)};
    for (const RevealingData::Input& input : data.inputs) fill(launch.inputs[input.index], input);
    all.push_back(std::move(launch));
  }
  return all;
}

}  // namespace

FaultReport inject_faults(const Program& program, int op, const OpView& clean, const JudgePolicy& policy,
                          const std::function<void()>& alive) {
  FaultReport report{Injector(program, op, clean, policy, alive).run(), {}};
  const std::vector<HostTensor> inputs(clean.inputs.begin(), clean.inputs.end());
  const OpCall& call = program.op(op);
  const std::vector<TensorSpec> input_specs = specs_of(program, call.inputs),
                                output_specs = specs_of(program, call.outputs);
  for (const OtherLaunch& launch : other_launches({call, input_specs, output_specs}, inputs, policy.seed)) {
    const std::vector<HostTensor> right = textbook_outputs({call, views_of(launch.inputs), output_specs});
    JudgePolicy on_these = policy;
    on_these.sums = launch.sums;
    const std::vector<TensorView> given = views_of(launch.inputs), left = views_of(right);
    Injector injector(program, op, {given, left}, on_these, alive);
    if (const std::string alarm = injector.alarm(); !alarm.empty())
      report.alarms.push_back(fmt::format("{}: {}", launch.data, alarm));
    for (FaultTrial& trial : injector.run()) {
      const auto known =
          std::ranges::find_if(report.trials, [&](const FaultTrial& one) { return is_same_fault(one, trial); });
      if (known == report.trials.end()) {
        report.trials.push_back(std::move(trial));
      } else if (known->caught_by != known->rule && trial.caught_by == trial.rule) {
        known->caught_by = known->rule;
      }
    }
  }
  for (const SpecialData& data : special_data(program.op(op), inputs, specs_of(program, program.op(op).outputs))) {
    const std::vector<TensorView> special = views_of(data.inputs), right = views_of(data.right);
    Injector injector(program, op, {special, right}, policy, alive);
    if (const std::string alarm = injector.alarm(); !alarm.empty())
      report.alarms.push_back(
          fmt::format("{}{}{}: {}", name(data.kind), data.name.empty() ? "" : " in ", data.name, alarm));
    const auto family = static_cast<Family>(nan_lost + static_cast<std::size_t>(data.kind));
    for (FaultTrial& trial : injector.run(family, data.name.empty() ? "all operands" : data.name, data.wrong))
      report.trials.push_back(std::move(trial));
  }
  return report;
}

}  // namespace gpubench
