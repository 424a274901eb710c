// Guessing what was meant.
#include "harness/plan/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpubench {
namespace {

const std::vector<std::string> verbs{"run", "list", "check", "compare", "doctor"};

TEST(Nearest, DistancesAreLettersToChange) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("gemm", "gemm"), 0U);
  EXPECT_EQ(edit_distance("gem", "gemm"), 1U);        // insert
  EXPECT_EQ(edit_distance("gemmm", "gemm"), 1U);      // delete
  EXPECT_EQ(edit_distance("genm", "gemm"), 1U);       // replace
  EXPECT_EQ(edit_distance("egmm", "gemm"), 1U);       // swap neighbours
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);  // the textbook's example
}

TEST(Nearest, ATypingErrorFindsTheName) {
  EXPECT_EQ(nearest("chekc", verbs), "check");
  EXPECT_EQ(nearest("lsit", verbs), "list");
  EXPECT_EQ(nearest("docter", verbs), "doctor");
}

TEST(Nearest, TheBeginningOfANameFindsIt) { EXPECT_EQ(nearest("comp", verbs), "compare"); }

TEST(Nearest, NothingCloseIsNothing) {
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
