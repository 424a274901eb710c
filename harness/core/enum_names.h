// The names of an enumeration's values, listed once beside the enumeration.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace gpubench {

/// The names of E's values, which count from 0, in their order. Specialized for each enumeration that has names.
template <class E>
inline constexpr std::array<std::string_view, 0> enum_names{};

template <class E>
concept NamedEnum = std::is_enum_v<E> && !enum_names<E>.empty();

template <NamedEnum E>
[[nodiscard]] constexpr std::string_view name(E value) {
  return enum_names<E>.at(static_cast<std::size_t>(value));
}

/// All values of E.
template <NamedEnum E>
inline constexpr auto enum_values = [] {
  std::array<E, enum_names<E>.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<E>(i);
  return values;
}();

}  // namespace gpubench
