#include "harness/core/attributes.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace gpubench {
namespace {

std::string number_text(double number) {
  std::array<char, 40> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

std::string quoted(std::string_view attribute, const AttributeValue& value) {
  const bool* set = std::get_if<bool>(&value);
  return "attribute '" + std::string(attribute) + "' is '" + (set != nullptr && *set ? "true" : value_text(value)) +
         "'; expected ";
}

}  // namespace

std::string value_text(const AttributeValue& value) {
  struct Text {
    std::string operator()(bool set) const { return set ? "" : "false"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(std::string_view word) const { return std::string(word); }
    std::string operator()(const std::vector<std::int64_t>& numbers) const {
      std::string text;
      for (const std::int64_t number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
      return text;
    }
  };
  return std::visit(Text{}, value);
}

std::string attribute_text(const std::vector<Attribute>& attributes) {
  std::string text;
  for (const Attribute& attribute : attributes) {
    const std::string value = value_text(attribute.value);
    if (!attribute.shown) continue;
    if (!text.empty()) text += ", ";
    text += attribute.word ? value : std::string(attribute.name) + (value.empty() ? "" : "=" + value);
  }
  return text;
}

std::string with_commas(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

bool as_switch(std::string_view attribute, const AttributeValue& value) {
  if (const bool* set = std::get_if<bool>(&value)) return *set;
  throw UsageError(quoted(attribute, value) + "true or false");
}

std::int64_t as_whole(std::string_view attribute, const AttributeValue& value, std::int64_t least, std::int64_t most) {
  const std::int64_t* number = std::get_if<std::int64_t>(&value);
  if (number != nullptr && *number >= least && *number <= most) return *number;
  throw UsageError(quoted(attribute, value) + "a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
}

double as_real(std::string_view attribute, const AttributeValue& value) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const std::int64_t* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  throw UsageError(quoted(attribute, value) + "a number");
}

std::size_t as_word(std::string_view attribute, const AttributeValue& value, std::span<const std::string_view> words) {
  if (const bool* set = std::get_if<bool>(&value); set != nullptr && words.size() == 2) return *set ? 1 : 0;
  if (const std::string_view* word = std::get_if<std::string_view>(&value)) {
    const auto found = std::find(words.begin(), words.end(), *word);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  }
  throw UsageError(quoted(attribute, value) + "one of: " + with_commas(words));
}

const std::vector<std::int64_t>& as_list(std::string_view attribute, const AttributeValue& value) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  throw UsageError(quoted(attribute, value) + "a list of whole numbers");
}

}  // namespace gpubench
