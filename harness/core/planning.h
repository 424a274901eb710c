#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/error.h"

namespace gpubench {

/// A plan of class `OwnPlan` (a backend's PlanImpl with `Launch bind(std::span<const Tensor>, Workspace) const`) whose
/// bind() is `binder(tensors, workspace)`.
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

/// `plan`, an OwnPlan, with the reason of its choice.
template <class OwnPlan>
[[nodiscard]] Plan chosen(const Plan& plan, Choice choice, std::vector<std::string> rejected = {}) {
  class ChosenPlan final : public OwnPlan {
   public:
    ChosenPlan(Plan plan, Choice choice, std::vector<std::string> rejected)
        : plan_(std::move(plan)), choice_(choice), rejected_(std::move(rejected)) {}
    [[nodiscard]] std::string implementation() const override { return plan_->implementation(); }
    [[nodiscard]] std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
    [[nodiscard]] Choice choice() const override { return choice_; }
    [[nodiscard]] std::vector<std::string> rejected() const override { return rejected_; }
    [[nodiscard]] Launch bind(std::span<const Tensor> tensors, Workspace workspace) const override {
      return dynamic_cast<const OwnPlan&>(*plan_).bind(tensors, workspace);
    }

   private:
    Plan plan_;
    Choice choice_;
    std::vector<std::string> rejected_;
  };
  return std::make_shared<ChosenPlan>(plan, choice, std::move(rejected));
}

[[nodiscard]] inline const Plan* find_plan(std::span<const Plan> candidates, const std::string& implementation) {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Plan& plan) { return plan->implementation() == implementation; });
  return found == candidates.end() ? nullptr : &*found;
}

/// Maps an operand to a member of the work: {"x", to<&RotaryArgs::x>}; {"beta?", ...} if only some ops that share the
/// work have it. A member is a pointer to elements, or constructible from a Tensor, or from a Tensor and whether its
/// stores should bypass the caches.
template <class Work>
struct OperandPlace {
  std::string_view operand;
  void (*put)(Work& work, const Tensor& tensor, bool streaming);
};
template <auto member>
inline constexpr auto to = [](auto& work, const Tensor& tensor, bool streaming) {
  using Member = std::remove_cvref_t<decltype(work.*member)>;
  if constexpr (std::is_pointer_v<Member>) {
    work.*member = static_cast<Member>(static_cast<void*>(tensor.data));
  } else if constexpr (std::is_constructible_v<Member, const Tensor&, bool>) {
    work.*member = Member(tensor, streaming);
  } else {
    work.*member = Member(tensor);
  }
};
/// The workspace, instead of an operand's name.
inline constexpr std::string_view workspace_operand = "workspace";

/// Assigns a call's operands to members of the work; skips optional ones that the call lacks.
template <class Work>
class OperandBinder {
 public:
  OperandBinder(const OpCall& call, std::initializer_list<OperandPlace<Work>> places) : inputs_(call.inputs.size()) {
    expect_operands(call.kind, call.kind.inputs, call.attributes, inputs_, "inputs", call.label);
    for (const OperandPlace<Work>& place : places) {
      const bool shared = place.operand.ends_with('?');
      const std::string_view name = place.operand.substr(0, place.operand.size() - (shared ? 1 : 0));
      if (name == workspace_operand) {
        workspace_ = place.put;
      } else if (const auto input = position_of(call.kind.inputs, call.attributes, name)) {
        places_.push_back({*input, place.put});
      } else if (const auto output = position_of(call.kind.outputs, call.attributes, name)) {
        places_.push_back({inputs_ + *output, place.put});
      } else if (!shared && !declares(call.kind.inputs, name) && !declares(call.kind.outputs, name)) {
        throw std::logic_error(std::string(call.kind.name) + " has no operand '" + std::string(name) + "'");
      }
    }
  }

  /// `streams(tensor)`: whether stores to an output outside the inputs' memory should bypass the caches.
  template <class Streams>
  [[nodiscard]] Work bound(const Work& unbound, std::span<const Tensor> tensors, Workspace workspace,
                           const Streams& streams) const {
    Work work = unbound;
    for (const Place& place : places_) {
      const Tensor& tensor = tensors[place.position];
      const auto reads = tensors.first(inputs_);
      const bool in_place =
          std::any_of(reads.begin(), reads.end(), [&tensor](const Tensor& read) { return read.data == tensor.data; });
      place.put(work, tensor, !in_place && streams(tensor));
    }
    if (workspace_ != nullptr) workspace_(work, Tensor{{}, workspace.data}, false);
    return work;
  }

 private:
  using Put = void (*)(Work&, const Tensor&, bool);
  struct Place {
    std::size_t position;
    Put put;
  };
  std::size_t inputs_;
  std::vector<Place> places_;
  Put workspace_ = nullptr;
};

/// Whether a backend's fused op is faster than the ops it replaces. none: not a fused op.
enum class Gain { none, expected, measured };

/// A backend's op and its planning function; `Context` is the data that plans may use.
template <class Context>
struct OpEntry {
  OpKind kind;
  Plan (*plan)(const OpCall& call, std::span<const TensorSpec> tensors, const Context& context) = nullptr;
  Gain gain = Gain::none;
};

template <class Context>
using OpEntries = std::vector<OpEntry<Context>>;

/// The entry of `kind`. Throws Unsupported with the backend's name if no file has it.
template <class Context>
[[nodiscard]] const OpEntry<Context>& find_op(std::span<const OpEntries<Context>> files, OpKind kind,
                                              std::string_view backend) {
  for (const OpEntries<Context>& file : files) {
    if (const auto found = std::ranges::find(file, kind, &OpEntry<Context>::kind); found != file.end()) return *found;
  }
  throw Unsupported("the " + std::string(backend) + " backend has no op '" + std::string(kind.name) + "'");
}

template <class Context>
[[nodiscard]] std::vector<FusionClaim> fusion_claims(std::span<const OpEntries<Context>> files) {
  std::vector<FusionClaim> claims;
  for (const OpEntries<Context>& file : files) {
    for (const auto& [kind, plan, gain] : file) {
      if (gain != Gain::none) claims.push_back({kind, gain == Gain::measured});
    }
  }
  return claims;
}

}  // namespace gpubench
