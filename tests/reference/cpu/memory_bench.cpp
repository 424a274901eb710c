// Rate of memory-bound ops relative to the f32 triad: 256 MB per f32 array, through the backend.
//
// Iterations alternate the op and the triad. The displayed time is the op's. GB_per_s is its algorithmic rate (median),
// of_triad the ratio to the triad's, with bytes as in the op's cost. A fused op also alternates with the ops that it
// replaces: of_two_ops is their time over its time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/definition.h"
#include "reference/ops/dropout.h"
#include "reference/ops/embedding.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/pool.h"
#include "reference/ops/quantize.h"
#include "reference/ops/rotary.h"
#include "reference/ops/softmax.h"
#include "reference/ops/token_groups.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench {
namespace {

constexpr std::int64_t elements = 64 << 20;  // 256 MiB of f32
constexpr std::int64_t columns = 768;
constexpr std::int64_t rows = elements / columns;

/// Numbers from 0.5 to 1.5, valid as moments, gradients and logits; whole numbers for integer types.
void fill(const Tensor& tensor) {
  const std::int64_t count = tensor.spec.shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = 0.5F + static_cast<float>(i % 1021) / 1021.0F;
    if (tensor.spec.dtype == DType::f32) reinterpret_cast<float*>(tensor.data)[i] = value;
    if (tensor.spec.dtype == DType::bf16) reinterpret_cast<cpu::bf16*>(tensor.data)[i] = cpu::narrow<cpu::bf16>(value);
    // Rows in an order without cache hits.
    if (tensor.spec.dtype == DType::i32)
      reinterpret_cast<std::int32_t*>(tensor.data)[i] = static_cast<std::int32_t>(1 + i * 7919 % count);
  }
}

class BoundOps {
 public:
  explicit BoundOps(const Program& program) {
    Backend& backend = testing::shared_backend();
    for (const Storage& storage : program.storages())
      buffers_.push_back(backend.allocate(static_cast<std::size_t>(storage.bytes)));
    for (const OpCall& call : program.ops()) bind(program, call);
  }

  /// Seconds per run.
  double run() const {
    const auto begin = std::chrono::steady_clock::now();
    for (const Launch& launch : launches_) testing::shared_backend().run(launch);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  void bind(const Program& program, const OpCall& call) {
    Backend& backend = testing::shared_backend();
    std::vector<ValueId> ids(call.inputs);
    ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
    std::vector<Tensor> tensors;
    for (const ValueId id : ids) {
      tensors.push_back({program.spec(id), buffers_[static_cast<std::size_t>(program.value(id).storage.index)].data()});
      fill(tensors.back());
    }
    const Plan plan = backend.plan(call, specs_of(program, ids));
    buffers_.push_back(backend.allocate(plan->workspace_bytes()));
    launches_.push_back(backend.bind(plan, tensors, {buffers_.back().data(), plan->workspace_bytes()}));
  }

  std::vector<Buffer> buffers_;
  std::vector<Launch> launches_;
};

ValueId vector_of(Program& program, const char* name, DType dtype) {
  return program.add(tensor(name, dtype, Shape{elements}, Role::activation));
}

Program triad_program() {
  Program program;
  const ValueId b = vector_of(program, "b", DType::f32);
  (void)triad(program, {3.0}, Math{}, "op", b, vector_of(program, "c", DType::f32));
  return program;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void alternate_with_triad(benchmark::State& state, const Program& program, const Program* two_ops) {
  const BoundOps op(program);
  const BoundOps triad(triad_program());
  std::optional<BoundOps> parts;
  if (two_ops != nullptr) parts.emplace(*two_ops);
  std::vector<double> op_s;
  std::vector<double> triad_s;
  std::vector<double> parts_s;
  for (auto _ : state) {
    triad_s.push_back(triad.run());
    op_s.push_back(op.run());
    if (parts) parts_s.push_back(parts->run());
    state.SetIterationTime(op_s.back());
  }
  const double rate = cost_of(program).bytes / median(op_s);
  const double triad_rate = 12.0 * static_cast<double>(elements) / median(triad_s);
  state.counters["GB_per_s"] = rate / 1e9;
  state.counters["triad_GB_per_s"] = triad_rate / 1e9;
  state.counters["of_triad"] = rate / triad_rate;
  if (parts) state.counters["of_two_ops"] = median(parts_s) / median(op_s);
}

/// Calls op(program, one vector for each of `names`...).
template <class Op, class... Names>
std::function<Program()> on_vectors(DType dtype, Op op, Names... names) {
  return [=] {
    Program program;
    [&](auto... x) { (void)op(program, x...); }(vector_of(program, names, dtype)...);
    return program;
  };
}

/// The same for tensors of a shape.
template <class Op, class... Names>
std::function<Program()> on_tensors(DType dtype, Shape shape, Op op, Names... names) {
  return [=] {
    Program program;
    [&](auto... x) { (void)op(program, x...); }(program.add(tensor(names, dtype, shape, Role::activation))...);
    return program;
  };
}

Program layer_norm_program(DType dtype, bool backward) {
  Program program;
  const ValueId x = program.add(tensor("x", dtype, Shape{rows, columns}, Role::activation));
  const ValueId gamma = program.add(tensor("gamma", DType::f32, Shape{columns}, Role::parameter));
  if (!backward) {
    const ValueId beta = program.add(tensor("beta", DType::f32, Shape{columns}, Role::parameter));
    (void)layer_norm_forward(program, LayerNorm{}, Math{}, "op", x, gamma, beta);
    return program;
  }
  const ValueId dy = program.add(tensor("dy", dtype, Shape{rows, columns}, Role::gradient));
  const ValueId mean = program.add(tensor("mean", DType::f32, Shape{rows}, Role::statistic));
  const ValueId rstd = program.add(tensor("rstd", DType::f32, Shape{rows}, Role::statistic));
  (void)layer_norm_backward(program, LayerNorm{}, Math{}, "op", dy, x, gamma, mean, rstd);
  return program;
}

Program residual_norm_program(DType dtype, bool fused) {
  Program program;
  const ValueId x = program.add(tensor("x", dtype, Shape{rows, columns}, Role::activation));
  const ValueId r = program.add(tensor("r", dtype, Shape{rows, columns}, Role::activation));
  const ValueId gamma = program.add(tensor("gamma", DType::f32, Shape{columns}, Role::parameter));
  const ValueId beta = program.add(tensor("beta", DType::f32, Shape{columns}, Role::parameter));
  if (fused) {
    (void)residual_norm_forward(program, {}, Math{}, "op", x, r, gamma, beta);
  } else {
    (void)layer_norm_forward(program, {}, Math{}, "norm", add(program, Math{}, "sum", x, r), gamma, beta);
  }
  return program;
}

/// ResNet-50's widest activations: 256 channels of 56 x 56 pixels.
Program batch_norm_relu_program(DType dtype, bool fused) {
  Program program;
  const std::int64_t channels = 256;
  const Shape shape{elements / channels, channels};
  const auto data = [&](const char* name) { return program.add(tensor(name, dtype, shape, Role::activation)); };
  const auto of_channels = [&](const char* name) {
    return program.add(tensor(name, DType::f32, Shape{channels}, Role::state));
  };
  const ValueId x = data("x"), r = data("r");
  const BatchNormChannels of{of_channels("gamma"), of_channels("beta"), of_channels("mean0"), of_channels("var0")};
  if (fused) {
    (void)batch_norm_relu_forward(program, {}, Math{}, "op", x, of, r);
  } else {
    (void)relu_forward(program, Math{}, "relu",
                       add(program, Math{}, "sum", batch_norm_forward(program, {}, Math{}, "norm", x, of).y, r));
  }
  return program;
}

/// The gradients, of two gradients of y with a residual.
Program batch_norm_relu_backward_program(DType dtype, bool residual, bool fused) {
  Program program;
  const std::int64_t channels = 256;
  const auto data = [&](const char* name) {
    return program.add(tensor(name, dtype, Shape{elements / channels, channels}, Role::activation));
  };
  const auto of_channels = [&](const char* name) {
    return program.add(tensor(name, DType::f32, Shape{channels}, Role::state));
  };
  const BatchNormReluSaved saved{data("x"), of_channels("gamma"), of_channels("mean"), of_channels("rstd"), data("y")};
  const ValueId dy = data("dy");
  const auto dy2 = residual ? std::optional(data("dy2")) : std::nullopt;
  if (fused) {
    (void)batch_norm_relu_backward(program, {residual, residual}, Math{}, "op", saved, dy, dy2);
  } else {
    const ValueId sum = residual ? add(program, Math{}, "sum", dy, *dy2) : dy;
    (void)batch_norm_backward(program, Math{}, "norm", relu_backward(program, Math{}, "relu", saved.y, sum), saved.x,
                              saved.gamma, saved.mean, saved.rstd);
  }
  return program;
}

Program rotary_program(DType dtype, Rotary::Pairing pairing) {
  Program program;
  const std::int64_t heads = 32;
  const std::int64_t d = 128;
  const std::int64_t s = elements / (heads * d);
  const ValueId x = program.add(tensor("x", dtype, Shape{1, s, heads, d}, Role::activation));
  const ValueId cos = program.add(tensor("cos", DType::f32, Shape{s, d / 2}, Role::input));
  const ValueId sin = program.add(tensor("sin", DType::f32, Shape{s, d / 2}, Role::input));
  (void)rotary(program, {.pairing = pairing}, Math{}, "op", x, {cos, sin});
  return program;
}

enum class Clips { no, before, within };

Program adamw_program(bool mixed, Clips clips) {
  Program program;
  const ValueId lr = program.add(tensor("lr", DType::f32, Shape{1}, Role::scalar));
  const ValueId step = program.add(tensor("step", DType::i32, Shape{1}, Role::scalar));
  AdamWTensor t;
  t.weight = vector_of(program, "w", DType::f32);
  t.gradient = vector_of(program, "g", mixed ? DType::bf16 : DType::f32);
  t.m = vector_of(program, "m", DType::f32);
  t.v = vector_of(program, "v", DType::f32);
  AdamW hyper;
  hyper.copies = mixed;
  if (mixed) t.copy = vector_of(program, "copy", DType::bf16);
  if (clips == Clips::no) {
    adamw(program, hyper, Math{}, "op", lr, step, std::vector{t});
    return program;
  }
  const ValueId norm = program.add(tensor("norm", DType::f32, Shape{1}, Role::scalar));
  if (clips == Clips::before) {
    t.gradient = clip(program, {}, Math{}, "clip", norm, std::vector{t.gradient})[0];
    adamw(program, hyper, Math{}, "step_only", lr, step, std::vector{t});
  } else {
    clip_adamw(program, {hyper}, Math{}, "op", norm, lr, step, std::vector{t});
  }
  return program;
}

ValueId scalar(Program& program, const char* name, DType dtype = DType::f32, std::int64_t count = 1) {
  return program.add(tensor(name, dtype, Shape{count}, Role::scalar));
}

Program one_moment_program(bool is_lion, DType gradient) {
  Program program;
  const ValueId lr = scalar(program, "lr");
  const std::vector<SgdTensor> t{{vector_of(program, "w", DType::f32),
                                  vector_of(program, "g", gradient),
                                  vector_of(program, "m", DType::f32),
                                  {}}};
  is_lion ? lion(program, {}, Math{}, "op", lr, t) : sgd(program, {}, Math{}, "op", lr, t);
  return program;
}

Program batch_norm_program(DType dtype, bool backward) {
  Program program;
  const std::int64_t c = 256;
  const auto channel = [&](const char* name) {
    return program.add(tensor(name, DType::f32, Shape{c}, Role::parameter));
  };
  const Shape image{64, 64, elements / c / 4096, c};
  const ValueId x = program.add(tensor("x", dtype, image, Role::activation));
  if (backward) {
    const ValueId dy = program.add(tensor("dy", dtype, image, Role::gradient));
    (void)batch_norm_backward(program, Math{}, "op", dy, x, channel("gamma"), channel("mean"), channel("rstd"));
  } else {
    (void)batch_norm_forward(program, {}, Math{}, "op", x,
                             {channel("gamma"), channel("beta"), channel("running_mean"), channel("running_var")});
  }
  return program;
}

Program tokens_program(DType dtype, int which) {
  Program program;
  const ValueId x = program.add(tensor("x", dtype, Shape{rows + 1, columns}, Role::activation));
  const ValueId indices = program.add(tensor("indices", DType::i32, Shape{rows + 1}, Role::input));
  const ValueId places = program.add(tensor("places", DType::i32, Shape{rows + 1, 1}, Role::input));
  switch (which) {
    case 0: (void)embedding_forward(program, "op", x, indices); break;
    case 1: (void)embedding_backward(program, Math{}, "op", x, indices, rows + 2); break;
    case 2: (void)permute_tokens(program, Math{}, "op", x, indices); break;
    default: (void)unpermute_tokens(program, Math{}, "op", x, places); break;
  }
  return program;
}

Program cross_entropy_program(DType dtype) {
  Program program;
  const std::int64_t classes = 50257;
  const std::int64_t tokens = elements / classes;
  const ValueId logits = program.add(tensor("logits", dtype, Shape{tokens, classes}, Role::activation));
  (void)cross_entropy_forward(program, Math{}, "op", logits,
                              program.add(tensor("labels", DType::i32, Shape{tokens}, Role::input)));
  return program;
}

/// Logits of GPT-2's vocabulary.
Program loss_and_gradient_program(DType dtype, bool in_place, bool fused) {
  Program program;
  const std::int64_t classes = 50257;
  const std::int64_t tokens = elements / classes;
  const ValueId logits = program.add(tensor("logits", dtype, Shape{tokens, classes}, Role::activation));
  const ValueId labels = program.add(tensor("labels", DType::i32, Shape{tokens}, Role::input));
  if (fused) {
    (void)cross_entropy_forward_backward(program, Math{}, "op", logits, labels, in_place);
  } else {
    const ValueId lse = cross_entropy_forward(program, Math{}, "loss", logits, labels).lse;
    (void)cross_entropy_backward(program, Math{}, "gradient", logits, labels, lse, in_place);
  }
  return program;
}

void add_case(const std::string& name, std::function<Program()> program, std::function<Program()> two_ops = {}) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 const Program parts = two_ops ? two_ops() : Program();
                                 alternate_with_triad(state, program(), two_ops ? &parts : nullptr);
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(15);
}

void add_loss_and_gradient(const std::string& name, DType dtype, bool in_place) {
  add_case(
      name, [=] { return loss_and_gradient_program(dtype, in_place, true); },
      [=] { return loss_and_gradient_program(dtype, in_place, false); });
}

/// Every other op, with operands of this type.
void add_both_types(DType dtype) {
  const std::string type = "/" + std::string(name(dtype));
  const Math math;
  const auto vectors = [&](const char* op, auto build, auto... names) {
    add_case(op + type, on_vectors(dtype, build, names...));
  };
  using P = Program&;
  using V = ValueId;
  vectors(
      "copy", [](P p, V x) { return copy(p, "op", x); }, "x");
  vectors(
      "add", [=](P p, V a, V b) { return add(p, math, "op", a, b); }, "a", "b");
  vectors(
      "scale", [=](P p, V x) { return scale(p, {2.0}, math, "op", x); }, "x");
  vectors(
      "gelu_forward", [=](P p, V x) { return gelu_forward(p, {}, math, "op", x); }, "x");
  vectors(
      "gelu_backward", [=](P p, V x, V dy) { return gelu_backward(p, {}, math, "op", x, dy); }, "x", "dy");
  vectors(
      "relu_forward", [=](P p, V x) { return relu_forward(p, math, "op", x); }, "x");
  vectors(
      "relu_backward", [=](P p, V y, V dy) { return relu_backward(p, math, "op", y, dy); }, "y", "dy");
  vectors(
      "silu_forward", [=](P p, V x) { return silu_forward(p, math, "op", x); }, "x");
  vectors(
      "silu_backward", [=](P p, V x, V dy) { return silu_backward(p, math, "op", x, dy); }, "x", "dy");
  vectors(
      "swiglu_forward", [=](P p, V g, V u) { return swiglu_forward(p, math, "op", g, u); }, "g", "u");
  vectors(
      "swiglu_backward", [=](P p, V g, V u, V dy) { return swiglu_backward(p, math, "op", g, u, dy).dup; }, "g", "u",
      "dy");
  vectors(
      "dropout",
      [=](P p, V x) {
        return dropout(p, {.p = 0.1}, math, "op", x,
                       {scalar(p, "seed", DType::i32, 2), scalar(p, "offset", DType::i32, 2)});
      },
      "x");
  vectors(
      "gradient_norm", [=](P p, V g) { return gradient_norm(p, math, "op", std::vector{g}); }, "g");
  vectors(
      "clip", [=](P p, V g) { return clip(p, {}, math, "op", scalar(p, "norm"), std::vector{g}); }, "g");
  vectors(
      "unscale", [=](P p, V g) { return unscale(p, math, "op", scalar(p, "scale"), std::vector{g}).found_inf; }, "g");
  vectors(
      "amax", [=](P p, V x) { return amax(p, math, "op", x); }, "x");
  vectors(
      "quantize", [=](P p, V x) { return quantize(p, {}, math, "op", x, scalar(p, "scale")).values; }, "x");
  for (const BlockFormat format : {BlockFormat::mxfp8_e4m3, BlockFormat::mxfp4, BlockFormat::nvfp4}) {
    vectors(("quantize_" + std::string(name(format))).c_str(),
            [=](P p, V x) {
              const auto scale = format == BlockFormat::nvfp4 ? std::optional(scalar(p, "scale")) : std::nullopt;
              return quantize_blocks(p, {.format = format}, math, "op", x, scale).values;
            },
            "x");
  }
  const DType other = dtype == DType::f32 ? DType::bf16 : DType::f32;
  vectors(
      "cast", [=](P p, V x) { return cast(p, other, "op", x); }, "x");

  const auto matrices = [&](const char* op, auto build, auto... names) {
    add_case(op + type, on_tensors(dtype, Shape{rows, columns}, build, names...));
  };
  matrices(
      "softmax_forward", [=](P p, V x) { return softmax_forward(p, math, "op", x); }, "x");
  matrices(
      "softmax_backward", [=](P p, V y, V dy) { return softmax_backward(p, math, "op", y, dy); }, "y", "dy");
  matrices(
      "column_sum", [=](P p, V x) { return column_sum(p, math, "op", x); }, "x");
  matrices(
      "transpose",
      [](P p, V x) {
        return transpose(p, {{1, 0}}, "op", x);
      },
      "x");

  const auto pools = [&](const char* op, auto build) {
    add_case(op + type, on_tensors(dtype, Shape{elements / 64 / 64 / 64, 64, 64, 64}, build, "x"));
  };
  constexpr Pool window{.window_h = 3, .window_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
  pools("max_pool_forward", [=](P p, V x) { return max_pool_forward(p, window, math, "op", x).y; });
  pools("max_pool_both_ways", [=](P p, V x) {
    const MaxPoolForward y = max_pool_forward(p, window, math, "forward", x);
    return max_pool_backward(p, window, math, "op", y.y, y.index, 64, 64);
  });
  pools("average_pool_forward", [=](P p, V x) { return average_pool_forward(p, window, math, "op", x); });
  pools("average_pool_both_ways", [=](P p, V x) {
    return average_pool_backward(p, window, math, "op", average_pool_forward(p, window, math, "forward", x), 64, 64);
  });
  pools("global_average_pool", [=](P p, V x) { return global_average_pool_forward(p, math, "op", x); });

  add_case("layer_norm_forward" + type, [=] { return layer_norm_program(dtype, false); });
  add_case("layer_norm_backward" + type, [=] { return layer_norm_program(dtype, true); });
  add_case(
      "residual_norm_forward" + type, [=] { return residual_norm_program(dtype, true); },
      [=] { return residual_norm_program(dtype, false); });
  add_case("batch_norm_forward" + type, [=] { return batch_norm_program(dtype, false); });
  add_case(
      "batch_norm_relu_forward" + type, [=] { return batch_norm_relu_program(dtype, true); },
      [=] { return batch_norm_relu_program(dtype, false); });
  add_case("batch_norm_backward" + type, [=] { return batch_norm_program(dtype, true); });
  for (const bool residual : {false, true})
    add_case((residual ? "batch_norm_residual_relu_backward" : "batch_norm_relu_backward") + type,
             [=] { return batch_norm_relu_backward_program(dtype, residual, true); },
             [=] { return batch_norm_relu_backward_program(dtype, residual, false); });
  for (const auto pairing : {Rotary::Pairing::half, Rotary::Pairing::interleaved}) {
    const std::string way = pairing == Rotary::Pairing::half ? "/half" : "/interleaved";
    add_case("rotary" + way + type, [=] { return rotary_program(dtype, pairing); });
  }
  add_case("sgd" + type, [=] { return one_moment_program(false, dtype); });
  add_case("lion" + type, [=] { return one_moment_program(true, dtype); });
  add_case("embedding_forward" + type, [=] { return tokens_program(dtype, 0); });
  add_case("embedding_backward" + type, [=] { return tokens_program(dtype, 1); });
  add_case("permute_tokens" + type, [=] { return tokens_program(dtype, 2); });
  add_case("unpermute_tokens" + type, [=] { return tokens_program(dtype, 3); });
  add_case("cross_entropy_forward" + type, [=] { return cross_entropy_program(dtype); });
  add_loss_and_gradient("cross_entropy_forward_backward" + type, dtype, false);
  add_loss_and_gradient("cross_entropy_forward_backward_in_place" + type, dtype, true);
}

}  // namespace
}  // namespace gpubench

int main(int argc, char** argv) {
  using namespace gpubench;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  add_case("triad/f32", triad_program);
  add_case("adamw/f32", [] { return adamw_program(false, Clips::no); });
  add_case("adamw/bf16_gradient_and_copy", [] { return adamw_program(true, Clips::no); });
  add_case(
      "clip_adamw/f32", [] { return adamw_program(false, Clips::within); },
      [] { return adamw_program(false, Clips::before); });
  add_case(
      "clip_adamw/bf16_gradient_and_copy", [] { return adamw_program(true, Clips::within); },
      [] { return adamw_program(true, Clips::before); });
  for (const DType dtype : {DType::f32, DType::bf16}) add_both_types(dtype);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
