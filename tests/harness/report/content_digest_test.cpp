#include "harness/report/content_digest.h"

#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "harness/report/json_parser.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace content_digest_test {

// Computed from the description in content_digest.h in another language: SplitMix64's finalizer over (state ^
// finalizer(word)).
TEST(ContentDigest, IsWhatItsDescriptionMakes) {
  EXPECT_EQ(content_digest(""), "a7f72697a2731486");
  EXPECT_EQ(content_digest("{\"a\":1"), "bc252ceaded19966");
  EXPECT_EQ(content_digest("{\"text\": \"a b\\\" c\",\n \"n\": [1, 2]"), "ee8b5456524fba24");
}

TEST(ContentDigest, BlanksCountInTextsOnly) {
  EXPECT_EQ(content_digest("{ \"a\" :\t1,\r\n \"b\": \"x y\""), content_digest("{\"a\":1,\"b\":\"x y\""));
  EXPECT_NE(content_digest("{\"b\":\"x y\""), content_digest("{\"b\":\"xy\""));
  EXPECT_NE(content_digest("{\"b\":\"x\\\" y\""), content_digest("{\"b\":\"x\\\"y\""));
}

// For any text and any blanks. A byte order mark is part of the content.
TEST(ContentDigest, IsTheSameMadeWhileReading) {
  for (const std::string& text :
       {std::string("{}"), std::string("\xef\xbb\xbf { \"a b\" :\n[1.5e3 ,\ttrue,\r\n\" \\\" x\\\\\" ] } "),
        dump(report_json(holding_report())), sealed_text(report_json(holding_report()), 3)}) {
    for (const std::size_t content : {text.size(), text.size() / 2, std::size_t{0}}) {
      DigestMaker maker;
      (void)parse_json(text, "text", {{}, {}, &maker, content});
      const std::string_view taken = std::string_view(text).substr(0, content);
      EXPECT_EQ(maker.digest(), content_digest(taken)) << taken;
    }
  }
}

TEST(ContentDigest, HoldsHoweverTheDocumentIsIndented) {
  const Json json = report_json(holding_report());
  EXPECT_EQ(seal_of(sealed_text(json)), Seal::holds);
  EXPECT_EQ(seal_of(sealed_text(json, 1)), Seal::holds);
  const Json again = Json::parse(sealed_text(json, 1));
  EXPECT_EQ(again.size(), json.size() + 1);
  EXPECT_EQ(seal_of(dump(again, 3)), Seal::holds);
  EXPECT_EQ(seal_of(dump(json)), Seal::none);
}

// Except for blanks between members, any changed byte gives no digest or another one.
TEST(ContentDigest, EveryByteThatChangesIsSeen) {
  const std::string text = sealed_text(Json{{"a", 1.5}, {"b", "x y"}, {"c", {1, 2, 3}}});
  ASSERT_EQ(seal_of(text), Seal::holds);
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    for (const char other : {'0', 'z', '"', ' ', '}'}) {
      if (text[i] == other) continue;
      std::string changed = text;
      changed[i] = other;
      EXPECT_NE(seal_of(changed), Seal::holds) << changed;
    }
  }
}

TEST(ContentDigest, ADigestElsewhereOrOfAnotherKindIsNone) {
  for (const char* text :
       {"", "{}", "{\"digest\":\"0123456789abcdef\"}", "{\"a\":1,\"digest\":\"0123456789abcdeF\"}",
        "{\"a\":1,\"digest\":7}", "{\"digest\":\"0123456789abcdef\",\"a\":1}", "\"digest\":\"0123456789abcdef\"}"})
    EXPECT_EQ(seal_of(text), Seal::none) << text;
  EXPECT_EQ(seal_of("{\"a\":1,\"digest\":\"0123456789abcdef\"}"), Seal::broken);
}

}  // namespace content_digest_test
}  // namespace gpubench
