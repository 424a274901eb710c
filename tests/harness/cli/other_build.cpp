// A CUDA module of another build.
#include "reference/cuda/module.h"

extern "C" __attribute__((visibility("default"))) const gpubench::cuda::Module* gpubench_cuda_module() {
  static const gpubench::cuda::Module module{"0123456789abcdef", nullptr, nullptr};
  return &module;
}
