// How describe() functions write the attributes of an op: only what differs from the default, in one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpubench {

/// Joins "name" and "name=value" with ", ": "transpose_b, alpha=0.5".
class AttributeText {
 public:
  /// Adds the name where the flag is set.
  AttributeText& flag(std::string_view name, bool set);
  /// Adds "name=value" where it differs from `standard`; the shortest text that reads back as the same double.
  /// `standard` is a literal that stays as it is, whatever the default becomes: cases are told apart by this text.
  AttributeText& number(std::string_view name, double value, double standard);
  AttributeText& number(std::string_view name, std::int64_t value, std::int64_t standard);
  /// Adds "name=value" where the value is not empty.
  AttributeText& word(std::string_view name, std::string_view value);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void append(std::string_view part);
  std::string text_;
};

}  // namespace gpubench
