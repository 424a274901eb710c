// cuDNN, opened for one chip: the current device, on which plans can run, or one that is described by text, for which
// plans can be built and asked what they would need, on a machine without a GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "reference/cuda/cudnn_descriptor.h"
#include "reference/cuda/cudnn_plan_store.h"

namespace gpubench::cuda {

class Cudnn {
 public:
  /// For the device that is current when it is first needed: cases without cuDNN should not wait for it.
  Cudnn() = default;
  /// `store`: what the other ranks on this device have compiled, and where this one leaves what it compiles.
  explicit Cudnn(std::shared_ptr<CudnnPlanStore> store) : store_(std::move(store)) {}
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;
  /// For the chip that `properties` describes: the JSON text that properties() writes. Nothing can be run.
  /// Throws BackendError naming what is missing in it.
  [[nodiscard]] static Cudnn for_chip(std::string_view properties, std::shared_ptr<CudnnPlanStore> store = {}) {
    return Cudnn(properties, std::move(store));
  }

  /// True where the chip is only described, so that there is no handle.
  [[nodiscard]] bool described() const { return chip_.has_value(); }
  /// Throws BackendError with cuDNN's words where it does not start.
  [[nodiscard]] cudnnHandle_t handle() const;
  /// The chip as cuDNN describes it, JSON: what for_chip() takes.
  [[nodiscard]] std::string properties() const;

  /// Null where nothing is shared.
  [[nodiscard]] CudnnPlanStore* store() const { return store_.get(); }

  /// What planning cost so far: engines that were built, and plans that came from the store instead.
  struct Effort {
    int built = 0;
    int restored = 0;
  };
  [[nodiscard]] const Effort& effort() const { return effort_; }
  void count_built() const { ++effort_.built; }
  void count_restored() const { ++effort_.restored; }

  /// Points an operation graph, heuristics or an execution plan at this chip.
  void aim_graph(CudnnDescriptor& graph) const;
  void aim_heuristics(CudnnDescriptor& heuristics) const;
  void aim_plan(CudnnDescriptor& plan) const;

 private:
  Cudnn(std::string_view properties, std::shared_ptr<CudnnPlanStore> store);

  mutable cudnnHandle_t handle_ = nullptr;
  mutable Effort effort_;
  std::shared_ptr<CudnnPlanStore> store_;
  std::optional<CudnnDescriptor> chip_;
};

/// The version that really runs, "9.19.0".
[[nodiscard]] std::string cudnn_version();

}  // namespace gpubench::cuda
