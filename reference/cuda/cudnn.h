// cuDNN's graph interface: its objects, and the library opened for one chip.
// https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html
#pragma once

#include <cudnn.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpubench::cuda {

/// Throws Unsupported for CUDNN_STATUS_NOT_SUPPORTED..., BackendError for any other failure: "cudnn: <attempted>
/// failed: CUDNN_STATUS_...: <cuDNN's last error message>".
void check(cudnnStatus_t status, std::string_view attempted);

/// "CUDNN_STATUS_NOT_SUPPORTED_SHAPE: <cuDNN's last error message>". Clears that message.
[[nodiscard]] std::string cudnn_error_text(cudnnStatus_t status);

/// The graph interface's type of an attribute. void* stands for pointers only: descriptors, which are void* too, have
/// separate overloads below.
template <class T>
[[nodiscard]] constexpr cudnnBackendAttributeType_t cudnn_attribute_type() {
  if constexpr (std::is_same_v<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
  if constexpr (std::is_same_v<T, cudnnDataType_t>) return CUDNN_TYPE_DATA_TYPE;
  if constexpr (std::is_same_v<T, bool>) return CUDNN_TYPE_BOOLEAN;
  if constexpr (std::is_same_v<T, char>) return CUDNN_TYPE_CHAR;
  if constexpr (std::is_same_v<T, std::int64_t>) return CUDNN_TYPE_INT64;
  if constexpr (std::is_same_v<T, float>) return CUDNN_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return CUDNN_TYPE_DOUBLE;
  if constexpr (std::is_same_v<T, void*>) return CUDNN_TYPE_VOID_PTR;
  if constexpr (std::is_same_v<T, cudnnConvolutionMode_t>) return CUDNN_TYPE_CONVOLUTION_MODE;
  if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) return CUDNN_TYPE_HEUR_MODE;
  if constexpr (std::is_same_v<T, cudnnBackendKnobType_t>) return CUDNN_TYPE_KNOB_TYPE;
  if constexpr (std::is_same_v<T, cudnnBackendNumericalNote_t>) return CUDNN_TYPE_NUMERICAL_NOTE;
  if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>) return CUDNN_TYPE_POINTWISE_MODE;
  if constexpr (std::is_same_v<T, cudnnReduceTensorOp_t>) return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
  if constexpr (std::is_same_v<T, cudnnGenStatsMode_t>) return CUDNN_TYPE_GENSTATS_MODE;
  if constexpr (std::is_same_v<T, cudnnBackendNormMode_t>) return CUDNN_TYPE_NORM_MODE;
  if constexpr (std::is_same_v<T, cudnnBackendNormFwdPhase_t>) return CUDNN_TYPE_NORM_FWD_PHASE;
}

/// An object of the graph interface (tensor, operation, execution plan): created, given attributes, finalized, then
/// read-only.
class CudnnDescriptor {
 public:
  /// Throws BackendError if cuDNN cannot create it.
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);

  /// One value, several, or another descriptor, which must outlive this one.
  template <class T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set_raw(name, cudnn_attribute_type<T>(), 1, &value);
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, const std::vector<T>& values) {
    set_raw(name, cudnn_attribute_type<T>(), static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, std::string_view text);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other);
  void set(cudnnBackendAttributeName_t name, const std::vector<CudnnDescriptor>& others);

  /// Throws as check(), with `what` as `attempted`.
  void finalize(std::string_view what);
  /// As finalize(), but returns the status.
  [[nodiscard]] cudnnStatus_t try_finalize();

  template <class T>
  [[nodiscard]] T get(cudnnBackendAttributeName_t name) const {
    T value{};
    get_raw(name, cudnn_attribute_type<T>(), 1, &value);
    return value;
  }
  template <class T>
  [[nodiscard]] std::vector<T> get_all(cudnnBackendAttributeName_t name) const {
    std::vector<T> values(count(name, cudnn_attribute_type<T>()));
    if (values.empty()) return values;
    const std::int64_t got =
        get_raw(name, cudnn_attribute_type<T>(), static_cast<std::int64_t>(values.size()), values.data());
    values.resize(static_cast<std::size_t>(got));
    return values;
  }
  [[nodiscard]] std::string get_text(cudnnBackendAttributeName_t name) const;
  /// Copies of the descriptors that an attribute holds. `most`: the largest possible number, for attributes whose count
  /// cannot be queried; -1: query it.
  [[nodiscard]] std::vector<CudnnDescriptor> get_all(cudnnBackendAttributeName_t name,
                                                     cudnnBackendDescriptorType_t type, int most = -1) const;

  [[nodiscard]] cudnnBackendDescriptor_t get() const { return raw_.get(); }

 private:
  struct Destroy {
    void operator()(void* raw) const;
  };
  void set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
               const void* values);
  std::int64_t get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t room,
                       void* values) const;
  [[nodiscard]] std::size_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;

  cudnnBackendDescriptorType_t type_;
  std::unique_ptr<void, Destroy> raw_;
};

/// Execution plans as cuDNN's JSON text, so that a process compiles each plan once for all its threads; threads must
/// not share plans. cuDNN gives such text only for engines that it compiles at run time, which take seconds. It also
/// accepts text compiled for a chip's description ("deviceless ahead-of-time compilation" in its manual; from 9.8).
class CudnnPlanStore {
 public:
  [[nodiscard]] std::optional<std::string> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = texts_.find(key);
    return found == texts_.end() ? std::nullopt : std::optional(found->second);
  }
  /// Keeps the first text of a key.
  void keep(const std::string& key, std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.emplace(key, std::move(text));
  }
  /// Records that cuDNN rejected a text: compiling ahead would waste time.
  void refuse() { refused_ = true; }
  [[nodiscard]] bool is_refused() const { return refused_; }

 private:
  std::atomic<bool> refused_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

/// The library opened for the current device, or for a chip described by text. For a description, plans can be built
/// and report their workspace on a machine without a GPU.
class Cudnn {
 public:
  /// For the device that is current at the first use: cases without cuDNN need not load it.
  Cudnn() = default;
  /// `store`: compiled plans, read and added to.
  explicit Cudnn(std::shared_ptr<CudnnPlanStore> store) : store_(std::move(store)) {}
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;
  /// For the chip that `properties` describes: JSON as properties() returns it. Plans cannot run. Throws BackendError
  /// naming what is missing in it.
  [[nodiscard]] static Cudnn for_chip(std::string_view properties, std::shared_ptr<CudnnPlanStore> store = {}) {
    return Cudnn(properties, std::move(store));
  }

  /// True for a described chip: there is no handle.
  [[nodiscard]] bool described() const { return chip_.has_value(); }
  /// Throws BackendError with cuDNN's message if it does not start.
  [[nodiscard]] cudnnHandle_t handle() const;
  /// cuDNN's description of the chip: JSON, as for_chip() takes it.
  [[nodiscard]] const std::string& properties() const;

  /// Null if plans are not shared.
  [[nodiscard]] const std::shared_ptr<CudnnPlanStore>& store() const { return store_; }

  /// Engines built, and plans restored from the store.
  struct Effort {
    int built = 0;
    int restored = 0;
  };
  [[nodiscard]] const Effort& effort() const { return effort_; }
  void count_built() const { ++effort_.built; }
  void count_restored() const { ++effort_.restored; }

  void aim_graph(CudnnDescriptor& graph) const;
  void aim_heuristics(CudnnDescriptor& heuristics) const;
  void aim_plan(CudnnDescriptor& plan) const;

 private:
  Cudnn(std::string_view properties, std::shared_ptr<CudnnPlanStore> store);

  mutable cudnnHandle_t handle_ = nullptr;
  mutable Effort effort_;
  mutable std::string properties_;
  std::shared_ptr<CudnnPlanStore> store_;
  std::optional<CudnnDescriptor> chip_;
};

/// The version loaded at run time, "9.19.0".
[[nodiscard]] std::string cudnn_version();

}  // namespace gpubench::cuda
