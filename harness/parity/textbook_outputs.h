// What the textbook computes for whole outputs, kept in memory of their own.
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
  /// Zeros of that shape and type.
  explicit HostTensor(const TensorSpec& like);
  /// A copy, bit for bit, of a tensor in any layout.
  explicit HostTensor(const TensorView& other);

  /// The tensor must outlive it.
  [[nodiscard]] TensorView view() const { return {spec, bytes.data()}; }
  [[nodiscard]] double get(std::int64_t linear) const { return load(spec.dtype, bytes.data(), linear); }
  /// Rounds as store() does.
  void set(std::int64_t linear, double value) { store(spec.dtype, bytes.data(), linear, value); }
  /// Flips the bits of the mask.
  void flip(std::int64_t linear, std::uint64_t mask) { flip_bits(spec.dtype, bytes.data(), linear, mask); }
  [[nodiscard]] std::int64_t elements() const { return spec.shape.elements(); }

  TensorSpec spec;
  std::vector<std::byte> bytes;
};

/// Sets each element to the one at the place (a logical linear index) from which it is read instead.
void read_from(HostTensor& tensor, const std::function<std::int64_t(std::int64_t)>& place);

/// Sets each element to input.value of its logical linear index.
void fill(HostTensor& tensor, const RevealingData::Input& input);

/// Elements of a tensor along one axis: `outer` blocks of `extent` slices of `inner` elements.
struct AxisView {
  AxisView(const Shape& shape, int axis) : extent(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  /// The logical linear index.
  [[nodiscard]] std::int64_t element(std::int64_t o, std::int64_t at, std::int64_t i) const {
    return (o * extent + at) * inner + i;
  }
  /// Calls visit(index) for each element of slice `at`.
  template <class Visit>
  void each(std::int64_t at, const Visit& visit) const {
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) visit(element(o, at, i));
    }
  }
  /// Index along the axis.
  [[nodiscard]] std::int64_t at(std::int64_t linear) const { return linear / inner % extent; }
  /// The element with the axis reversed, or that many places on along it, around its end.
  [[nodiscard]] std::int64_t reversed(std::int64_t linear) const {
    return linear + (extent - 1 - 2 * at(linear)) * inner;
  }
  [[nodiscard]] std::int64_t shifted(std::int64_t linear, std::int64_t by) const {
    return linear + ((at(linear) + by) % extent - at(linear)) * inner;
  }
  std::int64_t outer = 1, extent, inner = 1;
};

/// Of an op with a list of operands, those into which faults are put: the first seven and the last.
[[nodiscard]] std::vector<std::size_t> some_operands(std::size_t count);

[[nodiscard]] std::vector<TensorView> views_of(std::span<const HostTensor> tensors);
[[nodiscard]] std::vector<TensorSpec> specs_of(std::span<const TensorView> tensors);
[[nodiscard]] std::vector<TensorSpec> specs_of(std::span<const HostTensor> tensors);
/// All elements, in logical order.
[[nodiscard]] std::vector<double> values_of(const TensorView& tensor);
[[nodiscard]] CheckUnits units_of(const Operands& operands, int output);

/// About how many fp64 operations all outputs of the op take.
[[nodiscard]] double textbook_flop(const Program& program, const OpCall& call);

/// The same with another call, and other inputs for it.
[[nodiscard]] inline Operands replaced(const Operands& operands, const OpCall& call,
                                       std::span<const TensorView> inputs) {
  return {call, inputs, operands.outputs, operands.written, operands.exact_sums, operands.sparse};
}

/// The expected values of some elements of an output, given by their logical linear indices in any order.
[[nodiscard]] std::vector<Expected> expected_elements(const Operands& operands, int output,
                                                      std::span<const std::int64_t> elements);

/// The same for elements that are in the places of others: each is expected to be the one at place(element).
[[nodiscard]] std::vector<Expected> expected_elsewhere(const Operands& operands, int output,
                                                       std::span<const std::int64_t> elements,
                                                       const std::function<std::int64_t(std::int64_t)>& place);

/// All expected elements of one output.
[[nodiscard]] std::vector<Expected> expected_output(const Operands& operands, int output);

/// How far a correct but imperfect backend is off: each element by a random part of its bound.
struct Disturbance {
  // NOLINTNEXTLINE(google-explicit-constructor)
  Disturbance(std::uint64_t seed, double most = 1.0, bool kinks = true) : seed(seed), most(most), kinks(kinks) {}
  std::uint64_t seed;  ///< of the random numbers, from 1 on
  double most;         ///< of its bound that an element is moved by: 1 is all of it
  bool kinks;          ///< of a program: whether an element near to where a gradient jumps is put on its other side
};

/// The outputs of the op, rounded to their types, moved first where there is something to `disturb`. Where one follows
/// from another and nothing is `written`, it follows from that as it was rounded.
[[nodiscard]] std::vector<HostTensor> textbook_outputs(const Operands& operands,
                                                       std::optional<Disturbance> disturb = {});

}  // namespace gpubench
