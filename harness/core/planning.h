// What backends make plans and op tables from, so that each writes only what is its own: how work runs, and who plans
// it.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "harness/core/backend.h"
#include "harness/core/error.h"

namespace gpubench {

/// A plan of class `OwnPlan` (PlanImpl with `Launch bind(std::span<const Tensor>, Workspace) const`, by which a backend
/// knows its own) whose bind() is `binder(tensors, workspace)`.
template <class OwnPlan, class Binder>
[[nodiscard]] Plan plan_bound_by(std::string implementation, std::size_t workspace_bytes, Binder binder) {
  class BinderPlan final : public OwnPlan {
   public:
    BinderPlan(std::string name, std::size_t bytes, Binder held)
        : name_(std::move(name)), bytes_(bytes), binder_(std::move(held)) {}
    [[nodiscard]] std::string implementation() const override { return name_; }
    [[nodiscard]] std::size_t workspace_bytes() const override { return bytes_; }
    [[nodiscard]] Launch bind(std::span<const Tensor> tensors, Workspace workspace) const override {
      return binder_(tensors, workspace);
    }

   private:
    std::string name_;
    std::size_t bytes_;
    Binder binder_;
  };
  return std::make_shared<BinderPlan>(std::move(implementation), workspace_bytes, std::move(binder));
}

/// A line of a backend's op table; `Context` is what its plans may use.
template <class Context>
struct PlannedBy {
  OpKind kind;
  Plan (*plan)(const OpCall& call, std::span<const TensorSpec> tensors, const Context& context) = nullptr;
};

/// The line of `kind`. Throws Unsupported naming the backend when the table has none.
template <class Context>
[[nodiscard]] const PlannedBy<Context>& line_of(const std::initializer_list<PlannedBy<Context>>& table, OpKind kind,
                                                std::string_view backend) {
  for (const PlannedBy<Context>& line : table) {
    if (line.kind == kind) return line;
  }
  throw Unsupported("the " + std::string(backend) + " backend has no op '" + std::string(kind.name) + "'");
}

}  // namespace gpubench
