// The operations of a graph that are whole layers: convolution.
#include <array>
#include <cstddef>

#include "reference/cuda/cudnn_graph.h"

namespace gpubench::cuda {
namespace {

// The three passes are the same descriptor under three names.
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
