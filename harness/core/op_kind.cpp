#include "harness/core/op_kind.h"

#include <algorithm>

namespace gpubench {
namespace {

using Operand = DeclaredOperand;

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

template <class Visit>
void for_each_operand(std::string_view operands, const Attributes& attributes, const Visit& visit) {
  while (!operands.empty()) {
    const Operand operand = next(operands);
    if (!operand.optional || attributes.has(operand.name)) visit(operand);
  }
}

// Removes and returns the text before `mark`, and removes the mark; the whole text if there is none.
std::string_view take(std::string_view& text, std::string_view mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + mark.size(), text.size()));
  return taken;
}

}  // namespace

OpDoc doc_of(const OpKind& kind) {
  OpDoc doc;
  std::string_view text = kind.doc;
  if (text.starts_with('\n')) text.remove_prefix(1);
  doc.meaning = take(text, "\n");
  for (std::string_view lines = take(text, "\n\n"); !lines.empty();) {
    std::string_view line = take(lines, "\n");
    for (std::string_view names = take(line, ": "); !names.empty();) doc.operands.push_back({take(names, ", "), line});
  }
  doc.body = take(text, "\n\nSource: ");
  doc.source = text;
  return doc;
}

std::vector<DeclaredOperand> declared_operands(std::string_view operands) {
  std::vector<DeclaredOperand> all;
  while (!operands.empty()) all.push_back(next(operands));
  return all;
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

Attributes make_attributes(const OpKind& kind, std::span<const NamedValue> values) {
  Attributes attributes = kind.attributes == nullptr ? Attributes{} : kind.attributes();
  for (const NamedValue& given : values) {
    const std::string op(kind.name);
    try {
      if (attributes.set(given.name, given.value)) continue;
    } catch (const UsageError& error) {
      throw UsageError(op + ": " + error.what());
    }
    std::vector<std::string_view> known;
    for (const Attribute& attribute : attributes.list()) known.push_back(attribute.name);
    throw UsageError(op + ": no attribute '" + std::string(given.name) + "'; expected " +
                     (known.empty() ? "none" : "one of: " + with_commas(known)));
  }
  return attributes;
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
  const std::size_t single = expected - lists;  // lists may be empty: a collective whose root is held elsewhere
  if (given == expected || (lists > 0 && given >= single && (given - single) % lists == 0)) return;
  throw ProgramError(std::string(kind.name) + ": " + std::to_string(given) + " " + std::string(what) + " for op '" +
                     std::string(label) + "'; expected " + names);
}

}  // namespace gpubench
