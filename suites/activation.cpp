#include "reference/ops/dropout.h"
#include "reference/ops/pointwise.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid of_gpt2() {
  return grid_of({row_point(64, 3072, "gpt2-124m mlp, 64 tokens", Tier::smoke, {"f32"}),
                  row_point(1024, 3072, "gpt2-124m mlp, 1024 tokens", Tier::quick),
                  row_point(8192, 3072, "gpt2-124m mlp", Tier::standard),
                  row_point(8192, 6400, "gpt2-1.5b mlp", Tier::large)});
}
// Rows are pixels: images times height times width.
Grid of_resnet() {
  return grid_of({row_point(3136, 64, "resnet50, first stage, an image", Tier::smoke, {"f32"}),
                  row_point(12544, 256, "resnet50, first stage, 4 images", Tier::quick),
                  row_point(100352, 256, "resnet50, first stage, 32 images", Tier::standard),
                  row_point(802816, 256, "resnet50, first stage, 256 images", Tier::large)});
}
// EfficientNet-B0 (Tan and Le, arXiv 1905.11946).
Grid of_efficientnet() {
  return grid_of({row_point(784, 240, "efficientnet-b0, stage 4, an image", Tier::smoke, {"f32"}),
                  row_point(50176, 96, "efficientnet-b0, stage 2, 4 images", Tier::quick),
                  row_point(401408, 96, "efficientnet-b0, stage 2, 32 images", Tier::standard)});
}

// Nemotron-4 15B (Parmar et al., arXiv 2402.16819).
Grid of_nemotron() {
  return grid_of({row_point(16, 24576, "nemotron-4-15b mlp, 16 tokens", Tier::smoke, {"f32"}),
                  row_point(256, 24576, "nemotron-4-15b mlp, 256 tokens", Tier::quick),
                  row_point(4096, 24576, "nemotron-4-15b mlp", Tier::standard)});
}

// GPT-2 and BERT drop a tenth of each residual branch.
Grid of_residuals() {
  return grid_of({row_point(64, 768, "gpt2-124m residual, 64 tokens", Tier::smoke, {"f32"}),
                  row_point(4096, 768, "gpt2-124m residual, 4096 tokens", Tier::quick),
                  row_point(65536, 768, "gpt2-124m residual, 64 sequences", Tier::standard),
                  row_point(65536, 1024, "bert-large residual, 128 sequences", Tier::large)});
}

using Activation = ValueId (*)(Program&, const Math&, ValueId x);

ValueId gelu(Program& p, const Math& math, ValueId x) { return gelu_forward(p, {}, math, "y", x); }
ValueId relu(Program& p, const Math& math, ValueId x) { return relu_forward(p, math, "y", x); }
ValueId silu(Program& p, const Math& math, ValueId x) { return silu_forward(p, math, "y", x); }
ValueId squared(Program& p, const Math& math, ValueId x) { return squared_relu_forward(p, math, "y", x); }

template <Activation activation>
Forward applied(Program& p, const Case& c, const Recipe& r) {
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("rows"), c.dim("n")}, Role::activation, Fill::pointwise()));
  return {activation(p, r.math, x), {x}};
}

Forward dropped(Program& p, const Case& c, const Recipe& r) {
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("rows"), c.dim("n")}, Role::activation, Fill::normal(1.0)));
  const auto words = [&p](const char* name) {
    return p.add(tensor(name, DType::i32, {2}, Role::scalar, Fill::integers(0, 0x7FFFFFFF)));
  };
  return {dropout(p, {.p = 0.1}, r.math, "y", x, {words("seed"), words("offset")}), {x}};
}

}  // namespace

Suite activation() {
  return {
      "activation",
      "pointwise functions between layers, forward and backward",
      {
          declare_rows("dropout_forward", "x / (1 - p), or 0 with a probability p of 0.1", of_residuals(),
                       forward<dropped>),
          declare_rows("dropout_backward", "its gradient; the mask is drawn again", of_residuals(), backward<dropped>),
          declare_rows("gelu_forward", "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))", of_gpt2(),
                       forward<applied<gelu>>),
          declare_rows("gelu_backward", "its gradient, from x", of_gpt2(), backward<applied<gelu>>),
          declare_rows("relu_forward", "x, or 0 if x is negative", of_resnet(), forward<applied<relu>>),
          declare_rows("relu_backward", "its gradient, from y", of_resnet(), backward<applied<relu>>),
          declare_rows("silu_forward", "x / (1 + exp(-x))", of_efficientnet(), forward<applied<silu>>),
          declare_rows("silu_backward", "its gradient, from x", of_efficientnet(), backward<applied<silu>>),
          declare_rows("squared_relu_forward", "max(0, x)^2", of_nemotron(), forward<applied<squared>>),
          declare_rows("squared_relu_backward", "its gradient, from x", of_nemotron(), backward<applied<squared>>),
      }};
}

}  // namespace gpubench::suites
