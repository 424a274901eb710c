#include "harness/parity/faults.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

using Element = std::function<double(double was, std::int64_t linear)>;
constexpr std::uint64_t denormals_used = 7;

std::vector<HostTensor> changed(std::span<const HostTensor> inputs,
                                const std::function<Element(const HostTensor&)>& to) {
  std::vector<HostTensor> all(inputs.begin(), inputs.end());
  for (HostTensor& tensor : all) {
    if (!is_float(tensor.spec.dtype)) continue;
    const Element element = to(tensor);
    for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, element(tensor.get(e), e));
  }
  return all;
}

std::vector<HostTensor> with_element(std::span<const HostTensor> inputs, std::size_t which, double value) {
  std::vector<HostTensor> all(inputs.begin(), inputs.end());
  HostTensor& tensor = all[which];
  const std::uint64_t at = hash(tensor.spec.name, 0) % static_cast<std::uint64_t>(tensor.elements());
  tensor.set(static_cast<std::int64_t>(at), value);
  return all;
}

// The type's smallest positive number: the bits of 1, with or without denormals.
double smallest(DType type) {
  std::array<std::byte, sizeof(double)> stored{};
  store_bits(type, stored.data(), 0, 1);
  return load(type, stored.data());
}

}  // namespace

std::vector<SpecialData> special_data(const OpCall& call, std::span<const HostTensor> inputs,
                                      std::span<const TensorSpec> outputs) {
  const auto result_of = [&](std::span<const HostTensor> tensors) {
    return textbook_outputs({call, views_of(tensors), outputs});
  };
  std::vector<SpecialData> all;
  const std::vector<HostTensor> ordinary = result_of(inputs);
  for (const std::size_t i : some_operands(inputs.size())) {
    const TensorSpec& spec = inputs[i].spec;
    if (!is_float(spec.dtype) || spec.shape.elements() == 0 || spec.dtype == DType::f4_e2m1) continue;
    for (const SpecialKind kind : {SpecialKind::nan, SpecialKind::infinity}) {
      const double value =
          kind == SpecialKind::nan ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
      if (kind == SpecialKind::infinity && !std::isinf(round_to(spec.dtype, value))) continue;
      std::vector<HostTensor> special = with_element(inputs, i, value);
      std::vector<HostTensor> right = result_of(special);
      all.push_back({kind, fmt::format("'{}'", spec.name), std::move(special), std::move(right), ordinary});
    }
  }
  const auto add = [&](SpecialKind kind, std::vector<HostTensor> special, std::vector<HostTensor> wrong) {
    std::vector<HostTensor> right = result_of(special);
    all.push_back({kind, "", std::move(special), std::move(right), std::move(wrong)});
  };
  const auto zero = [](const HostTensor&) { return [](double, std::int64_t) { return 0.0; }; };
  const auto denormal = [](const HostTensor& tensor) {
    return [step = smallest(tensor.spec.dtype)](double was, std::int64_t e) {
      return std::copysign(step * static_cast<double>(1 + mix(static_cast<std::uint64_t>(e)) % denormals_used), was);
    };
  };
  const auto constant = [](const HostTensor& tensor) {
    return [first = tensor.elements() > 0 ? tensor.get(0) : 0.0](double, std::int64_t) { return first; };
  };
  std::vector<HostTensor> zeros = changed(inputs, zero);
  add(SpecialKind::denormals, changed(inputs, denormal), result_of(zeros));
  add(SpecialKind::zeros, std::move(zeros), ordinary);
  add(SpecialKind::constants, changed(inputs, constant), ordinary);
  return all;
}

}  // namespace gpubench
