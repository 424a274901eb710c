// Which of NVIDIA's libraries are loaded, and from where.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "reference/cuda/cublaslt.h"
#include "reference/cuda/cuda_backend.h"
#include "reference/cuda/cudnn.h"
#ifdef GPUBENCH_HAS_NCCL
#include "harness/core/error.h"
#include "reference/cuda/nccl_calls.h"
#endif

namespace gpubench::cuda {
namespace {

// The file that a function was loaded from.
template <class Function>
std::string path_of(Function* function) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(function), &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

}  // namespace

std::vector<LoadedLibrary> loaded_libraries() {
  int runtime = 0;
  (void)cudaRuntimeGetVersion(&runtime);
  return {{"cudart", fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10), "" /* part of this module */},
          {"cublaslt", cublaslt_version(), path_of(cublasLtGetVersion)},
          {"cudnn", cudnn_version(), path_of(cudnnGetVersion)}};
}

std::vector<LoadedLibrary> all_libraries() {
  std::vector<LoadedLibrary> libraries = loaded_libraries();
#ifdef GPUBENCH_HAS_NCCL
  try {
    const NcclCalls& nccl = nccl_calls();
    libraries.push_back({"nccl", nccl_version(nccl), path_of(nccl.get_version)});
  } catch (const Unsupported&) {
    // One GPU needs none; several say what is missing.
  }
#endif
  return libraries;
}

}  // namespace gpubench::cuda
