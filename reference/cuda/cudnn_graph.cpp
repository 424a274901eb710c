#include "reference/cuda/cudnn_graph.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "harness/core/error.h"

namespace gpubench::cuda {
namespace {

std::size_t bytes_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE: return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return 2;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32: return 4;
    default: return 1;
  }
}

// The three passes use the same descriptor under three names.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t parameters, alpha, beta, x, filter, y;
};
constexpr std::array<ConvolutionNames, 3> convolution_names{{
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
}};

}  // namespace

cudnnDataType_t cudnn_type(DType type) {
  switch (type) {
    case DType::f64: return CUDNN_DATA_DOUBLE;
    case DType::f32: return CUDNN_DATA_FLOAT;
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    case DType::f8_e4m3: return CUDNN_DATA_FP8_E4M3;
    case DType::f8_e5m2: return CUDNN_DATA_FP8_E5M2;
    case DType::f4_e2m1: break;
    case DType::i32: return CUDNN_DATA_INT32;
    case DType::u8: return CUDNN_DATA_UINT8;
  }
  throw Unsupported(fmt::format("cudnn has no type {}", name(type)));
}

GraphShape dense(cudnnDataType_t type, std::vector<std::int64_t> extents) {
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return {type, std::move(extents), std::move(strides)};
}

GraphTensor CudnnGraph::add(const GraphShape& shape, const Place& place) {
  CudnnDescriptor& tensor = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, shape.type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.extents);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, shape.strides);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, unique_id(places_.size()));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, argument_alignment);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, place.storage == GraphStorage::internal);
  if (place.storage == GraphStorage::constant) tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  tensor.finalize(fmt::format("describing tensor [{}] with strides ({})", fmt::join(shape.extents, ", "),
                              fmt::join(shape.strides, ", ")));
  places_.push_back(place);
  return {static_cast<int>(places_.size()) - 1};
}

GraphTensor CudnnGraph::argument(std::size_t index, const GraphShape& shape) {
  return add(shape, {.storage = GraphStorage::argument, .argument = index});
}

GraphTensor CudnnGraph::scratch(const GraphShape& shape) {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < shape.extents.size(); ++i) elements += (shape.extents[i] - 1) * shape.strides[i];
  return add(shape,
             {.storage = GraphStorage::scratch, .bytes = static_cast<std::size_t>(elements) * bytes_of(shape.type)});
}

GraphTensor CudnnGraph::constant(float value, int axes) {
  return add(dense(CUDNN_DATA_FLOAT, std::vector<std::int64_t>(static_cast<std::size_t>(axes), 1)),
             {.storage = GraphStorage::constant, .constant = value});
}

GraphTensor CudnnGraph::internal(const GraphShape& shape) { return add(shape, {}); }

const CudnnDescriptor& CudnnGraph::at(GraphTensor tensor) const {
  return tensors_.at(static_cast<std::size_t>(tensor.index));
}

void CudnnGraph::keep(CudnnDescriptor operation, std::optional<CudnnDescriptor> parameters, std::string_view what) {
  operation.finalize(what);
  operations_.push_back(std::move(operation));
  if (parameters) parameters_.push_back(std::move(*parameters));
}

void CudnnGraph::matmul(GraphTensor a, GraphTensor b, GraphTensor c) {
  CudnnDescriptor parameters(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  parameters.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  parameters.finalize("describing a product");
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, parameters);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(c));
  keep(std::move(operation), std::move(parameters), "adding a product");
}

void CudnnGraph::pointwise(CudnnDescriptor parameters, cudnnPointwiseMode_t mode, GraphTensor x,
                           std::optional<GraphTensor> b, std::optional<GraphTensor> condition, GraphTensor y) {
  parameters.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  parameters.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  parameters.finalize(fmt::format("describing pointwise operation {}", static_cast<int>(mode)));
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parameters);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(x));
  if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(*b));
  if (condition) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(*condition));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(y));
  keep(std::move(operation), std::move(parameters),
       fmt::format("adding pointwise operation {}", static_cast<int>(mode)));
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor y) {
  pointwise(CudnnDescriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), mode, x, {}, {}, y);
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor b, GraphTensor y) {
  pointwise(CudnnDescriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), mode, x, b, {}, y);
}

void CudnnGraph::pointwise_backward(cudnnPointwiseMode_t mode, GraphTensor x, GraphTensor dy, GraphTensor dx) {
  CudnnDescriptor parameters(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  parameters.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  parameters.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  parameters.finalize("describing an activation's backward");
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parameters);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, at(dy));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, at(dx));
  keep(std::move(operation), std::move(parameters), "adding an activation's backward");
}

void CudnnGraph::index_along(std::int64_t axis, GraphTensor x, GraphTensor y) {
  CudnnDescriptor parameters(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  parameters.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  pointwise(std::move(parameters), CUDNN_POINTWISE_GEN_INDEX, x, {}, {}, y);
}

void CudnnGraph::select(GraphTensor condition, GraphTensor x, GraphTensor otherwise, GraphTensor y) {
  pointwise(CudnnDescriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), CUDNN_POINTWISE_BINARY_SELECT, x, otherwise, condition,
            y);
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t op, GraphTensor x, GraphTensor y) {
  CudnnDescriptor parameters(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  parameters.set(CUDNN_ATTR_REDUCTION_OPERATOR, op);
  parameters.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  parameters.finalize("describing a reduction");
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, parameters);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(y));
  keep(std::move(operation), std::move(parameters), "adding a reduction");
}

void CudnnGraph::channel_sums(GraphTensor x, GraphTensor sum, GraphTensor squares) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, at(sum));
  operation.set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, at(squares));
  keep(std::move(operation), {}, "adding channel sums");
}

void CudnnGraph::reshape(GraphTensor x, GraphTensor y) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(y));
  keep(std::move(operation), {}, "adding a reshape");
}

std::size_t CudnnGraph::scratch_bytes() const {
  std::size_t bytes = 0;
  for (const Place& place : places_) bytes += padded(place.bytes);
  return bytes;
}

void CudnnGraph::convolution(const Convolution& convolution, GraphTensor x, GraphTensor filter, GraphTensor y) {
  CudnnDescriptor parameters(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  parameters.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, convolution.sums);
  parameters.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  parameters.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(convolution.stride.size()));
  parameters.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution.stride);
  parameters.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution.padding);
  parameters.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution.padding);
  parameters.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution.dilation);
  parameters.finalize("describing a convolution");

  const ConvolutionNames& names = convolution_names.at(static_cast<std::size_t>(convolution.pass));
  CudnnDescriptor operation(names.operation);
  operation.set(names.parameters, parameters);
  if (convolution.sums == CUDNN_DATA_DOUBLE) {  // factors have the type of the sums
    operation.set(names.alpha, 1.0);
    operation.set(names.beta, 0.0);
  } else {
    operation.set(names.alpha, 1.0F);
    operation.set(names.beta, 0.0F);
  }
  operation.set(names.x, at(x));
  operation.set(names.filter, at(filter));
  operation.set(names.y, at(y));
  keep(std::move(operation), std::move(parameters), "adding a convolution");
}

}  // namespace gpubench::cuda
