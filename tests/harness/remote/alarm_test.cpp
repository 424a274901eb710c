#include "harness/remote/stall_watch.h"

#include <gtest/gtest.h>

#include <future>

namespace gpubench {
namespace {

TEST(Alarm, RingsAfterItsTime) {
  std::promise<void> rung;
  const Alarm alarm(0.01, [&rung] { rung.set_value(); });
  rung.get_future().get();
}

TEST(Alarm, DestructionOrADelayOfZeroPreventsTheCall) {
  bool rung = false;
  {
    const Alarm late(3600.0, [&rung] { rung = true; });
  }
  {
    const Alarm never(0.0, [&rung] { rung = true; });
  }
  EXPECT_FALSE(rung);
}

}  // namespace
}  // namespace gpubench
