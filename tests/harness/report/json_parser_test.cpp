#include "harness/report/json_parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "harness/report/json.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

std::string refusal(std::string_view text, const ReadLimits& limits = {}, const HeldParts& held = {}) {
  return thrown_text<ReadError>([&] { (void)parse_json(text, "file", held, limits); }, "accepted");
}

TEST(ParseJson, TakesStrictJson) {
  const Json json = parse_json(R"({"b": [1, 2.5, null], "a": "x"})", "file");
  EXPECT_EQ(json["b"][1], 2.5);
  EXPECT_EQ(json.begin().key(), "b");
}

std::string in_arrays(int levels) {
  std::string path;
  for (int i = 0; i < levels; ++i) path += "[0]";
  return path;
}

TEST(ParseJson, StopsAtTheDepthLimitBeforeBuildingAnything) {
  EXPECT_EQ(refusal(std::string(64, '[') + std::string(64, ']')), "accepted");
  EXPECT_EQ(refusal(std::string(65, '[') + std::string(65, ']')),
            "file:" + in_arrays(64) + ": nested deeper than 64 levels");
  EXPECT_EQ(refusal(std::string(100000, '[')), "file:" + in_arrays(64) + ": nested deeper than 64 levels");
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += R"({"a":)";
  std::string path = "a";
  for (int i = 1; i < 64; ++i) path += ".a";
  EXPECT_EQ(refusal(objects), "file:" + path + ": nested deeper than 64 levels");
}

TEST(ParseJson, RefusesEqualKeysInOneObjectOnly) {
  EXPECT_EQ(refusal(R"({"a": 1, "b": {"a": 2}, "a": 3})"), "file:b: key \"a\" appears twice in one object");
  EXPECT_EQ(refusal(R"({"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]})"), "accepted");
}

TEST(ParseJson, RefusesWhatIsTooLarge) {
  EXPECT_EQ(refusal("[1, 2, 3]", {.bytes = 8, .depth = 64}), "file:(root): 9 bytes, more than the limit of 8");
  EXPECT_EQ(refusal("[1, 2, 3]", {.bytes = 9, .depth = 64}), "accepted");
}

TEST(ParseJson, RefusesTooManyValuesAndMembers) {
  EXPECT_EQ(refusal("[1, [2], {\"a\": 3}]", {.values = 6}), "accepted");  // two arrays, an object, three numbers
  EXPECT_EQ(refusal("[1, [2], {\"a\": 3}]", {.values = 5}), "file:[2].a: more than 5 values");
  EXPECT_EQ(refusal("{\"a\": 1, \"b\": {\"c\": 2, \"d\": 3}}", {.members = 2}), "accepted");
  EXPECT_EQ(refusal("{\"x\": [0, {\"a\": 1, \"b\": 2, \"c\": 3}]}", {.members = 2}),
            "file:x[1].b: more than 2 members");
}

// Member search is linear: without a limit this would take minutes.
TEST(ParseJson, AnObjectOfAMillionMembersIsRefusedAtOnce) {
  std::string text = "{";
  for (int i = 0; i < 1000000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_EQ(refusal(text + "\"z\":0}"), "file:k4095: more than 4096 members");
}

TEST(ParseJson, SaysHowFarItCame) {
  EXPECT_EQ(refusal(R"({"cases": [{"id": 1}, {"id": 2, "n": nan}]})").rfind("file:cases[1].n: not JSON: ", 0), 0U)
      << refusal(R"({"cases": [{"id": 1}, {"id": 2, "n": nan}]})");
}

// Columns counted by hand; messages are not the JSON library's.
TEST(ParseJson, SaysWhatIsWrongInWordsOfItsOwnAndWhere) {
  EXPECT_EQ(refusal(""), "file:(root): not JSON: the input is empty");
  EXPECT_EQ(refusal(" \n\t"), "file:(root): not JSON: the input is empty");
  EXPECT_EQ(refusal("{\"a\": [1, 2"), "file:a[1]: not JSON: unexpected end of input: unclosed string, array or object");
  EXPECT_EQ(refusal("{\n \"a\": 1,\n}"),
            "file:a: not JSON: line 3, column 1: '}' cannot stand here; remove the comma before it");
  EXPECT_EQ(refusal("{'a': 1}"),
            "file:(root): not JSON: line 1, column 2: ''' cannot stand here; names and strings need double quotes");
  EXPECT_EQ(refusal("// x\n{}"),
            "file:(root): not JSON: line 1, column 1: '/' cannot stand here; JSON has no comments");
  EXPECT_EQ(refusal("<!doctype html>"),
            "file:(root): not JSON: line 1, column 1: '<' cannot stand here; this looks like a web page or XML");
  EXPECT_EQ(refusal("[1, NaN]"),
            "file:[0]: not JSON: line 1, column 5: 'NaN' cannot stand here; JSON has no NaN and no infinity");
  EXPECT_EQ(refusal("{\"a\": 1e999}"), "file:a: not JSON: line 1, column 11: a number beyond fp64");
  EXPECT_EQ(refusal("[\"a\nb\"]"),
            "file:(root): not JSON: line 1, column 4: a control character in a string, which must be escaped");
  for (const char* text : {"{", "{\"a\" 1}", "[1 2]", "nul", "\"\\x\"", "\xff", "[1]]", "+1", "01", "\"a"}) {
    const std::string said = refusal(text);
    EXPECT_NE(said.find(": not JSON: "), std::string::npos) << text;
    for (const char* theirs : {"json.exception", "syntax error", "last read", "literal"})
      EXPECT_EQ(said.find(theirs), std::string::npos) << text << " -> " << said;
  }
}

// NUL ends C strings, but not these.
TEST(ParseJson, ANulEndsNothing) {
  EXPECT_EQ(refusal(std::string_view("[1]\0x", 5)),
            "file:(root): not JSON: line 1, column 4: '\\x00' cannot stand here");
  EXPECT_EQ(refusal(std::string_view("[1,\0", 4)), "file:[0]: not JSON: line 1, column 4: '\\x00' cannot stand here");
}

TEST(ParseJson, AByteOrderMarkBeforeADocumentIsPassedOver) {
  EXPECT_EQ(parse_json("\xef\xbb\xbf[1]", "t"), Json({1}));
  EXPECT_NE(refusal("[1]\xef\xbb\xbf"), "accepted");
}

TEST(ParseJson, LongNamesAndMessagesAreCutShort) {
  const std::string key(100000, 'k');
  EXPECT_LT(refusal("{\"" + key + "\": 1, \"" + key + "\": 2}").size(), 400U);
  EXPECT_LT(refusal("[\"" + key).size(), 600U);
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  for (const char* text :
       {"",      " ",        "{",       "[1,]",    "{\"a\":}",   "NaN",      "[Infinity]",   "[nan]",
        "1e999", "[-1e999]", "{'a':1}", "// x\n1", "[1] [2]",    "\"\xff\"", "\"\xc0\xaf\"", "\"\x01\"",
        "tru",   "01",       "+1",      "[1 2]",   "\"\\ud800\""}) {
    EXPECT_EQ(refusal(text).rfind("file:", 0), 0U) << text << " -> " << refusal(text);
    EXPECT_NE(refusal(text).find(": not JSON: "), std::string::npos) << text << " -> " << refusal(text);
  }
}

TEST(ParseJson, MessagesCannotSteerATerminal) {
  const std::string text = refusal("{\"\x1b]0;owned\x07\": 1}");
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(refusal(R"({"\u001b[2J": 1, "\u001b[2J": 2})"),
            "file:\\x1b[2J: key \"\\x1b[2J\" appears twice in one object");
}

TEST(ParseJson, ElementsOfAStreamedArrayAreHandedOverOneByOneAndItStaysEmpty) {
  std::vector<std::string> seen;
  const StreamedArray streamed{"p", "list",
                               [&](const Json& e, std::size_t i) { seen.push_back(std::to_string(i) + dump(e)); }};
  const Json json =
      parse_json(R"({"q":{"list":[{"a":0}]},"p":{"list":[{"a":[1]},{"list":[{}]}],"b":2}})", "t", {{}, streamed});
  EXPECT_THAT(seen, ::testing::ElementsAre(R"(0{"a":[1]})", R"(1{"list":[{}]})"));
  EXPECT_EQ(dump(json), R"({"q":{"list":[{"a":0}]},"p":{"list":[],"b":2}})");
}

TEST(ParseJson, AMistakeInAStreamedArrayIsNamedWithItsPlaceInTheDocument) {
  const StreamedArray streamed{"p", "list", [](const Json&, std::size_t) {}};
  const auto refused = [&](const char* text) { return refusal(text, {}, {{}, streamed}); };
  EXPECT_EQ(refused(R"({"p":{"list":[{},{},{"a":1,"b":{"c":1,"c":2}}]}})"),
            "file:p.list[2].b.c: key \"c\" appears twice in one object");
  EXPECT_EQ(refused(R"({"p":{"list":[{},17]}})"), "file:p.list[1]: is not an object");
  EXPECT_EQ(refused(R"({"p":{"list":[[]]}})"), "file:p.list[0]: is not an object");
  EXPECT_EQ(refused(R"({"p":{"list":[{}, nan]}})").rfind("file:p.list[0]: not JSON: ", 0), 0U);
  EXPECT_EQ(refused(R"({"p":{"list":[{}],"x":{"y":[3,"a":1]}}})").rfind("file:p.x.y[1]: not JSON: ", 0), 0U);
}

constexpr std::string_view dropped[] = {"x"};

TEST(ParseJson, MembersThatAreLeftOutAreNullWhateverTheyHold) {
  const std::pair<const char*, const char*> texts[] = {
      {R"({"x":[1,{"x":"]"},"\"}"],"y":2})", R"({"x":null,"y":2})"},
      {R"({"y":{"x" : "a,b}" }})", R"({"y":{"x":null}})"},
      {R"([{"x":-1.5e9,"y":["x"]}])", R"([{"x":null,"y":["x"]}])"},
      {R"({"x":{"a":1,"a":2},"xx":1})", R"({"x":null,"xx":1})"},
      {R"({"\u0078":true})", R"({"x":null})"},
      {R"("x")", R"("x")"},
  };
  for (const auto& [text, expected] : texts) EXPECT_EQ(dump(parse_json(text, "t", {dropped, {}})), expected) << text;
}

TEST(ParseJson, WhatIsLeftOutIsJsonAllTheSame) {
  const auto refused = [](const std::string& text) { return refusal(text, {}, {dropped, {}}); };
  for (const char* text : {R"({"x":})", R"({"x" 1})", R"({"x":[1,2)", R"({"x":1}})", R"({"x":"a)", R"({"x":[1 2]})",
                           R"({"x":[1,]})", R"({"x":{1:2}})", R"({"x":01})", R"({"x":"\q"})", R"({"x":1e999})"})
    EXPECT_EQ(
        refused(text).rfind("file:x: not JSON: ", 0) == 0 || refused(text).rfind("file:(root): not JSON: ", 0) == 0,
        true)
        << text << " -> " << refused(text);
  EXPECT_EQ(refused(R"({"x":1,"y":2,"x":3})"), "file:y: key \"x\" appears twice in one object");
  EXPECT_EQ(refused(R"({"x":)" + std::string(64, '[')), "file:x: nested deeper than 64 levels");
}

TEST(ParseJson, WithoutAStreamedArrayAnEmptyNameIsAMemberLikeAnyOther) {
  EXPECT_EQ(dump(parse_json(R"({"":{"":[{"a":1}]}})", "t")), R"({"":{"":[{"a":1}]}})");
}

// The JSON library's verdict: the position where it refuses.
struct LibraryVerdict final : nlohmann::detail::json_sax_dom_parser<Json> {
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;
  explicit LibraryVerdict(Json& to) : Base(to, false) {}
  template <class Exception>
  bool parse_error(std::size_t position, const std::string& token, const Exception& e) {
    read = position;
    return Base::parse_error(position, token, e);
  }
  std::optional<std::size_t> read{};
};

// The parser stops where the library stops, and gives the same values.
void expect_as_the_library(const std::string& text) {
  Json theirs;
  LibraryVerdict verdict(theirs);
  (void)Json::sax_parse(text, &verdict);
  const std::string ours = refusal(text);
  if (ours.find("appears twice") != std::string::npos) return;
  if (!verdict.read) {
    ASSERT_EQ(ours, "accepted") << text;
    EXPECT_EQ(dump(parse_json(text, "t")), dump(theirs)) << text;
    EXPECT_EQ(parse_json(text, "t"), theirs) << text;
  } else if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    EXPECT_NE(ours.find(": not JSON: the input is empty"), std::string::npos) << text;
  } else if (*verdict.read > text.size()) {
    EXPECT_NE(ours.find(": not JSON: unexpected end of input"), std::string::npos) << text << " -> " << ours;
  } else {
    const std::string before = text.substr(0, *verdict.read - 1);
    const std::string place = fmt::format("line {}, column {}: ", 1 + std::count(before.begin(), before.end(), '\n'),
                                          before.size() - (before.rfind('\n') + 1) + 1);
    EXPECT_NE(ours.find(": not JSON: " + place), std::string::npos) << text << " -> " << ours << ", " << place;
  }
}

const std::vector<std::string>& hostile_documents() {
  static const std::vector<std::string> all{
      R"( { "a" : [ 1 , -2.5e3 , "\"x\\" , {} , [] , null , true ], "b":{"c":false} } )",
      "{\n \"n\": [0, -0, -0.0, 1e5, 1E+5, 1e-5, 0.125, 12345678901234567890, -9223372036854775808],\n \"t\": \"x\"\n}",
      "[\"\\u00e9\\uD834\\uDD1E\\b\\f\\n\\r\\t\\/\", \"\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e\x7f\"]",
      "[\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xc2\x80\"]", "[true,false,null,\"\",{\"\":0}]"};
  return all;
}

TEST(ParseJson, EveryPrefixIsJudgedAsByTheLibrary) {
  for (const std::string& text : hostile_documents()) {
    for (std::size_t end = 0; end <= text.size(); ++end) expect_as_the_library(text.substr(0, end));
  }
}

TEST(ParseJson, EveryChangeOfAByteIsJudgedAsByTheLibrary) {
  const std::string bytes =
      "0129.eE+-\"\\/{}[],: \n\tuxaftnAF\x01\x1f\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xed\xf0\xf4\xf5\xff";
  for (const std::string& text : hostile_documents()) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      for (const char byte : bytes) {
        std::string changed = text, longer = text;
        changed[at] = byte;
        longer.insert(at, 1, byte);
        expect_as_the_library(changed);
        expect_as_the_library(longer);
      }
      std::string shorter = text;
      expect_as_the_library(shorter.erase(at, 1));
    }
  }
}

}  // namespace
}  // namespace gpubench
