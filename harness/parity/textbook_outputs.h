// The textbook's results for whole outputs, in separate memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "harness/core/program.h"
#include "harness/core/tensor.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// A tensor on the host, row-major.
struct HostTensor {
  explicit HostTensor(const TensorSpec& like);
  /// A copy, bit for bit, of a tensor in any layout.
  explicit HostTensor(const TensorView& other);

  /// The tensor must outlive it.
  [[nodiscard]] TensorView view() const { return {spec, bytes.data()}; }
  [[nodiscard]] double get(std::int64_t linear) const { return load(spec.dtype, bytes.data(), linear); }
  /// Rounds as store() does.
  void set(std::int64_t linear, double value) { store(spec.dtype, bytes.data(), linear, value); }
  void flip(std::int64_t linear, std::uint64_t mask) { flip_bits(spec.dtype, bytes.data(), linear, mask); }
  [[nodiscard]] std::int64_t elements() const { return spec.shape.elements(); }

  TensorSpec spec;
  std::vector<std::byte> bytes;
};

/// Sets each element to the one at place(logical linear index).
void read_from(HostTensor& tensor, const std::function<std::int64_t(std::int64_t)>& place);

void fill(HostTensor& tensor, const RevealingData::Input& input);

/// Elements of a tensor along one axis: `outer` blocks of `extent` slices of `inner` elements.
struct AxisView {
  AxisView(const Shape& shape, int axis) : extent(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  [[nodiscard]] std::int64_t element(std::int64_t o, std::int64_t at, std::int64_t i) const {
    return (o * extent + at) * inner + i;
  }
  template <class Visit>
  void each(std::int64_t at, const Visit& visit) const {
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) visit(element(o, at, i));
    }
  }
  [[nodiscard]] std::int64_t at(std::int64_t linear) const { return linear / inner % extent; }
  /// With the axis reversed; shifted() moves `by` places along it, cyclically.
  [[nodiscard]] std::int64_t reversed(std::int64_t linear) const {
    return linear + (extent - 1 - 2 * at(linear)) * inner;
  }
  [[nodiscard]] std::int64_t shifted(std::int64_t linear, std::int64_t by) const {
    return linear + ((at(linear) + by) % extent - at(linear)) * inner;
  }
  std::int64_t outer = 1, extent, inner = 1;
};

/// The operands of a list that get faults: the first seven and the last.
[[nodiscard]] std::vector<std::size_t> some_operands(std::size_t count);

[[nodiscard]] std::vector<TensorView> views_of(std::span<const HostTensor> tensors);
[[nodiscard]] std::vector<TensorSpec> specs_of(std::span<const TensorView> tensors);
[[nodiscard]] std::vector<TensorSpec> specs_of(std::span<const HostTensor> tensors);
[[nodiscard]] std::vector<double> values_of(const TensorView& tensor);
[[nodiscard]] CheckUnits units_of(const Operands& operands, int output);

/// fp64 operations for all outputs of the op, approximately.
[[nodiscard]] double textbook_flop(const Program& program, const OpCall& call);

/// The operands with another call and other inputs.
[[nodiscard]] inline Operands replaced(const Operands& operands, const OpCall& call,
                                       std::span<const TensorView> inputs) {
  return {call, inputs, operands.outputs, operands.written, operands.exact_sums, operands.sparse};
}

/// The expected values of elements of an output, given by logical linear indices in any order.
[[nodiscard]] std::vector<Expected> expected_elements(const Operands& operands, int output,
                                                      std::span<const std::int64_t> elements);

/// The same for permuted elements: each is expected to be the one at place(element).
[[nodiscard]] std::vector<Expected> expected_elsewhere(const Operands& operands, int output,
                                                       std::span<const std::int64_t> elements,
                                                       const std::function<std::int64_t(std::int64_t)>& place);

[[nodiscard]] std::vector<Expected> expected_output(const Operands& operands, int output);

/// The error of a correct but imperfect backend: each element moves by a random part of its bound.
struct Disturbance {
  // NOLINTNEXTLINE(google-explicit-constructor)
  Disturbance(std::uint64_t seed, double most = 1.0, bool kinks = true) : seed(seed), most(most), kinks(kinks) {}
  std::uint64_t seed;  ///< of the random numbers, at least 1
  double most;         ///< the largest part of its bound that an element moves by
  bool kinks;          ///< of a program: whether an element next to a kink of a gradient moves to its other side
};

/// The outputs of the op, moved first by `disturb`, then rounded to their types. If an output depends on another and
/// nothing is `written`, it is computed from the rounded one.
[[nodiscard]] std::vector<HostTensor> textbook_outputs(const Operands& operands,
                                                       std::optional<Disturbance> disturb = {});

}  // namespace gpubench
