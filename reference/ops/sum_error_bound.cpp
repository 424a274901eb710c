#include "reference/ops/sum_error_bound.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace gpubench {

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::fabs(std::frexp(value, &exponent)) == 0.5;
}

std::string number_text(double value) {
  std::array<char, 40> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::general, 6).ptr;
  return {digits.data(), end};
}

std::string power_text(double power_of_two) {
  return power_of_two == 0.0 ? "0" : "2^" + std::to_string(std::ilogb(power_of_two));
}

std::string flushed_text(const Math& math) { return power_text(smallest_normal(math.accumulate)); }

std::string bound_text(std::string rule, const Math& math) {
  return std::move(rule) + ", u = " + power_text(accumulator_roundoff(math));
}

std::string sum_error_text(std::int64_t terms) {
  return "2 u sqrt(" + std::to_string(terms) + ") " + std::string(partial_sum_text);
}

std::string sum_error_bound_text(std::int64_t terms, const Math& math) {
  return bound_text("Rule G: " + sum_error_text(terms), math);
}

std::string sum_error_bound_text(std::string_view terms, const Math& math) {
  return bound_text("Rule G: 2 u sqrt(K) " + std::string(partial_sum_text) + ", " + std::string(terms), math);
}

std::string lost_factor_text(double lost, std::string_view operand) {
  return lost == 0.0 ? "" : " + " + number_text(lost) + " |" + std::string(operand) + "|";
}

namespace {

// A unit that adds `block` products and the old sum at once: aligns them to the largest, keeps `fraction` bits below
// its leading bit, and truncates the result to `significand` bits.
struct BlockAdder {
  int significand, block, fraction;
};
constexpr BlockAdder tensor_core_16_bit{24, 8, 24};  // sm_80, sm_89; from sm_90: blocks of 16 and one more bit
constexpr BlockAdder tensor_core_tf32{24, 4, 24};    // sm_80; sm_90: blocks of 8 and one more bit
constexpr BlockAdder tensor_core_8_bit{14, 16, 13};  // sm_89; sm_90: blocks of 32; from sm_100: 24 bits
// Block-scaled products, first on sm_100. Scales are exact: E8M0 moves the exponent; e4m3 extends a product's four bits
// to twelve.
constexpr BlockAdder tensor_core_block_scaled_8_bit{24, 32, 25};
constexpr BlockAdder tensor_core_block_scaled_4_bit{24, 64, 35};

// Without fast accumulation, sm_90's libraries empty the 14-bit register after this many products.
constexpr int promotion_interval = 128;

// tf32 keeps 10 bits after the leading one, bf16 7; in a sum of two bf16 numbers the second starts at the ninth bit or
// below.
constexpr double tf32_spacing = 0x1p-10, bf16_spacing = 0x1p-7, two_bf16_spacing = 0x1p-15;

constexpr double max_splits = 32.0;  // of a sum, in any library

// One step truncates block + 1 terms by up to 2^-fraction of the largest, and the result by 2 u: in u of the partial
// sum, (block + 1) 2^(significand - fraction) + 2 at worst, and half of that on average, towards zero. All steps lose u
// K / block times that half times the partial sums' mean size. This is at most their root mean square, S, half of 2 S;
// without drift it is half of |C| + Q: a quarter of M.
double beta_of(const BlockAdder& adder) {
  return 0.25 * ((adder.block + 1) * std::exp2(adder.significand - adder.fraction) + 2.0);
}

void use(ContractionRule& rule, const BlockAdder& adder) {
  rule.u = std::exp2(-adder.significand);
  rule.block = adder.block;
  rule.beta = beta_of(adder);
}

double steps_of(const ContractionRule& rule, double terms) {
  return 2.0 * std::sqrt(terms) + (rule.block > 0 ? rule.beta * terms / rule.block : 0.0);
}

// n chunks, each with the error E of `chunk` products in the narrow register. Errors that point one way (a quarter, as
// in beta_of) add up, the others as a root of squares; then comes the f32 sum of the chunks. Chunks count as alike: Q /
// sqrt(n) each, and D / n of the drift D = M - Q >= |C|.
double chunked_bound(const ContractionRule& rule, const ProductSum& sum) {
  const double root = std::sqrt(sum.squares);
  const double value = partial_sum_size(sum) - root;
  const double chunks = std::ceil(sum.terms / rule.chunk);
  const double terms = std::min(sum.terms, static_cast<double>(rule.chunk));
  const double of_one = rule.u * steps_of(rule, terms) * (value / chunks + root / std::sqrt(chunks));
  return of_one * (0.25 * chunks + std::sqrt(chunks)) +
         2.0 * unit_roundoff(DType::f32) * std::sqrt(chunks) * (value + root);
}

}  // namespace

double ContractionRule::bound(const ProductSum& sum) const {
  if (sum.terms == 0.0) return 0.0;
  const double size = partial_sum_size(sum);
  const double root = std::sqrt(sum.squares);
  const double normal = size > 0.0 ? std::max(size, least) : 0.0;
  double bound = chunk > 0 ? chunked_bound(*this, sum) : u * normal * steps_of(*this, sum.terms);
  // Both factors are truncated (towards zero, by up to the spacing) or rounded (by up to half of it). Truncation
  // shrinks C by up to twice the spacing, and a drift that cancels later by another share than the rest. The remaining
  // errors are independent and uniform over one spacing, with standard deviation spacing / sqrt(12) per factor: 6
  // sqrt(2 / 12) = 2.45 of Q for six deviations.
  bound += inputs * (2.0 * (size - root) + 2.5 * root);
  // s partial sums rounded to the output's type, and s - 1 additions rounded to it: Rule G over 2 s terms.
  if (split_u > 0.0 && size > 0.0) {
    bound += 2.0 * split_u * std::sqrt(2.0 * std::min(max_splits, sum.terms)) * std::max(size, split_least);
  }
  return bound;
}

std::string ContractionRule::formula(std::string_view terms) const {
  const std::string k(terms);
  const std::string size(partial_sum_text);
  const std::string unit = u == unit_roundoff(DType::f32) || block == 0 ? "u" : power_text(u);
  const auto per_step = [this](const std::string& count) {
    return "(2 sqrt(" + count + ") + " + number_text(beta) + " * " + count + " / " + std::to_string(block) + ")";
  };
  std::string text;
  if (chunk > 0) {
    text = "(n/4 + sqrt(n)) E + 2 u sqrt(n) " + size + ", n = " + k + " / " + std::to_string(chunk) +
           " chunks, E = " + unit + " " + per_step(std::to_string(chunk)) + " (D/n + Q/sqrt(n)), D = max(|C|, 2 S - Q)";
  } else if (block > 0) {
    text = unit + " " + per_step(k) + " " + size;
  } else {
    text = "2 u sqrt(" + k + ") " + size;
  }
  if (inputs > 0.0) text += " + " + power_text(inputs) + " (2 " + size + " + 0.5 Q)";
  if (split_u > 0.0) text += " + " + power_text(16.0 * split_u) + " " + size;
  return text;
}

ContractionRule contraction_rule(const Math& math, DType a, DType b, DType out, bool blocks) {
  ContractionRule rule;
  rule.u = accumulator_roundoff(math);
  rule.least = smallest_normal(math.accumulate);
  if (math.split_k_in_output) {
    rule.split_u = unit_roundoff(out);
    rule.split_least = smallest_normal(out);
  }
  if (math.accumulate != DType::f32) return rule;  // f64 (also on tensor cores), f16, bf16: each sum rounded to nearest
  const int widest = std::max(bits_of(a), bits_of(b));
  if (math.inputs == Math::Inputs::tf32 && widest == 32) {
    use(rule, tensor_core_tf32);
    rule.inputs = tf32_spacing;
  } else if ((math.inputs == Math::Inputs::bf16 || math.inputs == Math::Inputs::two_bf16) && widest == 32) {
    use(rule, tensor_core_16_bit);
    rule.inputs = math.inputs == Math::Inputs::bf16 ? bf16_spacing : two_bf16_spacing;
  } else if (widest == 16 || math.inputs == Math::Inputs::emulated) {
    use(rule, tensor_core_16_bit);
  } else if (blocks) {
    use(rule, widest == 8 ? tensor_core_block_scaled_8_bit : tensor_core_block_scaled_4_bit);
  } else if (widest == 8) {
    use(rule, tensor_core_8_bit);
    if (!math.fast_accumulation) rule.chunk = promotion_interval;
  }
  return rule;
}

ContractionRule contraction_rule(const CallSpecs& op, bool blocks) {
  return contraction_rule(op.call.math, op.inputs[0].dtype, op.inputs[1].dtype, op.outputs[0].dtype, blocks);
}

ContractionRule contraction_rule(const Operands& operands, bool blocks) {
  if (operands.exact_sums) return exact_sums_rule;
  return contraction_rule(operands.call.math, operands.inputs[0].dtype(), operands.inputs[1].dtype(),
                          operands.outputs[0].dtype, blocks);
}

}  // namespace gpubench
