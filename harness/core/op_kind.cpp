#include "harness/core/op_kind.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace gpubench {
namespace {

struct Operand {
  std::string_view name;
  bool optional = false, list = false;
};

/// Takes the first operand off `operands`.
Operand next(std::string_view& operands) {
  const std::size_t end = std::min(operands.find(' '), operands.size());
  Operand operand{operands.substr(0, end)};
  operands.remove_prefix(std::min(end + 1, operands.size()));
  operand.optional = operand.name.ends_with('?');
  if (operand.optional) operand.name.remove_suffix(1);
  operand.list = operand.name.ends_with('*');
  if (operand.list) operand.name.remove_suffix(1);
  return operand;
}

/// Calls visit(operand) for those that a call with these attributes has.
template <class Visit>
void for_each_operand(std::string_view operands, const Attributes& attributes, const Visit& visit) {
  while (!operands.empty()) {
    const Operand operand = next(operands);
    if (!operand.optional || attributes.has(operand.name)) visit(operand);
  }
}

std::string number_text(double number) {
  std::array<char, 40> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

std::string value_text(const Attribute& attribute) {
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
  return std::visit(Text{}, attribute.value);
}

}  // namespace

std::string attribute_text(const std::vector<Attribute>& attributes) {
  std::string text;
  for (const Attribute& attribute : attributes) {
    const std::string value = value_text(attribute);
    if (!attribute.shown) continue;
    if (!text.empty()) text += ", ";
    text += attribute.word ? value : std::string(attribute.name) + (value.empty() ? "" : "=" + value);
  }
  return text;
}

std::optional<std::size_t> position_of(std::string_view operands, const Attributes& attributes, std::string_view name,
                                       std::size_t i) {
  std::optional<std::size_t> found;
  std::size_t position = 0;
  std::size_t lists = 0;
  bool of_list = false;
  for_each_operand(operands, attributes, [&](const Operand& operand) {
    if (operand.name == name) {
      found = position;
      of_list = operand.list;
    }
    ++position;
    lists += operand.list ? 1 : 0;
  });
  if (found && of_list) *found += i * lists;
  return found && (of_list || i == 0) ? found : std::nullopt;
}

bool declares(std::string_view operands, std::string_view name) {
  while (!operands.empty()) {
    if (next(operands).name == name) return true;
  }
  return false;
}

std::vector<OperandName> operand_names(std::string_view operands, const Attributes& attributes, std::size_t count) {
  std::vector<OperandName> names;
  std::vector<std::string> lists;
  for_each_operand(operands, attributes, [&](const Operand& operand) {
    if (operand.list) {
      lists.emplace_back(operand.name);
    } else {
      names.push_back({std::string(operand.name), 0});
    }
  });
  for (std::size_t item = 0; !lists.empty() && names.size() < count; ++item) {
    for (const std::string& list : lists) names.push_back({list, item});
  }
  return names;
}

void expect_operands(const OpKind& kind, std::string_view operands, const Attributes& attributes, std::size_t given,
                     std::string_view what, std::string_view label) {
  if (operands.empty()) return;
  std::size_t expected = 0;
  std::size_t lists = 0;
  std::string names;
  for_each_operand(operands, attributes, [&](const Operand& operand) {
    ++expected;
    lists += operand.list ? 1 : 0;
    names += (names.empty() ? "" : ", ") + std::string(operand.name) + (operand.list ? " of each" : "");
  });
  const std::size_t single = expected - lists;  // lists may be empty: of a collective whose root is held elsewhere
  if (given == expected || (lists > 0 && given >= single && (given - single) % lists == 0)) return;
  throw ProgramError(std::string(kind.name) + ": " + std::to_string(given) + " " + std::string(what) + " for op '" +
                     std::string(label) + "'; expected " + names);
}

}  // namespace gpubench
