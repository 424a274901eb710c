#include "harness/plan/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "harness/core/error.h"
#include "tests/thrown_text.h"

namespace gpubench {

namespace pattern_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  return thrown_text<UsageError>([&] { (void)Pattern("filter", text); });
}

bool found(const std::string& text, const std::string& id) { return Pattern("filter", text).found_in(id); }

std::string repeated(std::size_t count, const std::string& part) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

TEST(Pattern, MatchesAnywhereInTheIdUnlessAnchored) {
  const std::string id = "gemm/linear_forward/m=8192,n=2304,k=768/bf16/x1";
  EXPECT_TRUE(found("", id));
  EXPECT_TRUE(found("linear", id));
  EXPECT_TRUE(found("^gemm/.*bf16/x1$", id));
  EXPECT_TRUE(found("m=8192,.*/(f32|bf16)/", id));
  EXPECT_TRUE(found(R"(k=\d+\/bf16)", id));
  EXPECT_TRUE(found("[[:digit:]]{4},n", id));
  EXPECT_FALSE(found("^linear", id));
  EXPECT_FALSE(found("gemm$", id));
  EXPECT_FALSE(found("GEMM", id));  // case counts
}

TEST(Pattern, InvalidUtf8BytesAreOrdinaryCharacters) {
  EXPECT_FALSE(found("\xff\x80", "gemm/x1"));
  EXPECT_FALSE(found(std::string("a\0b", 3), "ab"));
}

TEST(Pattern, AnErrorNamesItsPositionAndGivesAnExample) {
  EXPECT_THAT(refusal_of("m=(8"), AllOf(HasSubstr("filter 'm=(8' is not a regular expression: missing )"),
                                        HasSubstr("at character 3"), HasSubstr("such as 'gemm/.*/bf16'")));
  EXPECT_THAT(refusal_of("a(b)c)d"), HasSubstr("at character 6"));
  EXPECT_THAT(refusal_of("x[a-"), HasSubstr("at character 2"));
  EXPECT_THAT(refusal_of("ab**"), HasSubstr("at character 3"));
  EXPECT_THAT(refusal_of(R"((a)\1)"), HasSubstr(R"(invalid escape sequence: \1 at character 4)"));
}

// std::regex recurses for each parenthesis and overflows the stack.
TEST(Pattern, ManyParenthesesDoNotCrash) {
  constexpr std::size_t many = 20000;
  EXPECT_NE(refusal_of(repeated(many, "(")), "");
  const std::string deep = repeated(many, "(") + "a" + repeated(many, ")");
  EXPECT_TRUE(!refusal_of(deep).empty() || found(deep, "a"));  // releases of RE2 differ
  EXPECT_LT(refusal_of(repeated(many, "(")).size(), 500U);
  EXPECT_TRUE(found(repeated(100, "(") + "a" + repeated(100, ")"), "a"));
  EXPECT_NE(refusal_of("((a{1000}){1000}){1000}"), "");  // 10^9 copies of one character
}

// A backtracking search needs 2^200 attempts to reject this id.
TEST(Pattern, IsSearchedInTimeLinearInTheId) {
  EXPECT_FALSE(found("(.+)+Z", repeated(200, "a")));
  EXPECT_FALSE(found("(a*)*b", repeated(200, "a")));
  EXPECT_FALSE(found("(a|aa)+$", repeated(200, "a") + "b"));
}

}  // namespace pattern_test

namespace {

const std::vector<std::string> verbs{"run", "list", "check", "compare", "doctor"};

TEST(Nearest, DistancesCountChangedLetters) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("gemm", "gemm"), 0U);
  EXPECT_EQ(edit_distance("gem", "gemm"), 1U);    // insert
  EXPECT_EQ(edit_distance("gemmm", "gemm"), 1U);  // delete
  EXPECT_EQ(edit_distance("genm", "gemm"), 1U);   // replace
  EXPECT_EQ(edit_distance("egmm", "gemm"), 1U);   // swap neighbors
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, ATypingErrorFindsTheName) {
  EXPECT_EQ(nearest("chekc", verbs), "check");
  EXPECT_EQ(nearest("lsit", verbs), "list");
  EXPECT_EQ(nearest("docter", verbs), "doctor");
}

TEST(Nearest, TheBeginningOfANameFindsIt) { EXPECT_EQ(nearest("comp", verbs), "compare"); }

TEST(Nearest, ALongerFormOfANameFindsIt) {
  EXPECT_EQ(nearest("--output", std::vector<std::string>{"--quiet", "--out", "--json"}), "--out");
  EXPECT_EQ(nearest("runabout", verbs), "");  // three letters say too little
}

TEST(Nearest, WithoutACloseNameTheResultIsEmpty) {
  EXPECT_EQ(nearest("benchmark", verbs), "");
  EXPECT_EQ(nearest("x", verbs), "");
  EXPECT_EQ(nearest("run", {}), "");
}

TEST(Nearest, TheSuggestionIsPartOfASentence) {
  EXPECT_EQ(did_you_mean("rnu", verbs), "; did you mean 'run'?");
  EXPECT_EQ(did_you_mean("benchmark", verbs), "");
}

}  // namespace

}  // namespace gpubench
