// The only access to oneDNN: neutral structs in, bound work out. Versions 2 and 3 of its interface differ in how
// primitives are made; onednn.cpp is the only file that knows. https://uxlfoundation.github.io/oneDNN
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/dtype.h"
#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// oneDNN's CPU engine and the stream that all work of one rank runs on.
class OneDnn {
 public:
  struct State;

  /// `highest`: of the library's instruction sets, "" for its own choice (usable_isa.h knows). Throws BackendError when
  /// the library cannot make a CPU engine, or cannot be limited.
  explicit OneDnn(const std::string& highest);
  ~OneDnn();
  OneDnn(const OneDnn&) = delete;
  OneDnn& operator=(const OneDnn&) = delete;

  /// The version that really runs, "2.6.3 (52b5f107dd9cf10910aaa19cb47f3abf9b349815)".
  [[nodiscard]] std::string version() const;
  /// Kernels of the instruction set in use that the backend excludes, and why; may be empty.
  [[nodiscard]] std::string excluded_kernels() const;

  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// A tensor as oneDNN describes it: extents in oneDNN's order of axes, and the stride of each in elements.
struct MemoryShape {
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
};

/// c = alpha scale_a scale_b a b + beta c + bias. a: [(batch,) m, k], b: [(batch,) k, n], c: [(batch,) m, n], bias: n
/// numbers; scale_a, scale_b: one f32 each, if `scaled`; f32 sums.
struct MatmulRequest {
  MemoryShape a, b, c;
  std::optional<DType> bias = {};
  bool scaled = false;
  float alpha = 1.0F;
  float beta = 0.0F;
};

/// The three passes of a convolution (cross-correlation). source: [n, c, h, w], destination: [n, k, p, q],
/// filter: [k, c, r, s], or [groups, k / groups, c / groups, r, s]. Each pass computes one of them from the other two.
struct ConvolutionRequest {
  enum class Pass { forward, backward_data, backward_filter };
  Pass pass = Pass::forward;
  MemoryShape source, filter, destination;
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};
  std::array<std::int64_t, 2> dilation{1, 1};  ///< 1: dense, as reference/ops/conv2d.h counts
};

/// oneDNN work bound to memory. Running it twice on the same inputs does the same work.
class OneDnnLaunch {
 public:
  struct Steps;
  explicit OneDnnLaunch(std::shared_ptr<const Steps> steps) : steps_(std::move(steps)) {}
  /// Throws BackendError when the library reports a failure.
  void operator()() const;
  /// The same on other operands, in the order of the request: for work of which only the addresses change from call to
  /// call. By one thread at a time, as all runs of a launch.
  void run_on(std::span<std::byte* const> operands) const;

 private:
  std::shared_ptr<const Steps> steps_;
};

/// One or more primitives that run one after the other over the operands of a request and a workspace. Immutable.
class OneDnnWork {
 public:
  struct Recipe;
  explicit OneDnnWork(std::shared_ptr<const Recipe> recipe) : recipe_(std::move(recipe)) {}

  /// "onednn:brg:avx512_core_amx_bf16", with "+repack(filter)" where operands are brought into oneDNN's own layout and
  /// back as part of the work.
  [[nodiscard]] std::string implementation() const;
  /// oneDNN's plain C++ loops, hundreds of times slower than its kernels: no benchmark should time them.
  [[nodiscard]] bool is_reference_code() const;
  [[nodiscard]] std::size_t workspace_bytes() const;
  /// `operands` in the order of the request: a, b, c, bias, scale_a, scale_b; source, filter, destination; from, to.
  /// `workspace` has workspace_bytes() bytes, 64-byte aligned.
  [[nodiscard]] OneDnnLaunch bind(std::span<std::byte* const> operands, std::byte* workspace) const;

 private:
  std::shared_ptr<const Recipe> recipe_;
};

/// Work for the request: on the operands in place where the library has fast code for that, else with the weights
/// or all operands repacked as part of the work. The library's reference code is the last resort for f32; other types
/// have it, or emulation, never (plan_or_widen()). Throws Unsupported with the library's own words when there is no
/// way.
[[nodiscard]] OneDnnWork matmul_work(const OneDnn& onednn, const MatmulRequest& request);
/// In that order, at most `most` of the fast ways, each of another implementation(); which is the fastest depends on
/// the shape, by up to a factor of two.
[[nodiscard]] std::vector<OneDnnWork> matmul_ways(const OneDnn& onednn, const MatmulRequest& request, std::size_t most);
/// Of convolutions on NHWC images the first fast way is the fastest or equal to it within noise, in versions 2.6 and
/// 3.7.
[[nodiscard]] OneDnnWork convolution_work(const OneDnn& onednn, const ConvolutionRequest& request);

/// Copies between two layouts of the same extents and type. Throws Unsupported with the library's own words.
[[nodiscard]] OneDnnWork reorder_work(const OneDnn& onednn, const MemoryShape& from, const MemoryShape& to);

// Tensor specs as oneDNN describes memory.

/// The tensor with its axes in the order that oneDNN counts them: axis i of the result is axis order[i] of the tensor.
/// Throws Unsupported for blocked layouts.
[[nodiscard]] MemoryShape memory_shape(const OpCall& call, const TensorSpec& tensor, const std::vector<int>& order);

/// `shape` with harmless strides on axes of one element. Any stride is right there, but oneDNN recognizes layouts by
/// their strides, and falls back to slow code for those it does not know.
[[nodiscard]] MemoryShape with_plain_strides(MemoryShape shape);

/// A matrix without gaps, row-major or, if `transposed`, the transpose of one that is.
[[nodiscard]] inline MemoryShape dense_matrix(DType type, std::int64_t rows, std::int64_t columns,
                                              bool transposed = false) {
  return with_plain_strides({type, {rows, columns}, {transposed ? 1 : columns, transposed ? rows : 1}});
}

}  // namespace gpubench::cpu
