#include "harness/run/definition_hash.h"

#include <fmt/format.h>

#include <vector>

#include "harness/core/hash.h"
#include "harness/parity/fill.h"

namespace gpubench {
namespace {

// Some values of a fill, as they would be stored: whoever changes how tensors are filled changes every definition.
std::uint64_t digest_of(const Fill& fill_kind, DType type) {
  const TensorSpec spec = tensor("definition", type, {4, 16}, Role::input, fill_kind);
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  fill(spec, "definition", 0, bytes);
  return hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::uint64_t digest_of_fills() {
  constexpr std::int64_t low = -3;
  constexpr std::int64_t high = 100;
  std::uint64_t digest = 0;
  const auto add = [&](const Fill& one, DType type) { digest = hash_at(digest, digest_of(one, type)); };
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2})
    add(Fill::normal(1.0), type);
  for (const Fill& one :
       {Fill::positive(1.0), Fill::constant(0.5), Fill::norm_rows(1.0), Fill::pointwise(), Fill::tiny_mix(1.0)})
    add(one, DType::f32);
  for (const Fill& one : {Fill::integers(low, high), Fill::sequence(low, high)}) add(one, DType::i32);
  return digest;
}

}  // namespace

std::string definition_hash(const PlannedCase& planned) {
  static const std::uint64_t fills = digest_of_fills();
  return fmt::format("{:016x}", hash_at(planned.definition, fills));
}

}  // namespace gpubench
