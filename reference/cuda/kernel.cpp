#include "reference/cuda/kernel.h"

#include <fmt/format.h>

namespace gpubench::cuda {

void refuse(const OpCall& call, const std::string& why) {
  throw Unsupported(fmt::format("cuda {} '{}': {}", call.kind.name, call.label, why));
}

const CudaLaunch& own_launch(const Launch& launch) {
  const auto* own = dynamic_cast<const CudaLaunch*>(launch.get());
  if (own == nullptr) throw BackendError("cuda: the launch is empty or of another backend; expected one bound here");
  return *own;
}

void expect_row_major(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.layout.is_row_major(tensor.shape)) return;
  refuse(call, fmt::format("tensor {} has layout {}; expected row-major", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

void expect_type(const OpCall& call, const TensorSpec& tensor, DType type) {
  if (tensor.dtype != type) refuse(call, fmt::format("tensor {}; expected {}", tensor.to_string(), name(type)));
}

std::string own_implementation(const CudaContext& context) {
  return fmt::format("gpubench:sm{}", context.device.compute_capability);
}

}  // namespace gpubench::cuda
