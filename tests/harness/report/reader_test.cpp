#include "harness/report/reader.h"

#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "tests/harness/report/shell.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

class Accessors : public ::testing::Test {
 protected:
  std::string refusal_of(const std::function<void(const Node&)>& access) const {
    return thrown_text<ReadError>([&] { access({json_, "report.json"}); }, "accepted");
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
  const TemporaryFile file("reader_test.json", "{\"a\": [1, 2]}");
  EXPECT_EQ(read_json_file(file.path())["a"][1], 2);
  EXPECT_THROW((void)read_json_file(file.path(), {.bytes = 4, .depth = 64}), ReadError);
}

std::string read_refusal(const std::string& path) {
  return thrown_text<ReadError>([&] { (void)read_json_file(path); }, "read");
}

// /proc/kmsg claims to be a file and blocks; opening a device may have side effects.
TEST(ReadJsonFile, FilesThatTheKernelMakesUpAndDevicesAreRefusedUnread) {
  EXPECT_EQ(read_refusal("/proc/self/status"),
            "/proc/self/status:(root): is a file that the kernel makes up, not one that was written");
  EXPECT_EQ(read_refusal("/dev/null"), "/dev/null:(root): is neither a file nor a pipe");
  EXPECT_NE(read_refusal("/proc/kmsg"), "read");
}

}  // namespace
}  // namespace gpubench
