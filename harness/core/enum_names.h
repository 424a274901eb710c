#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace gpubench {

/// The names of E's values in order, from value 0. Specialize it for each enumeration with names.
template <class E>
inline constexpr std::array<std::string_view, 0> enum_names{};

template <class E>
concept NamedEnum = std::is_enum_v<E> && !enum_names<E>.empty();

template <NamedEnum E>
[[nodiscard]] constexpr std::string_view name(E value) {
  return enum_names<E>.at(static_cast<std::size_t>(value));
}

template <NamedEnum E>
inline constexpr auto enum_values = [] {
  std::array<E, enum_names<E>.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<E>(i);
  return values;
}();

}  // namespace gpubench
