// A gemm by an emulated unit, which computes only the elements that a probe reads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/parity/precision_probe.h"
#include "reference/ops/gemm.h"
#include "tests/harness/parity/emulated_units.h"
#include "tests/reference/block_scaled_programs.h"

namespace gpubench::testing {

struct NamedUnit {
  std::string what;
  DType a = DType::f32, b = DType::f32, c = DType::f32;
  std::function<double(const Factors8&)> sum;
  std::string name;
  std::function<double(double)> input = {};  ///< the multiplied part of a number; empty: all of it
  bool nvfp4 = false;
  std::function<double(double)> store = {};                 ///< empty: rounded to nearest even
  std::function<double(const Factors8&)> in_odd_rows = {};  ///< empty: as in even rows
};

inline std::function<double(double)> input_bits(int bits, bool cut_off) {
  return [=](double value) {
    if (value == 0.0 || !std::isfinite(value)) return value;
    if (cut_off) return cut(value, bits - 1, -126);
    const int shift = bits - 1 - std::ilogb(value);
    return std::ldexp(std::nearbyint(std::ldexp(value, shift)), -shift);
  };
}

inline std::vector<NamedUnit> known_units() {
  using enum DType;
  const auto bf16_sums = [](const Factors8& f) { return rounded_each_time(f, bf16); };
  const auto f16_sums = [](const Factors8& f) { return rounded_each_time(f, f16); };
  const auto split = [](const Factors8& f) { return split_sum(f, 2, bf16, TensorUnit{16, 25}); };
  const auto split_f16 = [](const Factors8& f) { return split_sum(f, 4, f16, TensorUnit{8, 24}); };
  const auto tf32 = input_bits(11, true);
  return {
      {"f32", f32, f32, f32, fused_f32, "f32, one product at a time"},
      {"bf16 by f32", bf16, bf16, bf16, fused_f32, "f32, one product at a time"},
      {"f64", f64, f64, f64, fused_f64, "f64, one product at a time"},
      {"Volta", f16, f16, f32, TensorUnit{4, 23}, "Volta"},
      {"Volta, f16", f16, f16, f16, TensorUnit{4, 23}, "Volta"},
      {"Turing", f16, f16, f16, TensorUnit{8, 24}, "Turing, Ampere or Ada"},
      {"Ampere, bf16", bf16, bf16, bf16, TensorUnit{8, 24}, "Turing, Ampere or Ada"},
      {"Ampere, tf32", f32, f32, f32, TensorUnit{4, 24}, "Ampere or Ada, tf32", tf32},
      {"Hopper, f16", f16, f16, f16, TensorUnit{16, 25}, "Hopper or Blackwell"},
      {"Hopper, bf16", bf16, bf16, f32, TensorUnit{16, 25}, "Hopper or Blackwell"},
      {"Hopper, tf32", f32, f32, f32, TensorUnit{8, 25}, "Hopper or Blackwell, tf32", tf32},
      {"Ada, e4m3", f8_e4m3, f8_e4m3, bf16, TensorUnit{16, 13, Register::f32_cut_to_13_bits}, "Ada, 8-bit"},
      {"Hopper, e4m3", f8_e4m3, f8_e4m3, bf16, TensorUnit{32, 13, Register::f32_cut_to_13_bits}, "Hopper, 8-bit"},
      {"Hopper, e5m2", f8_e5m2, f8_e4m3, bf16, TensorUnit{32, 13, Register::f32_cut_to_13_bits}, "Hopper, 8-bit"},
      {"Hopper, promoted", f8_e4m3, f8_e4m3, bf16, TensorUnit{32, 13, Register::f32_cut_to_13_bits, 128},
       "Hopper, 8-bit, emptied every 128 products"},
      {"Blackwell, e4m3", f8_e4m3, f8_e4m3, bf16, TensorUnit{32, 25}, "Blackwell, 8-bit"},
      {"Blackwell, nvfp4",
       f4_e2m1,
       f4_e2m1,
       bf16,
       TensorUnit{64, 35, Register::f32_cut, 0, 16},
       "Blackwell, 4-bit",
       {},
       true},
      {"CDNA3, bf16", bf16, bf16, bf16, MatrixCore{8}, "CDNA3"},
      {"CDNA3, xf32", f32, f32, f32, MatrixCore{4}, "CDNA3, xf32", tf32},
      {"f16 sums", f16, f16, f16, f16_sums, "f16, one product at a time"},
      {"f16 sums, Ampere", f16, f16, f16, TensorUnit{8, 24, Register::f16_nearest},
       "f16 on Turing's, Ampere's or Ada's tensor cores"},
      {"f16 sums, Hopper", f16, f16, f16, TensorUnit{16, 25, Register::f16_nearest},
       "f16 on Hopper's or Blackwell's tensor cores"},
      {"bf16 sums", bf16, bf16, bf16, bf16_sums, "bf16, one product at a time"},
      {"split-K in bf16", bf16, bf16, bf16, split, "Hopper or Blackwell, partial sums in bf16"},
      {"split-K in f16", f16, f16, f16, split_f16, "Turing, Ampere or Ada, partial sums in f16"},
  };
}

class EmulatedGemm {
 public:
  EmulatedGemm(NamedUnit unit, const GemmExtents& e, const Math& math = {}, Gemm attributes = {})
      : unit_(std::move(unit)), extents_(e) {
    if (unit_.nvfp4) {
      blocks_ = std::make_unique<BlockScaledProgram>(nvfp4, e, unit_.c);
      program_ = blocks_->program;
    } else {
      const bool f8 = bits_of(unit_.a) == 8;
      const auto add = [this](const char* name, DType type, Shape shape) {
        return program_.add(tensor(name, type, std::move(shape), Role::input));
      };
      const ValueId a = add("a", unit_.a, {e.m, e.k}), b = add("b", unit_.b, {e.k, e.n});
      GemmOperands operands;
      attributes.scaled = f8;
      if (f8) {
        operands.scale_a = add("scale_a", DType::f32, {1});
        operands.scale_b = add("scale_b", DType::f32, {1});
      }
      gemm(program_, attributes, math, "c", a, b, operands,
           program_.reserve(tensor("c", unit_.c, {e.m, e.n}, Role::activation)));
    }
    const OpCall& call = program_.op(0);
    inputs_ = specs_of(program_, call.inputs);
    outputs_ = specs_of(program_, call.outputs);
    specs_.emplace(CallSpecs{call, inputs_, outputs_});
    product_ = *definition(call.kind).product(*specs_);
  }

  /// The unit's results for the elements that the launch wants.
  [[nodiscard]] std::vector<double> results(const ProbeLaunch& launch) const {
    const std::int64_t k = extents_.k, n = extents_.n;
    std::vector<HostTensor> inputs;
    for (const SparseTensor& input : launch.inputs) inputs.push_back(input.dense());
    std::vector<double> all;
    std::vector<double> row;
    std::int64_t last_row = -1;
    std::map<std::int64_t, std::vector<double>> columns;
    for (const std::int64_t element : launch.wanted) {
      if (element / n != last_row) {
        last_row = element / n;
        row = line(inputs, 0, last_row, last_row * k, 1);
      }
      std::vector<double>& b = columns[element % n];
      if (b.empty())
        b = unit_.nvfp4 ? line(inputs, 1, element % n, element % n * k, 1)
                        : line(inputs, 1, element % n, element % n, n);
      const auto& sum_of = unit_.in_odd_rows && last_row % 2 == 1 ? unit_.in_odd_rows : unit_.sum;
      const double sum = sum_of({row, b, min_exponent(unit_.a), min_exponent(unit_.b)}) * product_.factor;
      all.push_back(unit_.store ? unit_.store(sum) : round_to(unit_.c, sum));
    }
    return all;
  }

  [[nodiscard]] const CallSpecs& specs() const { return *specs_; }
  [[nodiscard]] const OpProduct& product() const { return product_; }
  /// A probe after reading this gemm, which must outlive it, and the number of launches.
  [[nodiscard]] std::pair<std::unique_ptr<PrecisionProbe>, int> probed(std::uint64_t seed,
                                                                       std::int64_t ordered = max_ordered) const {
    auto probe = std::make_unique<PrecisionProbe>(*specs_, product_, seed, ordered);
    int launches = 0;
    while (const std::optional<ProbeLaunch> launch = probe->next()) {
      ++launches;
      probe->take(results(*launch));
    }
    return {std::move(probe), launches};
  }

 private:
  [[nodiscard]] std::vector<double> line(const std::vector<HostTensor>& inputs, std::size_t operand, std::int64_t index,
                                         std::int64_t first, std::int64_t stride) const {
    std::vector<double> values;
    const HostTensor& tensor = inputs[operand];
    for (std::int64_t i = 0; i < extents_.k; ++i) {
      double value = tensor.get(first + i * stride);
      if (unit_.nvfp4) value *= inputs[operand + scales_at()].get(index * (extents_.k / 16) + i / 16);
      values.push_back(unit_.input ? unit_.input(value) : value);
    }
    return values;
  }
  // blocks_a and blocks_b follow scale_a and scale_b.
  [[nodiscard]] static std::size_t scales_at() { return 4; }

  NamedUnit unit_;
  GemmExtents extents_;
  std::unique_ptr<BlockScaledProgram> blocks_;
  Program program_;
  std::vector<TensorSpec> inputs_, outputs_;
  std::optional<CallSpecs> specs_;
  OpProduct product_;
};

}  // namespace gpubench::testing
