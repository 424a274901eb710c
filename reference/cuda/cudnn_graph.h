// A computation as cuDNN is told of it: tensors and the operations between them. Nothing here depends on a chip or
// chooses anything; cudnn_plan.h finds ways to run a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/tensor.h"
#include "reference/cuda/cudnn.h"

namespace gpubench::cuda {

/// Throws Unsupported for a type that cuDNN lacks.
[[nodiscard]] cudnnDataType_t cudnn_type(DType type);

/// A tensor of a graph: which one of its graph's tensors it is.
struct GraphTensor {
  int index = -1;
};

/// Extents and strides in elements, in cuDNN's order of axes (images [n, c, h, w], matrices [..., rows, columns]).
struct GraphShape {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
};
/// Dense, last axis fastest.
[[nodiscard]] GraphShape dense(cudnnDataType_t type, std::vector<std::int64_t> extents);

/// Where the values of a graph's tensor are when it runs.
enum class GraphStorage {
  argument,  ///< a tensor of the op call
  scratch,   ///< memory of the launch's workspace, contents undefined before
  constant,  ///< one f32 number, passed by value
  internal   ///< nowhere in memory: between fused operations
};

class CudnnGraph {
 public:
  /// What is known of a tensor besides its shape.
  struct Place {
    GraphStorage storage = GraphStorage::internal;
    std::size_t argument = 0;  ///< index among the op call's tensors (inputs, then outputs)
    std::size_t bytes = 0;     ///< of scratch
    float constant = 0.0F;
  };

  // --- tensors ---
  GraphTensor argument(std::size_t index, const GraphShape& shape);
  GraphTensor scratch(const GraphShape& shape);
  /// As many axes as the tensors that it meets.
  GraphTensor constant(float value, int axes = 4);
  GraphTensor internal(const GraphShape& shape);

  // --- operations; sums in f32 unless said otherwise ---
  /// c = a b over the last two axes; leading axes of a and b broadcast.
  void matmul(GraphTensor a, GraphTensor b, GraphTensor c);
  /// y = mode(x), y = mode(x, b). Extents of 1 broadcast.
  void pointwise(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor y);
  void pointwise(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor b, GraphTensor y);
  /// dx = dy times the derivative of an activation at x; `mode` is its backward.
  void pointwise_backward(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor dy, GraphTensor dx);
  /// y = the index of each element along `axis`; `x` only gives the extents.
  void index_along(std::int64_t axis, GraphTensor x, GraphTensor y);
  /// y = condition ? x : otherwise
  void select(GraphTensor condition, GraphTensor x, GraphTensor otherwise, GraphTensor y);
  /// Over the axes where y has extent 1 (or fewer elements, each a sum of equally many) and x has not.
  void reduce(cudnnReduceTensorOp_t op, GraphTensor x, GraphTensor y);
  /// Of each channel of x [n, c, h, w] the sum and the sum of squares, each [1, c, 1, 1].
  void channel_sums(GraphTensor x, GraphTensor sum, GraphTensor squares);
  /// The same elements under other extents and strides.
  void reshape(GraphTensor x, GraphTensor y);

  enum class ConvolutionPass { forward, backward_data, backward_filter };
  struct Convolution {
    ConvolutionPass pass = ConvolutionPass::forward;
    std::vector<std::int64_t> stride, padding, dilation;
    cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  };
  /// Cross-correlation; x: [n, c, h, w], filter: [k, c / groups, r, s], y: [n, k, p, q]. The pass says which of the
  /// three is computed from the other two.
  void convolution(const Convolution& convolution, GraphTensor x, GraphTensor filter, GraphTensor y);

  // --- reading ---
  [[nodiscard]] const std::vector<CudnnDescriptor>& operations() const { return operations_; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  /// The number by which cuDNN knows a tensor.
  [[nodiscard]] static std::int64_t unique_id(std::size_t index) { return static_cast<std::int64_t>(index) + 1; }
  /// Memory that all scratch tensors need together.
  [[nodiscard]] std::size_t scratch_bytes() const;
  /// Scratch tensors lie one behind the other, each on a multiple of 256.
  [[nodiscard]] static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  /// Addresses of arguments must be multiples of this.
  static constexpr std::int64_t argument_alignment = 16;

 private:
  GraphTensor add(const GraphShape& shape, const Place& place);
  [[nodiscard]] const CudnnDescriptor& at(GraphTensor tensor) const;
  /// Finalizes an operation and keeps it with the descriptor of its parameters.
  void keep(CudnnDescriptor operation, std::optional<CudnnDescriptor> parameters, std::string_view what);
  void pointwise(CudnnDescriptor parameters, cudnnPointwiseMode_t mode, GraphTensor x, std::optional<GraphTensor> b,
                 std::optional<GraphTensor> condition, GraphTensor y);

  std::vector<CudnnDescriptor> tensors_;
  std::vector<Place> places_;
  std::vector<CudnnDescriptor> parameters_;
  std::vector<CudnnDescriptor> operations_;
};

}  // namespace gpubench::cuda
