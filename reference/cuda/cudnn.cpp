#include "reference/cuda/cudnn.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "harness/core/error.h"

namespace gpubench::cuda {

Cudnn::Cudnn() = default;

Cudnn::~Cudnn() {
  if (handle_ != nullptr) (void)cudnnDestroy(handle_);
}

cudnnContext* Cudnn::handle() const {
  if (handle_ == nullptr) {
    if (const cudnnStatus_t status = cudnnCreate(&handle_); status != CUDNN_STATUS_SUCCESS) {
      handle_ = nullptr;
      throw BackendError(fmt::format("cudnn: does not start: {}", cudnnGetErrorString(status)));
    }
  }
  return handle_;
}

std::string cudnn_version() {
  const std::size_t version = cudnnGetVersion();  // 91900: 9.19.0
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string cudnn_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&cudnnGetVersion), &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

}  // namespace gpubench::cuda
