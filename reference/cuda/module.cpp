#include "reference/cuda/module.h"

#include "reference/cuda/cuda_backend.h"

extern "C" __attribute__((visibility("default"))) const gpubench::cuda::Module* gpubench_cuda_module() {
  using namespace gpubench::cuda;
  static const Module module{GPUBENCH_BUILD_ID, open_cuda_backend,        open_cuda_ranks,
                             process_device,    open_process_collectives, all_libraries};
  return &module;
}
