#include "harness/run/own_implementation.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>

#include "harness/core/call_view.h"
#include "harness/core/error.h"
#include "harness/run/forwarding_backend.h"
#include "harness/run/process_state.h"

namespace gpubench {
namespace {

/// A message from the implementation, which may be unterminated.
class Text {
 public:
  Text() { text_[0] = '\0'; }  // NOLINT(cppcoreguidelines-pro-type-member-init): one per launch, mostly unused
  [[nodiscard]] char* data() { return text_.data(); }
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  [[nodiscard]] std::string string() const {
    const std::string_view all(text_.data(), text_.size());
    const std::string_view said = all.substr(0, all.find('\0'));
    return said.empty() ? "it gave no reason" : std::string(said);
  }

 private:
  std::array<char, 512> text_;
};

std::map<std::string, const gpubench_implementation*>& registered() {
  static std::map<std::string, const gpubench_implementation*> tables;
  return tables;
}

std::string version_text(std::uint32_t version) {
  return std::to_string(version >> 16U) + "." + std::to_string(version & 0xffffU);
}

// Untrusted; keeps characters that are safe in records.
std::string kernel_name(const gpubench_plan& plan) {
  const std::string_view all(plan.name, sizeof(plan.name));
  std::string name(all.substr(0, all.find('\0')));
  for (char& letter : name) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                       (letter >= 'A' && letter <= 'Z') ||
                       std::string_view("._+-=,:").find(letter) != std::string::npos;
    if (!plain) letter = '_';
  }
  return name;
}

DLDevice dl_device(const DeviceInfo& device) {
  constexpr std::int32_t cpu = 1, cuda = 2;
  return {device.kind == "cuda" ? cuda : cpu,
          static_cast<std::int32_t>(property_number(device, device_property::ordinal).value_or(0.0))};
}

/// A call with addresses, itself at a stable address.
struct PlacedCall {
  PlacedCall(const CallView& view, std::span<const Tensor> bound) : tensors(view.placed(bound)), call(view.call()) {
    call.tensors = tensors.data();
  }
  PlacedCall(const PlacedCall&) = delete;
  PlacedCall& operator=(const PlacedCall&) = delete;

  std::vector<gpubench_tensor> tensors;
  gpubench_call call;
};

struct OwnPlan final : PlanImpl {
  OwnPlan(const OwnImplementation& by, const OpCall& call, std::span<const TensorSpec> tensors,
          const DeviceInfo& device, bool deterministic)
      : implementation_of(by), view(call, tensors, dl_device(device), deterministic), label(call.label) {}
  OwnPlan(const OwnPlan&) = delete;
  OwnPlan& operator=(const OwnPlan&) = delete;
  ~OwnPlan() override {
    if (planned && implementation_of.table().destroy != nullptr) implementation_of.table().destroy(plan.state);
  }
  [[nodiscard]] std::string implementation() const override { return name; }
  [[nodiscard]] std::size_t workspace_bytes() const override { return plan.workspace_bytes; }

  /// Throws BackendError if the implementation has changed the calling thread's arithmetic modes. Takes 7 ns.
  void expect_modes() const {
    if (const ArithmeticModes left = ArithmeticModes::now(); !(left == modes))
      throw BackendError(name + ", op '" + label + "', left " + modes.restore_from(left) + "; restored");
  }

  const OwnImplementation& implementation_of;
  CallView view;
  ArithmeticModes modes = ArithmeticModes::now();  ///< of every thread that runs it
  std::string label, name;
  gpubench_plan plan{};
  bool planned = false;
  /// All bound calls, so that their addresses stay unique.
  mutable std::vector<std::shared_ptr<const PlacedCall>> calls{};
};

std::string asked(const OwnImplementation& implementation, const gpubench_call& call) {
  Text why;
  const auto answer = static_cast<int>(implementation.table().offers(&call, why.data(), why.size()));
  if (answer == GPUBENCH_OK) return "";
  if (answer == GPUBENCH_DECLINED) return why.string();
  throw BackendError(std::string(own_plan_prefix) + implementation.name() + ", asked for " + call.op + ": " +
                     why.string());
}

class OwnBackend final : public ForwardingBackend {
 public:
  OwnBackend(Backend& inner, const OwnImplementation& implementation, std::unique_ptr<Backend> owner)
      : ForwardingBackend(inner, std::move(owner)), implementation_(implementation) {}

  [[nodiscard]] bool keeps(const OpCall& call, std::span<const TensorSpec> tensors) override {
    return declines(implementation_, call, tensors, device()).empty();
  }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    if (!declines(implementation_, call, tensors, device(), options.deterministic).empty())
      return ForwardingBackend::plan(call, tensors, options);
    const auto own = std::make_shared<OwnPlan>(implementation_, call, tensors, device(), options.deterministic);
    own->name = std::string(own_plan_prefix) + implementation_.name();
    if (const auto prepare = implementation_.table().plan; prepare != nullptr) {
      Text why;
      if (prepare(&own->view.call(), &own->plan, why.data(), why.size()) != GPUBENCH_OK)
        throw BackendError(own->name + " cannot plan op '" + own->label + "': " + why.string());
      own->planned = true;
      if (const std::string kernel = kernel_name(own->plan); !kernel.empty()) own->name += "/" + kernel;
      if (static_cast<std::int64_t>(own->plan.workspace_bytes) < 0 ||
          static_cast<std::int64_t>(own->plan.workspace_bytes) > device().memory_bytes)
        throw BackendError(own->name + " asks for a workspace of " + std::to_string(own->plan.workspace_bytes) +
                           " bytes for op '" + own->label + "', more than the device has");
      own->expect_modes();
    }
    return own;
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    const auto own = std::dynamic_pointer_cast<const OwnPlan>(plan);
    if (own == nullptr) return ForwardingBackend::bind(plan, tensors, workspace);
    const auto placed = std::make_shared<const PlacedCall>(own->view, tensors);
    own->calls.push_back(placed);
    const auto run = own->implementation_of.table().run;
    return inner().launch_of([own, placed, scratch = workspace.data, run](void* stream) {
      Text what;
      const auto status = run(own->plan.state, &placed->call, scratch, stream, what.data(), what.size());
      own->expect_modes();
      if (status == GPUBENCH_OK) return;
      throw BackendError(own->name + ", op '" + own->label + "': " + what.string());
    });
  }

 private:
  const OwnImplementation& implementation_;
};

}  // namespace

OwnImplementation::OwnImplementation(std::string name, const std::string& file) : name_(std::move(name)) {
  if (const auto found = registered().find(file); found != registered().end()) {
    take(*found->second);
    return;
  }
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // not closed: it may have started threads
  const auto complaint = [] {
    const char* words = ::dlerror();
    return std::string(words == nullptr ? "no reason given" : words);
  };
  if (library == nullptr) throw BackendError(file + " cannot be loaded: " + complaint());
  const auto entry = reinterpret_cast<gpubench_entry_function>(::dlsym(library, GPUBENCH_ENTRY));
  if (entry == nullptr)
    throw BackendError(file + " exports no " GPUBENCH_ENTRY "(): " + complaint() +
                       "; expected a library built with gpubench/implementation.h");
  Text why;
  const gpubench_implementation* table = entry(GPUBENCH_ABI_VERSION, why.data(), why.size());
  if (table == nullptr) throw BackendError(file + " cannot work here: " + why.string());
  take(*table);
}

OwnImplementation::OwnImplementation(std::string name, const gpubench_implementation& table) : name_(std::move(name)) {
  take(table);
}

void OwnImplementation::take(const gpubench_implementation& table) {
  constexpr std::uint32_t min_size = offsetof(gpubench_implementation, destroy);  // without optional members
  if (table.abi_version >> 16U != GPUBENCH_ABI_MAJOR)
    throw BackendError("implementation '" + name_ + "' was built for version " + version_text(table.abi_version) +
                       " of the interface; this gpubench has " + version_text(GPUBENCH_ABI_VERSION) +
                       ": build it with this one's gpubench/implementation.h");
  if (table.struct_size < min_size)
    throw BackendError("implementation '" + name_ + "' has a table of " + std::to_string(table.struct_size) +
                       " bytes; expected at least " + std::to_string(min_size));
  std::memcpy(&table_, &table, std::min<std::size_t>(table.struct_size, sizeof(table_)));
  if (table_.offers == nullptr || table_.run == nullptr)
    throw BackendError("implementation '" + name_ + "' lacks " + (table_.run == nullptr ? "run" : "offers") +
                       ", which every implementation needs");
  if (table_.version != nullptr) {
    constexpr std::size_t longest = 200;
    version_.assign(table_.version, ::strnlen(table_.version, longest));
  }
}

void register_implementation(const std::string& file, const gpubench_implementation& table) {
  registered()[file] = &table;
}

std::string declines(const OwnImplementation& implementation, const OpCall& call, std::span<const TensorSpec> tensors,
                     const DeviceInfo& device, bool deterministic) {
  if (call.group.size() > 0) return "collectives are not replaced";
  if (std::any_of(tensors.begin(), tensors.end(), [](const TensorSpec& t) { return !t.layout.blocks.empty(); }))
    return "tensors in blocks have no strides";
  return asked(implementation, CallView(call, tensors, dl_device(device), deterministic).call());
}

std::unique_ptr<Backend> with_implementation(Backend& inner, const OwnImplementation& implementation,
                                             std::unique_ptr<Backend> owner) {
  return std::make_unique<OwnBackend>(inner, implementation, std::move(owner));
}

}  // namespace gpubench
