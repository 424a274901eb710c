#include "reference/ops/sum_error_bound.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "reference/ops/sum_error_bound.h"

namespace gpubench {

std::string number_text(double value) {
  std::array<char, 40> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::general, 6).ptr;
  return {digits.data(), end};
}

std::string power_text(double power_of_two) {
  return power_of_two == 0.0 ? "0" : "2^" + std::to_string(std::ilogb(power_of_two));
}

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

}  // namespace gpubench
