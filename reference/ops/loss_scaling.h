// Loss scaling for gradients in 16 bits: Micikevicius et al., arXiv 1710.03740, by the rules of torch.amp.GradScaler.
//
// The scale is a tensor. It is the gradient that flows into the loss (the seed of differentiate()), so that every
// gradient comes scaled; unscale takes it off again and says whether one of them is infinite or NaN; the optimizer then
// leaves everything as it was (AdamW::skips, Sgd::skips), and update_scale adapts the scale.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind unscale_kind{"unscale", "scale g*", "found_inf g'*", {}, R"(
Takes the loss scale off gradients, and says whether one of them is infinite or NaN.
scale, found_inf: f32 [1]
g: any shape
g': f32 (f64 for f64): an update of g where that is f32 itself, a tensor of its own where it is narrower

g' = g / scale; found_inf is 1 where any g is infinite or NaN, else 0. In f32, small gradients keep their bits.

Source: Micikevicius et al., arXiv 1710.03740; torch.amp.GradScaler)"};

struct Unscale {
  ValueId found_inf;
  std::vector<ValueId> gradients;
};
Unscale unscale(Program& program, const Math& math, std::string label, ValueId scale,
                std::span<const ValueId> gradients);

struct UpdateScale {
  double growth = 2.0;
  double backoff = 0.5;
  int interval = 2000;
  static void visit(auto&& attribute) {
    attribute("growth", &UpdateScale::growth);
    attribute("backoff", &UpdateScale::backoff);
    attribute("interval", &UpdateScale::interval);
  }
};

inline constexpr OpKind update_scale_kind{"update_scale", "scale tracker found_inf", "scale' tracker'",
                                          defaults_of<UpdateScale>, R"(
Adapts the loss scale: lower where a gradient overflowed, higher after a while without.
scale, found_inf: f32 [1]
tracker: i32 [1], steps since the scale changed
scale', tracker': updates

Where found_inf is not 0: scale' = backoff scale, tracker' = 0. Else tracker' = tracker + 1; where that is `interval`,
scale' = growth scale, unless that were infinite, and tracker' = 0.

Source: torch.amp.GradScaler)"};

/// `scale` and `tracker` are updated. Throws ProgramError for factors or an interval that are not positive.
void update_scale(Program& program, const UpdateScale& attributes, std::string label, ValueId scale, ValueId tracker,
                  ValueId found_inf);

}  // namespace gpubench
