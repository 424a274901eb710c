#include "harness/compare/thinned_json.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

TEST(ThinnedJson, WithoutAnythingToDropItIsTheWholeDocument) {
  for (const std::string& text : {dump(report_json(sample_report()), 1), dump(report_json(sample_report())),
                                  std::string(R"( {"a" : [ 1 , -2.5e3 , "\"x\\" , {} , [] , null , true ] } )"),
                                  std::string(R"("\\")"), std::string("[]"), std::string("17")}) {
    EXPECT_EQ(parse_json(thinned_json(text, {}), "t"), parse_json(text, "t")) << text.substr(0, 80);
  }
}

TEST(ThinnedJson, DroppedMembersAreNullWhateverTheyHold) {
  constexpr std::string_view dropped[] = {"x"};
  const std::pair<const char*, const char*> texts[] = {
      {R"({"x":[1,{"x":"]"},"\"}"],"y":2})", R"({"x":null,"y":2})"},
      {R"({"y":{"x" : "a,b}" }})", R"({"y":{"x":null}})"},
      {R"({"x":-1.5e9,"y":["x"]})", R"({"x":null,"y":["x"]})"},
      {R"({"x":{},"xx":1})", R"({"x":null,"xx":1})"},
      {R"({"x":true})", R"({"x":null})"},
  };
  for (const auto& [text, expected] : texts)
    EXPECT_EQ(parse_json(thinned_json(text, {dropped}), "t"), parse_json(expected, "t")) << text;
}

TEST(ThinnedJson, OneOfTwoMembersIsDroppedByAThirdBeforeThem) {
  const Dropped dropped{{}, "mode", "a", "x", "y"};
  const auto thin = [&](const char* text) { return dump(parse_json(thinned_json(text, dropped), "t")); };
  EXPECT_EQ(thin(R"([{"mode" : "a", "x":[1], "y":[2]},{"mode":"b","x":[1],"y":[2]}])"),
            R"([{"mode":"a","x":null,"y":[2]},{"mode":"b","x":[1],"y":null}])");
  EXPECT_EQ(thin(R"({"x":1,"y":2,"mode":"a"})"), R"({"x":1,"y":null,"mode":"a"})");
  EXPECT_EQ(thin(R"({"mode":{"x":1},"x":2})"), R"({"mode":{"x":1},"x":2})");
}

// What the parser refuses stays refused: thinning a text must mend nothing.
TEST(ThinnedJson, MalformedDocumentsAreRefused) {
  constexpr std::string_view dropped[] = {"x"};
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  for (const std::string& text :
       {std::string(R"({"a":1 2})"), std::string("[1 2]"), std::string("[1,]"), std::string("{,}"),
        std::string(R"({"a":1,})"), std::string(R"({"x":})"), std::string(R"({"x" 1})"), std::string(R"({"x":[1,2)"),
        std::string(R"({"x":1}})"), std::string(R"({"a":1,"a":2})"), std::string(R"({"a":"b)"), std::string("nul l"),
        std::string("1 e5"), std::string(""), std::string("[1e999]"), std::string(R"({"x":"a)"), deep}) {
    EXPECT_THROW((void)parse_json(thinned_json(text, {dropped}), "t"), ReadError) << text;
  }
}

}  // namespace
}  // namespace gpubench
