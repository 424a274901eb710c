// Ops on gradients after the backward pass. Multi-tensor: one call for all parameters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

inline constexpr OpKind gradient_norm_kind{"gradient_norm", "g*", "norm", {}, R"(
The 2-norm over all elements of all gradients.
g: any shape
norm: f32 [1]

norm = sqrt(sum of g^2))"};

struct Clip {
  double limit = 1.0;
  static void visit(auto&& attribute) { attribute("limit", &Clip::limit); }
};

inline constexpr OpKind clip_kind{"clip", "norm g*", "g'*", defaults_of<Clip>, R"(
Scales gradients down to a largest norm.
norm: f32 [1]
g: any shape
g': updates

g' = g min(1, limit / (norm + 1e-6))

Source: torch.nn.utils.clip_grad_norm_)"};

struct AdamW {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  bool copies = false;  ///< with a low-precision copy of every tensor
  bool skips = false;   ///< found_inf is an operand; set by the builders
  bool l2 = false;      ///< decay is added to the gradient: Adam with L2
  static void visit(auto&& attribute) {
    attribute("beta1", &AdamW::beta1);
    attribute("beta2", &AdamW::beta2);
    attribute("epsilon", &AdamW::epsilon);
    attribute("weight_decay", &AdamW::weight_decay);
    attribute("copies", &AdamW::copies);
    attribute("skips", &AdamW::skips);
    attribute("l2", &AdamW::l2);
  }
  [[nodiscard]] bool has(std::string_view operand) const {
    return operand == "found_inf" ? skips : copies && operand.starts_with("copy");
  }
};

inline constexpr OpKind adamw_kind{"adamw", "lr step found_inf? w* g* m* v* copy*?", "w'* m'* v'* copy'*?",
                                   defaults_of<AdamW>, R"(
A step of AdamW (or Adam) for all parameters.
lr: f32 [1]
step: i32 [1], the first is 1
found_inf: f32 [1], when skips: if it is not 0, nothing changes (unscale)
w: f32, any shape
g: as w, any floating-point type
m, v: f32, as w
copy: as w in a lower precision, when copies
w', m', v', copy': updates

m' = beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2) g^2
w' = w - lr (m' / bc1 / (sqrt(v' / bc2) + epsilon) + weight_decay w), bc = 1 - beta^step
copy' = w' rounded to the copy's type
With l2 it is Adam as torch.optim.Adam: weight_decay w is added to g instead.

Source: Loshchilov and Hutter, arXiv 1711.05101 (decoupled weight decay); Adam: Kingma and Ba, arXiv 1412.6980)"};

struct ClipAdamW {
  AdamW adamw;
  double limit = 1.0;
  static void visit(auto&& attribute) {
    attribute("limit", &ClipAdamW::limit);
    attribute.part(&ClipAdamW::adamw);
  }
  [[nodiscard]] bool has(std::string_view operand) const { return adamw.has(operand); }
};

inline constexpr OpKind clip_adamw_kind{"clip_adamw", "norm lr step found_inf? w* g* m* v* copy*?",
                                        "w'* m'* v'* copy'*?", defaults_of<ClipAdamW>, R"(
clip and adamw in one pass. Clipped gradients go into m' and v' unrounded and are not stored.
norm, lr: f32 [1]
step: i32 [1], the first is 1
found_inf: f32 [1], when skips: if it is not 0, nothing changes (unscale)
w: f32, any shape
g: as w, any floating-point type
m, v: f32, as w
copy: as w in a lower precision, when copies
w', m', v', copy': updates

adamw (beta1, beta2, epsilon, weight_decay, l2) of g min(1, limit / (norm + 1e-6)). g stays unchanged.)"};

struct Lion {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;
  bool copies = false;  ///< with a low-precision copy of every tensor
  bool skips = false;   ///< found_inf is an operand; set by the builder
  static void visit(auto&& attribute) {
    attribute("beta1", &Lion::beta1);
    attribute("beta2", &Lion::beta2);
    attribute("weight_decay", &Lion::weight_decay);
    attribute("copies", &Lion::copies);
    attribute("skips", &Lion::skips);
  }
  [[nodiscard]] bool has(std::string_view operand) const {
    return operand == "found_inf" ? skips : copies && operand.starts_with("copy");
  }
};

inline constexpr OpKind lion_kind{"lion", "lr found_inf? w* g* m* copy*?", "w'* m'* copy'*?", defaults_of<Lion>, R"(
A step of Lion for all parameters: of one size for every element.
lr: f32 [1]
found_inf: f32 [1], when skips: if it is not 0, nothing changes (unscale)
w: f32, any shape
g: as w, any floating-point type
m: f32, as w
copy: as w in a lower precision, when copies
w', m', copy': updates

w' = w - lr (sign(beta1 m + (1 - beta1) g) + weight_decay w), m' = beta2 m + (1 - beta2) g
copy' = w' rounded to the copy's type

Source: Chen et al., arXiv 2302.06675)"};

struct Sgd {
  double momentum = 0.9;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool copies = false;  ///< with a low-precision copy of every tensor
  bool skips = false;   ///< found_inf is an operand; set by the builder
  static void visit(auto&& attribute) {
    attribute("momentum", &Sgd::momentum);
    attribute("weight_decay", &Sgd::weight_decay);
    attribute("nesterov", &Sgd::nesterov);
    attribute("copies", &Sgd::copies);
    attribute("skips", &Sgd::skips);
  }
  [[nodiscard]] bool has(std::string_view operand) const {
    return operand == "found_inf" ? skips : copies && operand.starts_with("copy");
  }
};

inline constexpr OpKind sgd_kind{"sgd", "lr found_inf? w* g* m* copy*?", "w'* m'* copy'*?", defaults_of<Sgd>, R"(
A step of gradient descent with momentum for all parameters.
lr: f32 [1]
found_inf: f32 [1], when skips: if it is not 0, nothing changes (unscale)
w: f32, any shape
g: as w, any floating-point type
m: f32, as w
copy: as w in a lower precision, when copies
w', m', copy': updates

d = g + weight_decay w, m' = momentum m + d
w' = w - lr m', or with nesterov w - lr (d + momentum m')
copy' = w' rounded to the copy's type. As torch.optim.SGD with dampening 0; its first step, m' = d, starts at m = 0.

Source: torch.optim.SGD)"};

ValueId gradient_norm(Program& program, const Math& math, std::string label, std::span<const ValueId> gradients);
std::vector<ValueId> clip(Program& program, const Clip& attributes, const Math& math, std::string label, ValueId norm,
                          std::span<const ValueId> gradients);

struct AdamWTensor {
  ValueId weight, gradient, m, v;
  std::optional<ValueId> copy;  ///< for all tensors or none
};
/// Outputs: the updated weights (and copies, m, v), in the order of the op's description.
void adamw(Program& program, AdamW attributes, const Math& math, std::string label, ValueId lr, ValueId step,
           std::span<const AdamWTensor> tensors, std::optional<ValueId> found_inf = {});
void clip_adamw(Program& program, ClipAdamW attributes, const Math& math, std::string label, ValueId norm, ValueId lr,
                ValueId step, std::span<const AdamWTensor> tensors, std::optional<ValueId> found_inf = {});

struct SgdTensor {
  ValueId weight, gradient, m;
  std::optional<ValueId> copy;
};
void lion(Program& program, Lion attributes, const Math& math, std::string label, ValueId lr,
          std::span<const SgdTensor> tensors, std::optional<ValueId> found_inf = {});
void sgd(Program& program, Sgd attributes, const Math& math, std::string label, ValueId lr,
         std::span<const SgdTensor> tensors, std::optional<ValueId> found_inf = {});

/// Common to adamw and clip_adamw: the attributes, and the places of the tensors.
struct AdamWCall {
  AdamW adamw;
  std::optional<double> limit;  ///< of clip_adamw, whose first input is the norm
  std::size_t lr = 0;           ///< index of the input; then come the step, found_inf if the op skips, and the tensors
  std::size_t inputs = 4;       ///< per parameter: w, g, m, v, [copy]

  [[nodiscard]] std::size_t first() const { return lr + (adamw.skips ? 3 : 2); }
};
[[nodiscard]] AdamWCall adamw_call(const OpCall& call);

// Loss scaling for 16-bit gradients: Micikevicius et al., arXiv 1710.03740, by the rules of torch.amp.GradScaler. The
// scale seeds differentiate(), so all gradients are scaled. unscale divides by it and reports infinities and NaNs, on
// which the optimizer changes nothing (AdamW::skips, Sgd::skips); update_scale adapts the scale.

inline constexpr OpKind unscale_kind{"unscale", "scale g*", "found_inf g'*", {}, R"(
Takes the loss scale off gradients, and says whether one of them is infinite or NaN.
scale, found_inf: f32 [1]
g: any shape
g': f32 (f64 for f64): an update of g if g is f32, a separate tensor if g is narrower

g' = g / scale; found_inf is 1 if any g is infinite or NaN, else 0. f32 keeps the bits of small gradients.

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

If found_inf is not 0: scale' = backoff scale, tracker' = 0. Else tracker' = tracker + 1; if that is `interval`,
scale' = growth scale, unless that is infinite, and tracker' = 0.

Source: torch.amp.GradScaler)"};

/// `scale` and `tracker` are updated. Throws ProgramError for factors or an interval that are not positive.
void update_scale(Program& program, const UpdateScale& attributes, std::string label, ValueId scale, ValueId tracker,
                  ValueId found_inf);

}  // namespace gpubench
