#include "reference/cuda/cudnn.h"

#include <fmt/format.h>

#include <array>

#include "harness/core/error.h"

namespace gpubench::cuda {

std::string cudnn_error_text(cudnnStatus_t status) {
  std::array<char, 4096> message{};
  cudnnGetLastErrorString(message.data(), message.size());
  std::string words = cudnnGetErrorString(status);
  if (message.front() != '\0') words += std::string(": ") + message.data();
  // cuDNN's messages end in line breaks and may have several lines; gpubench prints one line.
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  for (char& c : words) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return words;
}

void check(cudnnStatus_t status, std::string_view attempted) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string text = fmt::format("cudnn: {} failed: {}", attempted, cudnn_error_text(status));
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) throw Unsupported(text);
  throw BackendError(text);
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) : type_(type) {
  cudnnBackendDescriptor_t raw = nullptr;
  check(cudnnBackendCreateDescriptor(type, &raw),
        fmt::format("creating a descriptor of type {}", static_cast<int>(type)));
  raw_.reset(raw);
}

void CudnnDescriptor::Destroy::operator()(void* raw) const { cudnnBackendDestroyDescriptor(raw); }

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::string_view text) {
  set_raw(name, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()), text.data());
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other) {
  const cudnnBackendDescriptor_t raw = other.get();
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, static_cast<const void*>(&raw));
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const std::vector<CudnnDescriptor>& others) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& other : others) raw.push_back(other.get());
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()),
          static_cast<const void*>(raw.data()));
}

void CudnnDescriptor::finalize(std::string_view what) { check(try_finalize(), what); }

cudnnStatus_t CudnnDescriptor::try_finalize() { return cudnnBackendFinalize(get()); }

std::string CudnnDescriptor::get_text(cudnnBackendAttributeName_t name) const {
  const std::vector<char> characters = get_all<char>(name);
  std::string text(characters.begin(), characters.end());
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::vector<CudnnDescriptor> CudnnDescriptor::get_all(cudnnBackendAttributeName_t name,
                                                      cudnnBackendDescriptorType_t type, int most) const {
  std::vector<CudnnDescriptor> copies;
  const std::size_t room = most < 0 ? count(name, CUDNN_TYPE_BACKEND_DESCRIPTOR) : static_cast<std::size_t>(most);
  copies.reserve(room);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t i = 0; i < room; ++i) raw.push_back(copies.emplace_back(type).get());
  if (room == 0) return copies;
  const std::int64_t got =
      get_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(room), static_cast<void*>(raw.data()));
  while (copies.size() > static_cast<std::size_t>(got)) copies.pop_back();
  return copies;
}

void CudnnDescriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                              const void* values) {
  check(
      cudnnBackendSetAttribute(get(), name, type, count, values),
      fmt::format("setting attribute {} of a descriptor of type {}", static_cast<int>(name), static_cast<int>(type_)));
}

std::int64_t CudnnDescriptor::get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                      std::int64_t room, void* values) const {
  std::int64_t got = 0;
  check(
      cudnnBackendGetAttribute(get(), name, type, room, &got, values),
      fmt::format("reading attribute {} of a descriptor of type {}", static_cast<int>(name), static_cast<int>(type_)));
  return got;
}

std::size_t CudnnDescriptor::count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
  std::int64_t count = 0;
  check(
      cudnnBackendGetAttribute(get(), name, type, 0, &count, nullptr),
      fmt::format("counting attribute {} of a descriptor of type {}", static_cast<int>(name), static_cast<int>(type_)));
  return static_cast<std::size_t>(count);
}

Cudnn::Cudnn(std::string_view properties, std::shared_ptr<CudnnPlanStore> store)
    : store_(std::move(store)), chip_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
  chip_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, properties);
  chip_->finalize("reading the description of a chip");
}

Cudnn::~Cudnn() {
  if (handle_ != nullptr) (void)cudnnDestroy(handle_);
}

cudnnHandle_t Cudnn::handle() const {
  if (described()) throw BackendError("cudnn: starting failed: plans for a described chip can be built, not run");
  if (handle_ == nullptr) {
    cudnnHandle_t handle = nullptr;
    check(cudnnCreate(&handle), "starting");
    handle_ = handle;
  }
  return handle_;
}

const std::string& Cudnn::properties() const {
  if (!properties_.empty()) return properties_;
  if (described()) return properties_ = chip_->get_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  CudnnDescriptor chip(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  chip.set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle());
  chip.finalize("describing the current device");
  return properties_ = chip.get_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

// Graphs and plans get the chip by the handle, heuristics and plans by a description. cuDNN's header calls the handles
// of graphs and plans deprecated, but plans that run still get it, as in cuDNN's front end.
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
