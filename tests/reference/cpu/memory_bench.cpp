// How fast the memory-bound ops run, as a share of the machine's own triad: 256 MB per f32 array, through the backend.
//
// Each iteration runs the op once and the f32 triad once, alternating, so that both meet the same state of the machine;
// the time shown is the op's. GB_per_s is the op's algorithmic rate (median), of_triad its ratio to the triad's
// (medians). A fused op alternates also with the ops that it stands for: of_two_ops is their time over its own.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>

#include "reference/cpu/block_io.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/rotary.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench {
namespace {

constexpr std::int64_t elements = 64 << 20;  // 256 MiB of f32
constexpr std::int64_t columns = 768;
constexpr std::int64_t rows = elements / columns;

/// Numbers between 0.5 and 1.5 that are valid as moments, gradients and logits alike; whole numbers where wanted.
void fill(const Tensor& tensor) {
  const std::int64_t count = tensor.spec.shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = 0.5F + static_cast<float>(i % 1021) / 1021.0F;
    if (tensor.spec.dtype == DType::f32) reinterpret_cast<float*>(tensor.data)[i] = value;
    if (tensor.spec.dtype == DType::bf16) reinterpret_cast<cpu::bf16*>(tensor.data)[i] = cpu::narrow<cpu::bf16>(value);
    if (tensor.spec.dtype == DType::i32) reinterpret_cast<std::int32_t*>(tensor.data)[i] = 1;
  }
}

/// The ops of a program, bound to memory of its own.
class BoundOps {
 public:
  explicit BoundOps(const Program& program) {
    Backend& backend = testing::shared_backend();
    for (const Storage& storage : program.storages())
      buffers_.push_back(backend.allocate(static_cast<std::size_t>(storage.bytes)));
    for (const OpCall& call : program.ops()) bind(program, call);
  }

  /// Seconds of one run.
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
  (void)triad(program, 3.0, Math{}, "op", b, vector_of(program, "c", DType::f32));
  return program;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void alternate_with_triad(benchmark::State& state, const Program& program, const Program* two_ops, double bytes) {
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
  const double rate = bytes / median(op_s);
  const double triad_rate = 12.0 * static_cast<double>(elements) / median(triad_s);
  state.counters["GB_per_s"] = rate / 1e9;
  state.counters["triad_GB_per_s"] = triad_rate / 1e9;
  state.counters["of_triad"] = rate / triad_rate;
  if (parts) state.counters["of_two_ops"] = median(parts_s) / median(op_s);
}

Program copy_program(DType dtype) {
  Program program;
  (void)copy(program, "op", vector_of(program, "x", dtype));
  return program;
}

Program gelu_program(DType dtype, bool backward) {
  Program program;
  const ValueId x = vector_of(program, "x", dtype);
  if (backward) {
    (void)gelu_backward(program, Gelu{}, Math{}, "op", x, vector_of(program, "dy", dtype));
  } else {
    (void)gelu_forward(program, Gelu{}, Math{}, "op", x);
  }
  return program;
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

/// The widest activations of ResNet-50: 256 channels of 56 x 56 pixels.
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

Program gradient_norm_program(DType dtype) {
  Program program;
  (void)gradient_norm(program, Math{}, "op", std::vector{vector_of(program, "g", dtype)});
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

void add_case(const char* name, std::function<Program()> program, double bytes_per_element,
              std::function<Program()> two_ops = {}) {
  benchmark::RegisterBenchmark(name,
                               [=](benchmark::State& state) {
                                 const Program parts = two_ops ? two_ops() : Program();
                                 alternate_with_triad(state, program(), two_ops ? &parts : nullptr,
                                                      bytes_per_element * static_cast<double>(elements));
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(15);
}

void add_loss_and_gradient(const char* name, DType dtype, bool in_place) {
  add_case(
      name, [=] { return loss_and_gradient_program(dtype, in_place, true); }, 2.0 * static_cast<double>(size_of(dtype)),
      [=] { return loss_and_gradient_program(dtype, in_place, false); });
}

}  // namespace
}  // namespace gpubench

int main(int argc, char** argv) {
  using namespace gpubench;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  add_case("triad/f32", triad_program, 12);
  add_case(
      "copy/f32", [] { return copy_program(DType::f32); }, 8);
  add_case(
      "adamw/f32", [] { return adamw_program(false, Clips::no); }, 28);
  add_case(
      "adamw/bf16_gradient_and_copy", [] { return adamw_program(true, Clips::no); }, 28);
  add_case(
      "clip_adamw/f32", [] { return adamw_program(false, Clips::within); }, 28,
      [] { return adamw_program(false, Clips::before); });
  add_case(
      "clip_adamw/bf16_gradient_and_copy", [] { return adamw_program(true, Clips::within); }, 28,
      [] { return adamw_program(true, Clips::before); });
  add_case(
      "gelu_forward/f32", [] { return gelu_program(DType::f32, false); }, 8);
  add_case(
      "gelu_forward/bf16", [] { return gelu_program(DType::bf16, false); }, 4);
  add_case(
      "gelu_backward/f32", [] { return gelu_program(DType::f32, true); }, 12);
  add_case(
      "gelu_backward/bf16", [] { return gelu_program(DType::bf16, true); }, 6);
  add_case(
      "layer_norm_forward/f32", [] { return layer_norm_program(DType::f32, false); }, 8);
  add_case(
      "layer_norm_forward/bf16", [] { return layer_norm_program(DType::bf16, false); }, 4);
  add_case(
      "layer_norm_backward/f32", [] { return layer_norm_program(DType::f32, true); }, 12);
  add_case(
      "layer_norm_backward/bf16", [] { return layer_norm_program(DType::bf16, true); }, 6);
  add_case(
      "residual_norm_forward/f32", [] { return residual_norm_program(DType::f32, true); }, 16,
      [] { return residual_norm_program(DType::f32, false); });
  add_case(
      "residual_norm_forward/bf16", [] { return residual_norm_program(DType::bf16, true); }, 8,
      [] { return residual_norm_program(DType::bf16, false); });
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const std::string name = "batch_norm_relu_forward/" + std::string(gpubench::name(dtype));
    add_case(
        name.c_str(), [=] { return batch_norm_relu_program(dtype, true); }, 3.0 * static_cast<double>(size_of(dtype)),
        [=] { return batch_norm_relu_program(dtype, false); });
  }
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool half : {true, false}) {
      const auto pairing = half ? Rotary::Pairing::half : Rotary::Pairing::interleaved;
      const std::string name =
          std::string("rotary/") + (half ? "half/" : "interleaved/") + std::string(gpubench::name(dtype));
      add_case(
          name.c_str(), [=] { return rotary_program(dtype, pairing); }, 2.0 * static_cast<double>(size_of(dtype)));
    }
  }
  add_case(
      "gradient_norm/f32", [] { return gradient_norm_program(DType::f32); }, 4);
  add_case(
      "gradient_norm/bf16", [] { return gradient_norm_program(DType::bf16); }, 2);
  add_case(
      "cross_entropy_forward/f32", [] { return cross_entropy_program(DType::f32); }, 4);
  add_case(
      "cross_entropy_forward/bf16", [] { return cross_entropy_program(DType::bf16); }, 2);
  add_loss_and_gradient("cross_entropy_forward_backward/f32", DType::f32, false);
  add_loss_and_gradient("cross_entropy_forward_backward/bf16", DType::bf16, false);
  add_loss_and_gradient("cross_entropy_forward_backward/f32_in_place", DType::f32, true);
  add_loss_and_gradient("cross_entropy_forward_backward/bf16_in_place", DType::bf16, true);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
