#include "reference/cuda/cudnn.h"

#include <fmt/format.h>

#include "harness/core/error.h"

namespace gpubench::cuda {

Cudnn::Cudnn(std::string_view properties, std::shared_ptr<CudnnPlanStore> store)
    : store_(std::move(store)), chip_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  chip_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, properties);
  chip_->finalize("reading the description of a chip");
}

Cudnn::~Cudnn() {
  if (handle_ != nullptr) (void)cudnnDestroy(handle_);
}

cudnnHandle_t Cudnn::handle() const {
  if (described())
    throw BackendError("cudnn: starting failed: the chip is only described; plans for it can be built, not run");
  if (handle_ == nullptr) {
    cudnnHandle_t handle = nullptr;
    check(cudnnCreate(&handle), "starting");
    handle_ = handle;
  }
  return handle_;
}

std::string Cudnn::properties() const {
  if (described()) return chip_->get_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  CudnnDescriptor chip(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  chip.set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle());
  chip.finalize("describing the current device");
  return chip.get_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

// The three kinds of descriptor learn of a chip in different ways: graphs and plans by the handle; heuristics and plans
// by a description. The header calls the handle of a graph and of a plan deprecated; plans that are to run get it all
// the same, as cuDNN's own front end does.
void Cudnn::aim_graph(CudnnDescriptor& graph) const {
  if (!described()) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle());
}

void Cudnn::aim_heuristics(CudnnDescriptor& heuristics) const {
  if (described()) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *chip_);
}

void Cudnn::aim_plan(CudnnDescriptor& plan) const {
  if (described()) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *chip_);
  } else {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle());
  }
}

std::string cudnn_version() {
  const std::size_t version = cudnnGetVersion();  // 91900: 9.19.0
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace gpubench::cuda
