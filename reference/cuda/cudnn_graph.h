// A computation described to cuDNN: tensors and operations, independent of the chip. cudnn_plan.h finds engines that
// run it.
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

/// Index of a tensor in its graph.
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

enum class GraphStorage {
  argument,  ///< a tensor of the op call
  scratch,   ///< in the launch's workspace, initially undefined
  constant,  ///< one f32 number, passed by value
  internal   ///< not in memory: between fused operations
};

class CudnnGraph {
 public:
  struct Place {
    GraphStorage storage = GraphStorage::internal;
    std::size_t argument = 0;  ///< index among the op call's tensors (inputs, then outputs)
    std::size_t bytes = 0;     ///< of scratch tensors
    float constant = 0.0F;
  };

  GraphTensor argument(std::size_t index, const GraphShape& shape);
  GraphTensor scratch(const GraphShape& shape);
  /// `axes`: that of the tensors it is combined with.
  GraphTensor constant(float value, int axes = 4);
  GraphTensor internal(const GraphShape& shape);

  // Operations; sums are f32 unless stated otherwise.
  /// c = a b over the last two axes; leading axes of a and b broadcast.
  void matmul(GraphTensor a, GraphTensor b, GraphTensor c);
  /// y = mode(x), y = mode(x, b). Extents of 1 broadcast.
  void pointwise(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor y);
  void pointwise(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor b, GraphTensor y);
  /// dx = dy times the derivative of an activation at x; `mode` is its backward.
  void pointwise_backward(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor dy, GraphTensor dx);
  /// y = each element's index along `axis`; only the extents of `x` matter.
  void index_along(std::int64_t axis, GraphTensor x, GraphTensor y);
  void select(GraphTensor condition, GraphTensor x, GraphTensor otherwise, GraphTensor y);
  /// Reduces the axes where y's extent is 1, or smaller than x's: then each element of y sums equally many of x.
  void reduce(cudnnReduceTensorOp_t op, GraphTensor x, GraphTensor y);
  /// Sum and sum of squares of each channel of x [n, c, h, w], each [1, c, 1, 1].
  void channel_sums(GraphTensor x, GraphTensor sum, GraphTensor squares);
  /// The same elements under other extents and strides.
  void reshape(GraphTensor x, GraphTensor y);

  enum class ConvolutionPass { forward, backward_data, backward_filter };
  struct Convolution {
    ConvolutionPass pass = ConvolutionPass::forward;
    std::vector<std::int64_t> stride, padding, dilation;
    cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  };
  /// Cross-correlation; x: [n, c, h, w], filter: [k, c / groups, r, s], y: [n, k, p, q]. `convolution` names the one
  /// that is computed from the other two.
  void convolution(const Convolution& convolution, GraphTensor x, GraphTensor filter, GraphTensor y);

  [[nodiscard]] const std::vector<CudnnDescriptor>& operations() const { return operations_; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] static std::int64_t unique_id(std::size_t index) { return static_cast<std::int64_t>(index) + 1; }
  [[nodiscard]] std::size_t scratch_bytes() const;
  /// Scratch tensors follow each other, each aligned to 256 bytes.
  [[nodiscard]] static constexpr std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  /// Required alignment of argument addresses, in bytes.
  static constexpr std::int64_t argument_alignment = 16;

 private:
  GraphTensor add(const GraphShape& shape, const Place& place);
  [[nodiscard]] const CudnnDescriptor& at(GraphTensor tensor) const;
  void keep(CudnnDescriptor operation, std::optional<CudnnDescriptor> parameters, std::string_view what);
  void pointwise(CudnnDescriptor parameters, cudnnPointwiseMode_t mode, GraphTensor x, std::optional<GraphTensor> b,
                 std::optional<GraphTensor> condition, GraphTensor y);

  std::vector<CudnnDescriptor> tensors_;
  std::vector<Place> places_;
  std::vector<CudnnDescriptor> parameters_;
  std::vector<CudnnDescriptor> operations_;
};

}  // namespace gpubench::cuda
