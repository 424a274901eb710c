// The def_hash that records carry, whatever became of the case.
#include "harness/run/definition_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/harness/run/run_fixture.h"

namespace gpubench {
namespace {

TEST(DefinitionHash, IsSixteenHexadecimalDigitsAndAnotherForEachCase) {
  std::set<std::string> seen;
  for (const PlannedCase& planned : sim::sim_cases()) {
    const std::string hash = definition_hash(planned);
    EXPECT_TRUE(is_definition_hash(hash)) << hash;
    EXPECT_EQ(hash, definition_hash(planned));
    EXPECT_TRUE(seen.insert(hash).second) << planned.id();
  }
  EXPECT_EQ(seen.size(), 6U);
}

TEST(DefinitionHash, StandsInTheRecordOfCasesThatPassAndOfThoseThatDoNot) {
  sim::InProcess faulty("wrong_element@chain.down");
  sim::InProcess clean("");
  RunOptions narrow = sim::smoke_options();
  narrow.memory_limit_bytes = 1;
  sim::InProcess skipped("", narrow);
  EXPECT_GT(faulty.seen.count(Verdict::fail), 0);
  EXPECT_EQ(skipped.seen.count(Verdict::skipped), 6);
  for (const PlannedCase& planned : sim::sim_cases()) {
    for (const sim::InProcess* run : {&faulty, &clean, &skipped})
      EXPECT_EQ(run->seen.records.at(planned.id()).def_hash, definition_hash(planned)) << planned.id();
  }
}

}  // namespace
}  // namespace gpubench
