#include "reference/ops/attribute_text.h"

#include <array>
#include <charconv>

namespace gpubench {

void AttributeText::append(std::string_view part) {
  if (!text_.empty()) text_ += ", ";
  text_ += part;
}

AttributeText& AttributeText::flag(std::string_view name, bool set) {
  if (set) append(name);
  return *this;
}

AttributeText& AttributeText::number(std::string_view name, double value, double standard) {
  if (value == standard) return *this;
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return word(name, std::string_view(digits.data(), end));
}

AttributeText& AttributeText::number(std::string_view name, std::int64_t value, std::int64_t standard) {
  return value == standard ? *this : word(name, std::to_string(value));
}

AttributeText& AttributeText::word(std::string_view name, std::string_view value) {
  if (!value.empty()) append(std::string(name) + "=" + std::string(value));
  return *this;
}

}  // namespace gpubench
