#include "harness/run/forwarding_backend.h"

#include <array>

#include "harness/core/call_view.h"
#include "harness/core/error.h"

namespace gpubench {
namespace {

using Text = std::array<char, 512>;

/// A message from the user's code, which may not even be terminated.
std::string text_of(const Text& text) {
  const std::string_view all(text.data(), text.size());
  return std::string(all.substr(0, all.find('\0')));
}

struct OwnPlan final : PlanImpl {
  OwnPlan(const OpCall& call, std::span<const TensorSpec> tensors) : view(call, tensors), label(call.label) {}
  [[nodiscard]] std::string implementation() const override { return name; }
  [[nodiscard]] std::size_t workspace_bytes() const override { return workspace; }

  CallView view;
  std::string label, name;
  std::size_t workspace = 0;
};

class OwnBackend final : public ForwardingBackend {
 public:
  OwnBackend(Backend& inner, const gpubench_implementation& table, std::unique_ptr<Backend> owner)
      : ForwardingBackend(inner, std::move(owner)), table_(table), name_("impl:" + std::string(table.name)) {}

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    auto own = std::make_shared<OwnPlan>(call, tensors);
    Text why{};
    if (table_.offers(&own->view.call(), &own->workspace, why.data(), why.size()) != 0) {
      return ForwardingBackend::plan(call, tensors, options);
    }
    own->name = name_;
    return own;
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    const auto own = std::dynamic_pointer_cast<const OwnPlan>(plan);
    if (own == nullptr) return ForwardingBackend::bind(plan, tensors, workspace);
    return inner().launch_of([own, placed = own->view.placed(tensors), workspace, &table = table_](void* stream) {
      gpubench_call call = own->view.call();
      call.tensors = placed.data();
      Text what{};
      if (table.run(&call, workspace.data, stream, what.data(), what.size()) == 0) return;
      throw BackendError(own->name + ", op '" + own->label + "': " + text_of(what));
    });
  }

 private:
  const gpubench_implementation& table_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Backend> with_implementation(Backend& inner, const gpubench_implementation& implementation,
                                             std::unique_ptr<Backend> owner) {
  if (implementation.abi_version != GPUBENCH_ABI_VERSION ||
      implementation.struct_size != sizeof(gpubench_implementation)) {
    throw UsageError("the implementation was built for version " + std::to_string(implementation.abi_version) +
                     " of the interface, with a table of " + std::to_string(implementation.struct_size) +
                     " bytes; expected version " + std::to_string(GPUBENCH_ABI_VERSION) + " and " +
                     std::to_string(sizeof(gpubench_implementation)) +
                     ": build it with this gpubench's harness/core/implementation.h");
  }
  return std::make_unique<OwnBackend>(inner, implementation, std::move(owner));
}

}  // namespace gpubench
