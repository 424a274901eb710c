// cuDNN, opened for one chip: the current device, on which plans can run, or one that is described by text, for which
// plans can be built and asked what they would need, on a machine without a GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reference/cuda/cudnn_descriptor.h"

namespace gpubench::cuda {

class Cudnn {
 public:
  /// For the device that is current when it is first needed: cases without cuDNN should not wait for it.
  Cudnn() = default;
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;
  /// For the chip that `properties` describes: the JSON text that properties() writes. Nothing can be run.
  /// Throws BackendError naming what is missing in it.
  [[nodiscard]] static Cudnn for_chip(std::string_view properties) { return Cudnn(properties); }

  /// True where the chip is only described, so that there is no handle.
  [[nodiscard]] bool described() const { return chip_.has_value(); }
  /// Throws BackendError with cuDNN's words where it does not start.
  [[nodiscard]] cudnnHandle_t handle() const;
  /// The chip as cuDNN describes it, JSON: what for_chip() takes.
  [[nodiscard]] std::string properties() const;

  /// Points an operation graph, heuristics or an execution plan at this chip.
  void aim_graph(CudnnDescriptor& graph) const;
  void aim_heuristics(CudnnDescriptor& heuristics) const;
  void aim_plan(CudnnDescriptor& plan) const;

 private:
  explicit Cudnn(std::string_view properties);

  mutable cudnnHandle_t handle_ = nullptr;
  std::optional<CudnnDescriptor> chip_;
};

/// The version that really runs, "9.19.0".
[[nodiscard]] std::string cudnn_version();

}  // namespace gpubench::cuda
