#include "harness/report/json_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "harness/report/json.h"

namespace gpubench {
namespace {

std::string refusal(std::string_view text, const ReadLimits& limits = {}, const StreamedArray& streamed = {}) {
  try {
    (void)parse_json(text, "file", streamed, limits);
  } catch (const ReadError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ParseJson, TakesStrictJson) {
  const Json json = parse_json(R"({"b": [1, 2.5, null], "a": "x"})", "file");
  EXPECT_EQ(json["b"][1], 2.5);
  EXPECT_EQ(json.begin().key(), "b");  // order of the document
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
  EXPECT_EQ(refusal("[1, 2, 3]", {.bytes = 8, .depth = 64}), "file:(root): 9 bytes, more than the 8 that are read");
  EXPECT_EQ(refusal("[1, 2, 3]", {.bytes = 9, .depth = 64}), "accepted");
}

TEST(ParseJson, RefusesTooManyValuesAndMembers) {
  EXPECT_EQ(refusal("[1, [2], {\"a\": 3}]", {.values = 6}), "accepted");  // two arrays, an object, three numbers
  EXPECT_EQ(refusal("[1, [2], {\"a\": 3}]", {.values = 5}), "file:[2].a: more than 5 values");
  EXPECT_EQ(refusal("{\"a\": 1, \"b\": {\"c\": 2, \"d\": 3}}", {.members = 2}), "accepted");
  EXPECT_EQ(refusal("{\"x\": [0, {\"a\": 1, \"b\": 2, \"c\": 3}]}", {.members = 2}),
            "file:x[1].b: more than 2 members");
}

// Each member of an object is looked for among all earlier ones: without a limit this would take minutes.
TEST(ParseJson, AnObjectOfAMillionMembersIsRefusedAtOnce) {
  std::string text = "{";
  for (int i = 0; i < 1000000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_EQ(refusal(text + "\"z\":0}"), "file:k4095: more than 4096 members");
}

TEST(ParseJson, SaysHowFarItCame) {
  EXPECT_EQ(refusal(R"({"cases": [{"id": 1}, {"id": 2, "n": nan}]})").rfind("file:cases[1].n: not JSON: ", 0), 0U)
      << refusal(R"({"cases": [{"id": 1}, {"id": 2, "n": nan}]})");
}

// Columns counted by hand; none of it is the parser library's own text.
TEST(ParseJson, SaysWhatIsWrongInWordsOfItsOwnAndWhere) {
  EXPECT_EQ(refusal(""), "file:(root): not JSON: there is nothing in it");
  EXPECT_EQ(refusal(" \n\t"), "file:(root): not JSON: there is nothing in it");
  EXPECT_EQ(refusal("{\"a\": [1, 2"), "file:a[1]: not JSON: it ends too early: a text, list or object is not closed");
  EXPECT_EQ(refusal("{\n \"a\": 1,\n}"),
            "file:a: not JSON: line 3, column 1: '}' cannot stand here; the comma before it is one too many");
  EXPECT_EQ(refusal("{'a': 1}"),
            "file:(root): not JSON: line 1, column 2: ''' cannot stand here; names and texts stand in double quotes");
  EXPECT_EQ(refusal("// x\n{}"),
            "file:(root): not JSON: line 1, column 1: '/' cannot stand here; JSON has no comments");
  EXPECT_EQ(refusal("<!doctype html>"),
            "file:(root): not JSON: line 1, column 1: '<' cannot stand here; this looks like a web page or XML");
  EXPECT_EQ(refusal("[1, NaN]"),
            "file:[0]: not JSON: line 1, column 5: 'NaN' cannot stand here; JSON has no NaN and no infinity");
  EXPECT_EQ(refusal("{\"a\": 1e999}"), "file:a: not JSON: line 1, column 11: a number that fp64 cannot hold");
  EXPECT_EQ(refusal("[\"a\nb\"]"),
            "file:(root): not JSON: line 1, column 4: a control character in a text, which has to be escaped");
  for (const char* text : {"{", "{\"a\" 1}", "[1 2]", "nul", "\"\\x\"", "\xff", "[1]]", "+1", "01", "\"a"}) {
    const std::string said = refusal(text);
    EXPECT_NE(said.find(": not JSON: "), std::string::npos) << text;
    for (const char* theirs : {"json.exception", "syntax error", "last read", "literal"})
      EXPECT_EQ(said.find(theirs), std::string::npos) << text << " -> " << said;
  }
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
      parse_json(R"({"q":{"list":[{"a":0}]},"p":{"list":[{"a":[1]},{"list":[{}]}],"b":2}})", "t", streamed);
  EXPECT_THAT(seen, ::testing::ElementsAre(R"(0{"a":[1]})", R"(1{"list":[{}]})"));
  EXPECT_EQ(dump(json), R"({"q":{"list":[{"a":0}]},"p":{"list":[],"b":2}})");
}

TEST(ParseJson, AMistakeInAStreamedArrayIsNamedWithItsPlaceInTheDocument) {
  const StreamedArray streamed{"p", "list", [](const Json&, std::size_t) {}};
  const auto refused = [&](const char* text) { return refusal(text, {}, streamed); };
  EXPECT_EQ(refused(R"({"p":{"list":[{},{},{"a":1,"b":{"c":1,"c":2}}]}})"),
            "file:p.list[2].b.c: key \"c\" appears twice in one object");
  EXPECT_EQ(refused(R"({"p":{"list":[{},17]}})"), "file:p.list[1]: is no object");
  EXPECT_EQ(refused(R"({"p":{"list":[[]]}})"), "file:p.list[0]: is no object");
  EXPECT_EQ(refused(R"({"p":{"list":[{}, nan]}})").rfind("file:p.list[0]: not JSON: ", 0), 0U);
  EXPECT_EQ(refused(R"({"p":{"list":[{}],"x":{"y":[3,"a":1]}}})").rfind("file:p.x.y[1]: not JSON: ", 0), 0U);
}

// Nothing is streamed that was not asked for: the empty name is a name like any other.
TEST(ParseJson, WithoutAStreamedArrayAnEmptyNameIsAMemberLikeAnyOther) {
  EXPECT_EQ(dump(parse_json(R"({"":{"":[{"a":1}]}})", "t")), R"({"":{"":[{"a":1}]}})");
}

}  // namespace
}  // namespace gpubench
