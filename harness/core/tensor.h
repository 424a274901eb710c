// Specification (TensorSpec), place in memory (Tensor) and textbook access (TensorView) of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/dtype.h"
#include "harness/core/enum_names.h"
#include "harness/core/shape.h"
#include "harness/core/storage_content.h"

namespace gpubench {

/// The purpose of a tensor, for people and transforms. The recipe, not the role, decides its type.
enum class Role { input, parameter, state, activation, gradient, statistic, scalar };
template <>
inline constexpr auto enum_names<Role> = std::to_array<std::string_view>({"input", "parameter", "state", "activation",
                                                                          "gradient", "statistic", "scalar"});

/// How the harness fills a tensor that no op produces: integer arithmetic on a hash of (case id without ranks, tensor
/// name, global element index, seed), then one exact conversion (harness/parity/fill.h).
struct Fill {
  /// The number is part of a case's definition: append new kinds.
  enum class Kind {
    normal,     ///< bell-shaped, mean 0, standard deviation about `scale` (rounded to a power of two)
    positive,   ///< as |normal|: second moments, variances
    integers,   ///< uniform whole numbers in [low, high]: tokens, labels, indices
    constant,   ///< `scale` everywhere
    sequence,   ///< low, low + scale, ... high, low, ... along the logical linear index: positions
    norm_rows,  ///< normal rows (last axis) that meet the data conditions of norms: variances about 1, 100 eps, eps, 0;
                ///< means 0 or one deviation
    pointwise,  ///< normal, with the interesting interval [-4, 4] of activations well covered
    tiny_mix,   ///< gradients for optimizers: normal, with one in eight about 1e-8 (where epsilon matters)
    boundaries,  ///< rows (last axis) that ascend from 0 to high: cumulative lengths of parts, of twice the mean at
                 ///< most
    masked       ///< integers, but 85% of the elements are `scale`: labels of a masked language model
  };
  Kind kind = Kind::normal;
  double scale = 1.0;
  std::int64_t low = 0;
  std::int64_t high = 0;

  [[nodiscard]] static Fill normal(double scale) { return {Kind::normal, scale, 0, 0}; }
  [[nodiscard]] static Fill positive(double scale) { return {Kind::positive, scale, 0, 0}; }
  [[nodiscard]] static Fill integers(std::int64_t low, std::int64_t high) { return {Kind::integers, 1.0, low, high}; }
  [[nodiscard]] static Fill boundaries(std::int64_t high) { return {Kind::boundaries, 1.0, 0, high}; }
  [[nodiscard]] static Fill sequence(std::int64_t low, std::int64_t high) { return {Kind::sequence, 1.0, low, high}; }
  [[nodiscard]] static Fill constant(double value) { return {Kind::constant, value, 0, 0}; }
  [[nodiscard]] static Fill norm_rows(double scale) { return {Kind::norm_rows, scale, 0, 0}; }
  [[nodiscard]] static Fill pointwise() { return {Kind::pointwise, 2.0, 0, 0}; }
  [[nodiscard]] static Fill tiny_mix(double scale) { return {Kind::tiny_mix, scale, 0, 0}; }
  [[nodiscard]] static Fill masked(std::int64_t low, std::int64_t high, int mask) {
    return {Kind::masked, static_cast<double>(mask), low, high};
  }
  friend bool operator==(const Fill&, const Fill&) = default;
};

/// The memory of a tensor: the device's, the host's (pinned for the device, or pageable), or that of another device of
/// the machine.
enum class Memory { device, pinned_host, pageable_host, peer };
template <>
inline constexpr auto enum_names<Memory> = std::to_array<std::string_view>({"device memory", "pinned host memory",
                                                                            "pageable host memory",
                                                                            "another device's memory"});

/// How a tensor is spread over an axis of the mesh whose ranks have different parts.
struct AxisSpread {
  enum class Kind {
    sharded,  ///< cut into equal parts along an axis of the tensor, or along each section of it
    partial   ///< addends of a sum that is still to be reduced
  };
  static constexpr int no_axis_yet = -1;

  Kind kind = Kind::sharded;
  int mesh_axis = no_axis_yet;  ///< index of Mesh::axes(); unset for a source of a step not yet on several ranks
  int tensor_axis = -1;         ///< the cut axis; partial: -1
  int part = 0;
  int parts = 1;
  /// Extents of the sections of the whole axis, each cut separately (q, k and v of packed qkv); empty: one section.
  std::vector<std::int64_t> sections{};
  friend bool operator==(const AxisSpread&, const AxisSpread&) = default;
};

/// The rank, spread and memory of a tensor; it is replicated over mesh axes that `spread` does not name.
struct Placement {
  std::vector<AxisSpread> spread{};  ///< by mesh axis: of shards along one tensor axis the first cuts coarsest
  Memory memory = Memory::device;
  int rank = 0;
  int ranks = 1;  ///< of the program
  /// A step's batch before the step is on several ranks.
  [[nodiscard]] static Placement shard(int tensor_axis) {
    return {{{AxisSpread::Kind::sharded, AxisSpread::no_axis_yet, tensor_axis}}};
  }
  [[nodiscard]] static Placement on(int rank, int ranks) { return {{}, Memory::device, rank, ranks}; }
  /// Cut over all ranks, which form one axis.
  [[nodiscard]] static Placement shard(int tensor_axis, int rank, int ranks) {
    return {{{AxisSpread::Kind::sharded, 0, tensor_axis, rank, ranks}}, Memory::device, rank, ranks};
  }
  [[nodiscard]] static Placement in(Memory memory) { return {{}, memory}; }
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Limit of a tensor and of all tensors of a program together: a pebibyte, so that cold copies can be counted.
inline constexpr std::int64_t max_tensor_bytes = std::int64_t{1} << 50;

struct TensorSpec {
  std::string name;  ///< unique in its program; part of the identity of the fill
  Shape shape;
  DType dtype = DType::f32;
  Layout layout;  ///< row-major by default
  Role role = Role::activation;
  Fill fill;
  Placement placement;

  [[nodiscard]] std::int64_t bytes() const;
  /// The name common to all ranks: `name` without its "@<rank>".
  [[nodiscard]] std::string_view global_name() const;
  [[nodiscard]] std::string to_string() const;
};

/// The shape of the tensor that all parts make up. Addends get a separate leading axis.
[[nodiscard]] Shape global_shape(const TensorSpec& spec);
/// The linear index in the global tensor of an element of this part.
[[nodiscard]] std::int64_t global_index(const TensorSpec& spec, std::int64_t linear);
/// Blocks of this many elements, at multiples of it, are contiguous in this part and in the whole.
[[nodiscard]] std::int64_t global_run(const TensorSpec& spec);

/// "x@1" for rank 1's tensor x of several ranks, else the name itself.
[[nodiscard]] std::string name_on_rank(std::string_view name, int rank, int ranks);

[[nodiscard]] TensorSpec tensor(std::string name, DType dtype, Shape shape, Role role, Fill fill = {});

/// A tensor at its place in device (or host) memory: what a backend binds. Does not own.
struct Tensor {
  TensorSpec spec;
  std::byte* data = nullptr;  ///< the element with logical index 0
};

class Backend;

/// Read-only access to a tensor by logical index. Widens elements to fp64 one run at a time, without an fp64 copy of
/// the whole. Copyable, does not own.
///
/// Indices from an op's operands (a token, as the row of a table) may be outside the tensor: ProgramError.
///
/// The tensor is in host memory or in a backend's. In a backend's, read many elements at a time (gather, scan), because
/// each request is a round trip to the device, and from one thread only.
class TensorView {
 public:
  TensorView() = default;
  /// Of memory that the host may read.
  TensorView(const TensorSpec& spec, const std::byte* data);
  /// Of the device's memory; `rows`: row_view(spec).
  TensorView(const TensorSpec& spec, const std::byte* data, Backend& device, const RowView& rows);

  [[nodiscard]] const TensorSpec& spec() const { return *spec_; }
  [[nodiscard]] const Shape& shape() const { return spec_->shape; }
  [[nodiscard]] DType dtype() const { return spec_->dtype; }
  [[nodiscard]] bool is_on_device() const { return device_ != nullptr; }
  /// Element by logical linear (row-major) index.
  [[nodiscard]] double operator[](std::int64_t linear) const;
  [[nodiscard]] double at(std::span<const std::int64_t> index) const;
  [[nodiscard]] double at(std::initializer_list<std::int64_t> index) const;
  /// `out.size()` elements along `axis` from multi-index `start`; fast where the layout is plain strides.
  void read(std::initializer_list<std::int64_t> start, int axis, std::span<double> out) const;
  void read(std::int64_t linear, std::span<double> out) const;
  /// Runs of `run` consecutive logical elements from each of `firsts` (ascending), packed.
  void gather(std::span<const std::int64_t> firsts, std::int64_t run, std::span<double> out) const;
  /// The stored bits of `count` consecutive logical elements from `linear`, packed.
  void read_bits(std::int64_t linear, std::int64_t count, std::byte* out) const;
  /// scan_chunk() of every scan_chunk_elements logical elements.
  [[nodiscard]] std::vector<ChunkScan> scan() const;
  /// True if two tensors of one shape and type hold the same bits; false proves nothing.
  [[nodiscard]] static bool surely_equal(const TensorView& a, const TensorView& b);

 private:
  void expect_inside(std::int64_t offset) const;
  [[nodiscard]] double element(std::int64_t offset) const;
  void load_strided(std::int64_t offset, std::int64_t stride, std::span<double> out) const;
  void fetch(std::span<std::int64_t> offsets, std::int64_t run, std::byte* out) const;
  void gather_bits(std::span<const std::int64_t> firsts, std::int64_t run, std::byte* out) const;

  const TensorSpec* spec_ = nullptr;
  const std::byte* data_ = nullptr;
  Backend* device_ = nullptr;  ///< the owner of `data_`; null: host memory
  std::int64_t span_ = 0;      ///< stored elements from the first to one past the last
  RowView rows_;               ///< on a device; dense tensors as one row
  bool row_major_ = false;
};

/// The inverse of TensorView::read_bits, for a tensor in host memory.
void write_bits(const TensorSpec& spec, std::int64_t linear, std::int64_t count, const std::byte* packed,
                std::byte* to);

}  // namespace gpubench
