// What a derivative rule sees of differentiate(): which gradients are wanted, where they go, and how they add up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

class GradientTape {
 public:
  virtual ~GradientTape() = default;

  /// The gradient that flows into an output of the op; empty where none does (an unused output), and for the loss
  /// itself, whose gradient is one.
  [[nodiscard]] virtual std::optional<ValueId> of(ValueId output) const = 0;
  /// True when the value is the loss that differentiate() started from: its gradient is the constant 1.
  [[nodiscard]] virtual bool is_loss(ValueId output) const = 0;
  /// Whether anybody needs the gradient of this input.
  [[nodiscard]] virtual bool wanted(ValueId input) const = 0;
  /// A reserved value shaped and typed as `input` (bf16 for 8-bit ones) to write its gradient to. For a part of a
  /// packed storage this is the matching part of the packed gradient. Call at most once per input and rule, then
  /// contribute() it.
  [[nodiscard]] virtual ValueId destination(ValueId input) = 0;
  /// Says that `gradient` is (one summand of) the gradient of `input`; several summands are added up.
  virtual void contribute(ValueId input, ValueId gradient) = 0;
  /// "<label of the forward op>.<suffix>", unique.
  [[nodiscard]] virtual std::string label(const OpCall& forward, std::string_view suffix) const = 0;
};

/// The gradient of an output of `call`; empty where none flows. Throws ProgramError when the output is the loss itself:
/// only cross_entropy_forward starts a backward pass by itself, others need a seed gradient.
[[nodiscard]] std::optional<ValueId> incoming_gradient(const OpCall& call, const GradientTape& tape, ValueId output);

/// The gradients of all outputs of a collective: its backward needs every one of them. Throws ProgramError as
/// above, and naming an output that none flows into.
[[nodiscard]] std::vector<ValueId> incoming_gradients(const Program& program, const OpCall& call,
                                                      const GradientTape& tape);

}  // namespace gpubench
