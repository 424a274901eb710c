// Numbers compared with the C library's strtod(), which rounds to the nearest fp64 by another algorithm.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <sstream>

#include "harness/report/json.h"
#include "harness/report/json_parser.h"

namespace gpubench {
namespace {

// As in the JSON library: integers if they fit 64 bits, else fp64.
void expect_as_the_c_library(const std::string& text) {
  const double nearest = std::strtod(text.c_str(), nullptr);
  std::optional<Json> value;
  try {
    value = parse_json(text, "t");
  } catch (const ReadError& e) {
    ASSERT_NE(std::string(e.what()).find("a number beyond fp64"), std::string::npos) << text;
  }
  ASSERT_EQ(value.has_value(), std::isfinite(nearest)) << text;
  if (!value) return;
  if (text.find_first_of(".eE") == std::string::npos) {
    errno = 0;
    const bool negative = text[0] == '-';
    const std::int64_t whole = std::strtoll(text.c_str(), nullptr, 10);
    const std::uint64_t natural = std::strtoull(text.c_str(), nullptr, 10);
    if (negative && whole != std::numeric_limits<std::int64_t>::min()) {
      ASSERT_TRUE(value->is_number_integer() && !value->is_number_unsigned()) << text;
      ASSERT_EQ(value->get<std::int64_t>(), whole) << text;
      return;
    }
    if (!negative && natural != std::numeric_limits<std::uint64_t>::max()) {
      ASSERT_TRUE(value->is_number_unsigned()) << text;
      ASSERT_EQ(value->get<std::uint64_t>(), natural) << text;
      return;
    }
  } else {
    ASSERT_TRUE(value->is_number_float()) << text;
  }
  if (!value->is_number_float()) return;  // strtoll() returns the largest integer for overflow, too
  ASSERT_EQ(std::bit_cast<std::uint64_t>(value->get<double>()), std::bit_cast<std::uint64_t>(nearest)) << text;
}

TEST(JsonNumber, OnTheEdgesOfEveryFormatIsTheNearest) {
  std::istringstream numbers(
      "0 -0 0.0 -0.0 0e0 -0e-5 1 -1 0.1 0.3 1e22 1e23 8.5e22 1e-22 1e-23 9007199254740991 9007199254740992 "
      "9007199254740993 9007199254740992.0 9007199254740993.0 9007199254740993e0 9007199254740995.0 "
      "900719925474099.3e1 9007199254740993e-10 9223372036854775807 9223372036854775808 -9223372036854775807 "
      "-9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 9999999999999999999 "
      "10000000000000000000 99999999999999999999 1e19 1.7976931348623157e308 1.7976931348623158e308 "
      "1.7976931348623159e308 1e308 1e309 -1e309 1e999 -1e999 2.2250738585072014e-308 2.2250738585072011e-308 "
      "4.9e-324 5e-324 2.4703282292062328e-324 2.4703282292062327e-324 -2e-324 1e-400 -1e-400 "
      "1e-999999999999999999999 1e9223372036854775807 0.1e9223372036854775807 10e-9223372036854775808 "
      "0e999999999999999999999 0.0e-99999 1.00000000000000011102230246251565404236316680908203125 "
      "1.00000000000000011102230246251565404236316680908203124 "
      "1.00000000000000011102230246251565404236316680908203126 123456789012345678901234567890 "
      "0.000000000000000000000000000000000000000000000000000000001234567890123456789");
  for (std::string text; numbers >> text;) expect_as_the_c_library(text);
  const std::string zeros(400, '0');
  for (const std::string& text :
       {"1" + zeros, "1" + zeros + "e-400", "0." + zeros + "1", "0." + zeros + "1e401", "0." + zeros + "1e1000",
        "1" + zeros + ".5e-1000", "1" + zeros + "e-800", "-0." + zeros, std::string(1000, '9') + "e-900", "-1" + zeros})
    expect_as_the_c_library(text);
}

TEST(JsonNumber, AQuarterOfAMillionOfThemAreTheNearest) {
  std::mt19937_64 random(7);
  const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
  const auto digits = [&](unsigned most) {
    std::string text;
    for (unsigned left = 1 + below(most); left > 0; --left) text += static_cast<char>('0' + below(10));
    return text;
  };
  for (int i = 0; i < 250000; ++i) {
    std::string text = below(2) == 0 ? "-" : "";
    const std::string whole = below(4) == 0 ? "0" : digits(below(3) == 0 ? 25 : 6);
    text += whole.size() > 1 && whole[0] == '0' ? "1" + whole : whole;
    if (below(3) != 0) text += "." + digits(below(3) == 0 ? 25 : 4);
    if (below(2) == 0) {
      const unsigned range = below(2) == 0 ? 30 : 360;
      text +=
          fmt::format("{}{}", below(2) == 0 ? "e" : "E", static_cast<int>(below(2 * range)) - static_cast<int>(range));
    }
    expect_as_the_c_library(text);
  }
}

TEST(JsonNumber, EveryFp64ThatIsWrittenComesBack) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 50000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const Json back = parse_json(dump(Json(value)), "t");
    ASSERT_EQ(std::bit_cast<std::uint64_t>(back.get<double>()), std::bit_cast<std::uint64_t>(value)) << value;
  }
}

}  // namespace
}  // namespace gpubench
