#include "reference/cuda/module.h"

#include "reference/cuda/cuda_backend.h"
#include "reference/cuda/runtime.h"

namespace gpubench::cuda {
namespace {

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  const int count = device_count();
  for (int ordinal = 0; ordinal < count; ++ordinal) names.push_back(traits_of(ordinal).name);
  return names;
}

}  // namespace

}  // namespace gpubench::cuda

extern "C" __attribute__((visibility("default"))) const gpubench::cuda::Module* gpubench_cuda_module() {
  using namespace gpubench::cuda;
  static const Module module{GPUBENCH_BUILD_ID, open_cuda_backend, device_names, loaded_libraries};
  return &module;
}
