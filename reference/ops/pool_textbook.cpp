// Maxima and their indices are exact; among equal elements any index is correct. Means and gradients are Rule G.
#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/pool.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

// Neighbouring channels at one position of an image [n, h, w, c].
struct Run {
  std::int64_t n = 0, h = 0, w = 0, c = 0;
  std::size_t count = 0;  // of `wanted`, from the front
};

Run run_of(const Shape& image, std::span<const std::int64_t> wanted) {
  const std::int64_t position = wanted.front() / image[3];
  Run run{position / (image[1] * image[2]), position / image[2] % image[1], position % image[2],
          wanted.front() % image[3], 1};
  while (run.count < wanted.size() && wanted[run.count] / image[3] == position &&
         wanted[run.count] - wanted.front() == static_cast<std::int64_t>(run.count)) {
    ++run.count;
  }
  return run;
}

template <class Judge>
void for_each_run(const Shape& image, std::span<const std::int64_t> wanted, std::span<Expected> judged, Judge judge) {
  while (!wanted.empty()) {
    const Run run = run_of(image, wanted);
    judge(run, judged.first(run.count));
    wanted = wanted.subspan(run.count);
    judged = judged.subspan(run.count);
  }
}

template <const OpKind& op_kind, bool forward>
class PoolDefinition : public DefinitionOf<op_kind> {
 public:
  // One comparison or addition per element of each window.
  Cost cost(const CallSpecs& op) const override {
    const PoolExtents e = extents(op.call, forward ? op.inputs[0].shape : op.outputs[0].shape);
    const auto taps = static_cast<double>(e.vertical.window * e.horizontal.window);
    return {static_cast<double>(e.output().elements()) * taps, op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const auto& [h, w] = window(op.call);
    const Shape& shape = op.output(output).shape;
    return {shape.elements(), 1, (1.0 + strided_read_flop) * static_cast<double>(h * w), image_landmarks(shape)};
  }

 protected:
  static PoolExtents extents(const OpCall& call, const Shape& x) {
    return pool_extents(op_kind, call.attributes.as<Pool>(), x);
  }
  static std::pair<std::int64_t, std::int64_t> window(const OpCall& call) {
    const Pool& pool = call.attributes.as<Pool>();
    return {pool.window_h, pool.window_w};
  }
  // The most windows that contain one element.
  static std::int64_t max_windows(const OpCall& call) {
    const Pool& pool = call.attributes.as<Pool>();
    const auto along = [](std::int64_t window, std::int64_t stride) { return (window + stride - 1) / stride; };
    return along(pool.window_h, pool.stride_h) * along(pool.window_w, pool.stride_w);
  }
  static double divisor(const Pool& pool, const PoolExtents& e, std::int64_t p, std::int64_t q) {
    const std::int64_t count = pool.counts_padding ? e.vertical.padded_elements(p) * e.horizontal.padded_elements(q)
                                                   : e.vertical.elements(p).size() * e.horizontal.elements(q).size();
    return static_cast<double>(count);
  }
};

class MaxPoolForwardDefinition final : public PoolDefinition<max_pool_forward_kind, true> {
 public:
  std::string bound(const CallSpecs&, int output) const override {
    return std::string(exact_bound) + (output == 1 ? "; any of equal elements" : "");
  }

  [[nodiscard]] bool reads_written(const OpCall&) const override { return true; }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& x = operands.input("x");
    const PoolExtents e = extents(operands.call, x.shape());
    std::vector<double> values;
    std::vector<double> best;
    std::vector<double> index;
    std::vector<double> written;
    for_each_run(e.output(), wanted, judged, [&](const Run& run, std::span<Expected> of_run) {
      values.resize(run.count);
      best.assign(run.count, 0.0);
      index.assign(run.count, -1.0);
      written.assign(run.count, -1.0);
      if (!operands.written.empty()) operands.written[1].read({run.n, run.h, run.w, run.c}, 3, written);
      const PoolAxis::Range rows = e.vertical.elements(run.h), columns = e.horizontal.elements(run.w);
      for (std::int64_t h = rows.begin; h < rows.end; ++h) {
        for (std::int64_t w = columns.begin; w < columns.end; ++w) {
          x.read({run.n, h, w, run.c}, 3, values);
          const std::int64_t tap = (h - e.vertical.first(run.h)) * e.horizontal.window + w - e.horizontal.first(run.w);
          for (std::size_t i = 0; i < run.count; ++i) {
            const bool equal = values[i] == best[i] || (std::isnan(values[i]) && std::isnan(best[i]));
            const bool larger = values[i] > best[i] || (std::isnan(values[i]) && !std::isnan(best[i]));
            if (index[i] >= 0.0 && !larger && !(equal && written[i] == static_cast<double>(tap))) continue;
            best[i] = values[i];
            index[i] = static_cast<double>(tap);
          }
        }
      }
      for (std::size_t i = 0; i < run.count; ++i) of_run[i] = moved(output == 0 ? best[i] : index[i]);
    });
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.input("x");
    if (!dy || !tape.wanted(x)) return;
    const Shape shape = program.spec(x).shape;
    tape.contribute(x, max_pool_backward(program, call.attributes.as<Pool>(), call.math, tape.label(call, "backward"),
                                         *dy, call.outputs[1], shape[1], shape[2]));
  }
};

// Sums over the windows that contain an element of dx.
template <const OpKind& op_kind>
class PoolBackwardDefinition : public PoolDefinition<op_kind, false> {
 public:
  CheckUnits units(const CallSpecs& op, int output) const override {
    CheckUnits units = PoolDefinition<op_kind, false>::units(op, output);
    units.flop_per_unit = 2.0 * (1.0 + strided_read_flop) * static_cast<double>(this->max_windows(op.call));
    return units;
  }

 protected:
  // Calls add(p, q, first element of dy's run) for each window of a run of dx.
  template <class Add>
  static void for_each_window(const PoolExtents& e, const Run& run, Add add) {
    const PoolAxis::Range rows = e.vertical.windows(run.h), columns = e.horizontal.windows(run.w);
    for (std::int64_t p = rows.begin; p < rows.end; ++p) {
      for (std::int64_t q = columns.begin; q < columns.end; ++q) add(p, q);
    }
  }
};

class MaxPoolBackwardDefinition final : public PoolBackwardDefinition<max_pool_backward_kind> {
 public:
  std::string bound(const CallSpecs& op, int) const override {
    const std::string most = std::to_string(max_windows(op.call));
    return sum_error_bound_text("K <= " + most + " windows that chose the element; exact for one", op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView &dy = operands.input("dy"), &index = operands.input("index");
    const PoolExtents e = extents(operands.call, operands.outputs[0].shape);
    const double u = accumulator_roundoff(operands.call.math);
    std::vector<double> gradients;
    std::vector<double> chosen;
    std::vector<ProductSum> sums;
    for_each_run(e.input(), wanted, judged, [&](const Run& run, std::span<Expected> of_run) {
      gradients.resize(run.count);
      chosen.resize(run.count);
      sums.assign(run.count, {});
      for_each_window(e, run, [&](std::int64_t p, std::int64_t q) {
        dy.read({run.n, p, q, run.c}, 3, gradients);
        index.read({run.n, p, q, run.c}, 3, chosen);
        const auto tap =
            static_cast<double>((run.h - e.vertical.first(p)) * e.horizontal.window + run.w - e.horizontal.first(q));
        for (std::size_t i = 0; i < run.count; ++i) {
          if (chosen[i] == tap) sums[i].add(gradients[i]);
        }
      });
      for (std::size_t i = 0; i < run.count; ++i)
        of_run[i] = {sums[i].value, sums[i].terms > 1.0 ? sum_error_bound(sums[i], u) : 0.0};
    });
  }
};

// The division, or a product with a rounded reciprocal, adds 2 u of the quotient.
class AveragePoolForwardDefinition final : public PoolDefinition<average_pool_forward_kind, true> {
 public:
  std::string bound(const CallSpecs& op, int) const override {
    const auto& [h, w] = window(op.call);
    return bound_text("(Rule G: " + sum_error_text(h * w) + ", of fewer at borders, + 2 u |C|) / n", op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& x = operands.input("x");
    const Pool& pool = operands.call.attributes.as<Pool>();
    const PoolExtents e = extents(operands.call, x.shape());
    const double u = accumulator_roundoff(operands.call.math);
    std::vector<double> values;
    std::vector<ProductSum> sums;
    for_each_run(e.output(), wanted, judged, [&](const Run& run, std::span<Expected> of_run) {
      values.resize(run.count);
      sums.assign(run.count, {});
      const PoolAxis::Range rows = e.vertical.elements(run.h), columns = e.horizontal.elements(run.w);
      for (std::int64_t h = rows.begin; h < rows.end; ++h) {
        for (std::int64_t w = columns.begin; w < columns.end; ++w) {
          x.read({run.n, h, w, run.c}, 3, values);
          for (std::size_t i = 0; i < run.count; ++i) sums[i].add(values[i]);
        }
      }
      const double n = divisor(pool, e, run.h, run.w);
      for (std::size_t i = 0; i < run.count; ++i)
        of_run[i] = {sums[i].value / n, (sum_error_bound(sums[i], u) + 2.0 * u * std::fabs(sums[i].value)) / n};
    });
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.input("x");
    if (!dy || !tape.wanted(x)) return;
    const Shape shape = program.spec(x).shape;
    tape.contribute(x, average_pool_backward(program, call.attributes.as<Pool>(), call.math,
                                             tape.label(call, "backward"), *dy, shape[1], shape[2]));
  }
};

class AveragePoolBackwardDefinition final : public PoolBackwardDefinition<average_pool_backward_kind> {
 public:
  std::string bound(const CallSpecs& op, int) const override {
    return bound_text("Rule G: " + sum_error_text(max_windows(op.call)) + " of dy / n, + 2 u sum |dy / n|",
                      op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& dy = operands.input("dy");
    const Pool& pool = operands.call.attributes.as<Pool>();
    const PoolExtents e = extents(operands.call, operands.outputs[0].shape);
    const double u = accumulator_roundoff(operands.call.math);
    std::vector<double> gradients;
    std::vector<double> sizes;
    std::vector<ProductSum> sums;
    for_each_run(e.input(), wanted, judged, [&](const Run& run, std::span<Expected> of_run) {
      gradients.resize(run.count);
      sizes.assign(run.count, 0.0);
      sums.assign(run.count, {});
      for_each_window(e, run, [&](std::int64_t p, std::int64_t q) {
        dy.read({run.n, p, q, run.c}, 3, gradients);
        const double n = divisor(pool, e, p, q);
        for (std::size_t i = 0; i < run.count; ++i) {
          sums[i].add(gradients[i] / n);
          sizes[i] += std::fabs(gradients[i] / n);
        }
      });
      for (std::size_t i = 0; i < run.count; ++i) {
        const double sum_bound = sums[i].terms > 1.0 ? sum_error_bound(sums[i], u) : 0.0;
        of_run[i] = {sums[i].value, sum_bound + 2.0 * u * sizes[i]};
      }
    });
  }
};

}  // namespace

Definitions pool_definitions() {
  return definitions_of<AveragePoolBackwardDefinition, AveragePoolForwardDefinition, MaxPoolBackwardDefinition,
                        MaxPoolForwardDefinition>();
}

}  // namespace gpubench
