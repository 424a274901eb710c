// Another process changes the processors while cases are timed.
#include "harness/run/process_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As `taskset -p`: restricts this thread to the first of its processors, once.
class OnOneProcessor : public Remembering {
 public:
  OnOneProcessor() {
    CPU_ZERO(&before_);
    (void)::sched_getaffinity(0, sizeof before_, &before_);
  }
  OnOneProcessor(const OnOneProcessor&) = delete;
  OnOneProcessor& operator=(const OnOneProcessor&) = delete;
  ~OnOneProcessor() override { (void)::sched_setaffinity(0, sizeof before_, &before_); }
  [[nodiscard]] int processors() const { return CPU_COUNT(&before_); }
  void phase(std::string_view key, std::string_view phase) override {
    Remembering::phase(key, phase);
    if (phase == "time") narrow();
  }
  void narrow() {
    int first = 0;
    while (!CPU_ISSET(first, &before_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    (void)::sched_setaffinity(0, sizeof one, &one);
  }

 private:
  cpu_set_t before_{};
};

TEST(Processors, ChangedFromOutsideAreNotedOnceAndFlagTimedCases) {
  OnOneProcessor seen;
  if (seen.processors() < 2) GTEST_SKIP() << "one processor only: there is none to take away";
  SimBackend backend(parse_script(""));
  run_in_process(backend, sim_cases(), smoke_options(), seen, seen.stop);

  EXPECT_THAT(seen.notes, ElementsAre(HasSubstr("changed from ")));
  EXPECT_EQ(seen.count(Verdict::pass), 6);
  EXPECT_THAT(seen.of("first").summary.flags, Contains(HasSubstr("processors changed from outside: from ")));
}

}  // namespace
}  // namespace gpubench::sim
