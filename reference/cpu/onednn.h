// The only access to oneDNN. Only onednn.cpp knows how interface versions 2 and 3 differ.
// https://uxlfoundation.github.io/oneDNN
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

/// oneDNN's CPU engine, and the stream of one rank.
class OneDnn {
 public:
  struct State;

  /// `highest`: highest instruction set of the library, "" for its own choice (see usable_isa.h). Throws BackendError
  /// if there is no CPU engine, or the library cannot be limited.
  explicit OneDnn(const std::string& highest);
  ~OneDnn();
  OneDnn(const OneDnn&) = delete;
  OneDnn& operator=(const OneDnn&) = delete;

  /// Version at run time: "2.6.3 (52b5f107dd9cf10910aaa19cb47f3abf9b349815)".
  [[nodiscard]] std::string version() const;
  /// Kernels of the current instruction set that the backend excludes, with reasons; may be empty.
  [[nodiscard]] std::string excluded_kernels() const;

  [[nodiscard]] const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// A tensor in oneDNN's axis order; strides in elements.
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

/// A pass of a convolution (cross-correlation). source: [n, c, h, w], destination: [n, k, p, q], filter: [k, c, r, s]
/// or [groups, k / groups, c / groups, r, s]. Each pass computes one of them from the other two.
struct ConvolutionRequest {
  enum class Pass { forward, backward_data, backward_filter };
  Pass pass = Pass::forward;
  MemoryShape source, filter, destination;
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};
  std::array<std::int64_t, 2> dilation{1, 1};  ///< 1: dense, as in reference/ops/conv2d.h
};

/// oneDNN work bound to memory; may run repeatedly.
class OneDnnLaunch {
 public:
  struct Steps;
  explicit OneDnnLaunch(std::shared_ptr<const Steps> steps) : steps_(std::move(steps)) {}
  /// Throws BackendError if the library reports a failure.
  void operator()() const;
  /// Runs on other operands, in the order of the request: for work whose addresses change per call. One thread at a
  /// time, as for all runs of a launch.
  void run_on(std::span<std::byte* const> operands) const;

 private:
  std::shared_ptr<const Steps> steps_;
};

/// One or more primitives that run in sequence on operands and a workspace. Immutable.
class OneDnnWork {
 public:
  struct Recipe;
  explicit OneDnnWork(std::shared_ptr<const Recipe> recipe) : recipe_(std::move(recipe)) {}

  /// "onednn:brg:avx512_core_amx_bf16", with "+repack(filter)" if the work includes reorders to oneDNN's layouts.
  [[nodiscard]] std::string implementation() const;
  /// oneDNN's plain C++ loops, hundreds of times slower than its kernels: not to be timed.
  [[nodiscard]] bool is_reference_code() const;
  [[nodiscard]] std::size_t workspace_bytes() const;
  /// `operands` in the order of the request: a, b, c, bias, scale_a, scale_b; source, filter, destination; from, to.
  /// `workspace`: workspace_bytes() bytes, 64-byte aligned.
  [[nodiscard]] OneDnnLaunch bind(std::span<std::byte* const> operands, std::byte* workspace) const;

 private:
  std::shared_ptr<const Recipe> recipe_;
};

/// Work for the request: in place if the library has fast code for it, else with the weights or all operands repacked.
/// f32 falls back to the library's reference code; other types do not use it, nor emulation (plan_or_widen()). Throws
/// Unsupported with oneDNN's message if there is no way.
[[nodiscard]] OneDnnWork matmul_work(const OneDnn& onednn, const MatmulRequest& request);
/// At most `most` fast ways in that order, with different implementation(); the fastest depends on the shape, by up to
/// a factor of two.
[[nodiscard]] std::vector<OneDnnWork> matmul_ways(const OneDnn& onednn, const MatmulRequest& request, std::size_t most);
/// For NHWC images the first fast way is the fastest, within noise, in versions 2.6 and 3.7.
[[nodiscard]] OneDnnWork convolution_work(const OneDnn& onednn, const ConvolutionRequest& request);

/// Copies between two layouts of equal extents and type. Throws Unsupported with oneDNN's message.
[[nodiscard]] OneDnnWork reorder_work(const OneDnn& onednn, const MemoryShape& from, const MemoryShape& to);

/// The tensor in oneDNN's axis order: axis i of the result is axis order[i] of the tensor. Throws Unsupported for
/// blocked layouts.
[[nodiscard]] MemoryShape memory_shape(const OpCall& call, const TensorSpec& tensor, const std::vector<int>& order);

/// `shape` with canonical strides on axes of extent 1. oneDNN recognizes layouts by their strides, and uses slow code
/// for unknown ones.
[[nodiscard]] MemoryShape with_plain_strides(MemoryShape shape);

/// A dense matrix, row-major or, if `transposed`, column-major.
[[nodiscard]] inline MemoryShape dense_matrix(DType type, std::int64_t rows, std::int64_t columns,
                                              bool transposed = false) {
  return with_plain_strides({type, {rows, columns}, {transposed ? 1 : columns, transposed ? rows : 1}});
}

}  // namespace gpubench::cpu
