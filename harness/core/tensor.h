// What a tensor is (TensorSpec), where it is in memory (Tensor), and how the textbook reads it (TensorView).
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

/// What a tensor is for: shown to people and used by transforms. The recipe, not the role, decides its type.
enum class Role { input, parameter, state, activation, gradient, statistic, scalar };
template <>
inline constexpr auto enum_names<Role> = std::to_array<std::string_view>({"input", "parameter", "state", "activation",
                                                                          "gradient", "statistic", "scalar"});

/// How the harness fills a tensor that no op produces. All kinds are integer arithmetic on a hash of
/// (case id without ranks, tensor name, global element index, seed), then one exact conversion: every machine sees the
/// same bits (harness/parity/fill.h).
struct Fill {
  /// Its number is part of a case's definition: new ones come last.
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

/// Whose memory a tensor is in: the device's own, the host's (pinned for the device, or pageable), or that of another
/// device of the same machine.
enum class Memory { device, pinned_host, pageable_host, peer };
template <>
inline constexpr auto enum_names<Memory> = std::to_array<std::string_view>({"device memory", "pinned host memory",
                                                                            "pageable host memory",
                                                                            "another device's memory"});

/// How a tensor is spread over one axis of the mesh, where the ranks along that don't all have the same.
struct AxisSpread {
  enum class Kind {
    sharded,  ///< cut into equal parts along an axis of the tensor, or along each section of it
    partial   ///< addends of a sum that is still to be reduced
  };
  static constexpr int no_axis_yet = -1;

  Kind kind = Kind::sharded;
  int mesh_axis = no_axis_yet;  ///< index of Mesh::axes(); a source of a step that is not yet on several ranks has none
  int tensor_axis = -1;         ///< what is cut; partial: -1
  int part = 0;                 ///< which this is
  int parts = 1;
  /// Extents of what the axis of the whole is made of, each cut by itself (q, k and v of packed qkv); empty: one.
  std::vector<std::int64_t> sections{};
  friend bool operator==(const AxisSpread&, const AxisSpread&) = default;
};

/// Where a tensor is: on which rank, how it is spread over the axes of the mesh (replicated over those that `spread`
/// does not name), and in whose memory.
struct Placement {
  std::vector<AxisSpread> spread{};  ///< by mesh axis: of shards along one tensor axis the first cuts coarsest
  Memory memory = Memory::device;
  int rank = 0;
  int ranks = 1;  ///< of the program
  /// What a step's batch is, until the step is on several ranks.
  [[nodiscard]] static Placement shard(int tensor_axis) {
    return {{{AxisSpread::Kind::sharded, AxisSpread::no_axis_yet, tensor_axis}}};
  }
  /// Alike on all ranks.
  [[nodiscard]] static Placement on(int rank, int ranks) { return {{}, Memory::device, rank, ranks}; }
  /// Cut over all ranks, which are one axis.
  [[nodiscard]] static Placement shard(int tensor_axis, int rank, int ranks) {
    return {{{AxisSpread::Kind::sharded, 0, tensor_axis, rank, ranks}}, Memory::device, rank, ranks};
  }
  [[nodiscard]] static Placement in(Memory memory) { return {{}, memory}; }
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Of a tensor, and of all of a program together: a pebibyte, which no device has, and whose cold copies can be
/// counted.
inline constexpr std::int64_t max_tensor_bytes = std::int64_t{1} << 50;

struct TensorSpec {
  std::string name;  ///< unique in its program; part of the identity of the fill
  Shape shape;
  DType dtype = DType::f32;
  Layout layout;  ///< row-major unless said otherwise
  Role role = Role::activation;
  Fill fill;
  Placement placement;

  /// Bytes from the first element to one past the last. Throws ProgramError above max_tensor_bytes.
  [[nodiscard]] std::int64_t bytes() const;
  /// The name that all ranks have for it: of a tensor of several ranks, `name` without its "@<rank>".
  [[nodiscard]] std::string_view global_name() const;
  /// "x: f32[8, 768]"
  [[nodiscard]] std::string to_string() const;
};

/// The shape of what all parts of a tensor make up. Addends lie along an axis of their own, in front of all others.
[[nodiscard]] Shape global_shape(const TensorSpec& spec);
/// The place in it, as a linear index, of an element that is given by its linear index in this part.
[[nodiscard]] std::int64_t global_index(const TensorSpec& spec, std::int64_t linear);
/// As many elements, at multiples of it, follow each other both in this part and in the whole.
[[nodiscard]] std::int64_t global_run(const TensorSpec& spec);

/// "x@1": the name of rank 1's tensor x where there are several ranks, else the name as it is.
[[nodiscard]] std::string name_on_rank(std::string_view name, int rank, int ranks);

/// A row-major tensor.
[[nodiscard]] TensorSpec tensor(std::string name, DType dtype, Shape shape, Role role, Fill fill = {});

/// A tensor at its place in device (or host) memory: what a backend binds. Does not own.
struct Tensor {
  TensorSpec spec;
  std::byte* data = nullptr;  ///< the element with logical index 0
};

class Backend;

/// Read-only access to a tensor in its storage type; elements are widened to fp64 one run at a time, so no fp64 copy of
/// the whole is ever made. Indices are logical. Copyable, does not own.
///
/// Single elements and runs along an axis may be asked for by whatever the op's other operands say, as a row of a table
/// by a token: outside the tensor is ProgramError.
///
/// The tensor is in the host's memory, or in that of a backend, which is then asked for single elements: many at a time
/// (gather, scan), since each request takes a trip to the device, and by one thread only.
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
  /// Element by multi-index.
  [[nodiscard]] double at(std::span<const std::int64_t> index) const;
  [[nodiscard]] double at(std::initializer_list<std::int64_t> index) const;
  /// `out.size()` elements along `axis` from multi-index `start`; fast where the layout is plain strides.
  void read(std::initializer_list<std::int64_t> start, int axis, std::span<double> out) const;
  /// `out.size()` consecutive logical elements from `linear`.
  void read(std::int64_t linear, std::span<double> out) const;
  /// Runs of `run` consecutive logical elements from each of `firsts`, which ascend, one behind the other.
  void gather(std::span<const std::int64_t> firsts, std::int64_t run, std::span<double> out) const;
  /// The stored bits of `count` consecutive logical elements from `linear`, packed.
  void read_bits(std::int64_t linear, std::int64_t count, std::byte* out) const;
  /// What scan_chunk() says of each scan_chunk_elements logical elements.
  [[nodiscard]] std::vector<ChunkScan> scan() const;
  /// Whether two tensors of one shape and type hold the same bits; false may only mean that it takes a closer look.
  [[nodiscard]] static bool surely_equal(const TensorView& a, const TensorView& b);

 private:
  void expect_inside(std::int64_t offset) const;
  [[nodiscard]] double element(std::int64_t offset) const;
  void load_strided(std::int64_t offset, std::int64_t stride, std::span<double> out) const;
  void fetch(std::span<std::int64_t> offsets, std::int64_t run, std::byte* out) const;
  void gather_bits(std::span<const std::int64_t> firsts, std::int64_t run, std::byte* out) const;

  const TensorSpec* spec_ = nullptr;
  const std::byte* data_ = nullptr;
  Backend* device_ = nullptr;  ///< whose memory `data_` is; null: the host may read it
  std::int64_t span_ = 0;      ///< stored elements from the first to one past the last
  RowView rows_;               ///< on a device; dense ones as one row
  bool row_major_ = false;
};

/// The reverse of TensorView::read_bits, into a tensor of this spec in the host's memory.
void write_bits(const TensorSpec& spec, std::int64_t linear, std::int64_t count, const std::byte* packed,
                std::byte* to);

}  // namespace gpubench
