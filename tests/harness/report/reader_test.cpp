#include "harness/report/reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/report/json.h"

namespace gpubench {
namespace {

std::string refusal(std::string_view text, const ReadLimits& limits = {}) {
  try {
    (void)parse_json(text, "file", limits);
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

class Accessors : public ::testing::Test {
 protected:
  std::string refusal_of(const std::function<void(const Node&)>& access) const {
    try {
      access({json_, "report.json"});
    } catch (const ReadError& e) {
      return e.what();
    }
    return "accepted";
  }
  Json json_ =
      parse_json(R"({"n": 3.9, "whole": 3.0, "minus": -1, "big": 18446744073709551615, "beyond": 18446744073709551616,
                              "text": "x", "list": [1, {"deep": true}], "null": null})",
                 "x");
};

TEST_F(Accessors, NeverWrapCutOrConvert) {
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("n").integer(); }),
            "report.json:n: is 3.9, expected a whole number");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("whole").integer(); }),
            "report.json:whole: is 3.0, expected a whole number");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("minus").natural(); }),
            "report.json:minus: is -1, expected a whole number from 0");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("minus").integer(); }),
            "report.json:minus: is -1, expected 0 to 9223372036854775807");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("big").integer(); }),
            "report.json:big: is 18446744073709551615, expected 0 to 9223372036854775807");
  EXPECT_EQ(refusal_of([](const Node& n) {
              (void)n.at("beyond").natural();
            }).rfind("report.json:beyond: is 1.8446744073709552e+19", 0),
            0U);
  EXPECT_EQ(Node(json_, "x").at("big").natural(), 18446744073709551615ULL);
  EXPECT_EQ(Node(json_, "x").at("minus").integer(-5, 5), -1);
}

TEST_F(Accessors, NameTheKindAndThePlace) {
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("text").number(); }),
            "report.json:text: is string, expected a number");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("n").text(); }), "report.json:n: is number, expected a string");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("n").boolean(); }),
            "report.json:n: is number, expected true or false");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("missing"); }), "report.json:(root): lacks \"missing\"");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("list").at(1).at("deep").at("er"); }),
            "report.json:list[1].deep: is boolean, expected an object");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("list").at(2); }),
            "report.json:list: has 2 elements, element 2 is wanted");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.at("text").at(0); }),
            "report.json:text: is string, expected an array");
  EXPECT_EQ(refusal_of([](const Node& n) { (void)n.number_or_note("null"); }),
            "report.json:(root): \"null\" is null, and \"nonfinite\" does not say which of nan, inf, -inf it is");
}

TEST(ReadJsonFile, SaysWhichFileCannotBeRead) {
  EXPECT_THROW((void)read_json_file("/nonexistent/report.json"), ReadError);
  EXPECT_THROW((void)read_json_file("/"), ReadError);
  EXPECT_THROW((void)read_json_file("/dev/zero"), ReadError);
  const std::string path = ::testing::TempDir() + "reader_test.json";
  std::ofstream(path) << "{\"a\": [1, 2]}";
  EXPECT_EQ(read_json_file(path)["a"][1], 2);
  EXPECT_THROW((void)read_json_file(path, {.bytes = 4, .depth = 64}), ReadError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gpubench
