#include "harness/report/device_text.h"

#include <gtest/gtest.h>

namespace gpubench {
namespace {

DeviceInfo device_of_kind(const char* kind, int units) {
  DeviceInfo device;
  device.kind = kind;
  device.units = units;
  return device;
}

TEST(DeviceText, UnitsAreCalledWhatTheyAre) {
  EXPECT_EQ(units_text(device_of_kind("cpu", 2)), "2 threads");
  EXPECT_EQ(units_text(device_of_kind("cpu", 1)), "1 thread");
  EXPECT_EQ(units_text(device_of_kind("cuda", 132)), "132 SMs");
  EXPECT_EQ(units_text(device_of_kind("sim", 1)), "1 unit");
}

// The OpenMP specifications: 4.5 is of November 2015, 5.0 of November 2018.
TEST(DeviceText, OpenMpIsTheReleaseNotItsDate) {
  EXPECT_EQ(library_text("openmp", "201511"), "OpenMP 4.5");
  EXPECT_EQ(library_text("openmp", "201811"), "OpenMP 5.0");
  EXPECT_EQ(library_text("openmp", "299901"), "OpenMP 299901");
  EXPECT_EQ(library_text("onednn", "2.6.3"), "oneDNN 2.6.3");
  EXPECT_EQ(library_text("onednn", "2.6.3 (N/A)"), "oneDNN 2.6.3");
  EXPECT_EQ(library_text("onednn", "3.7.0 (1b2c3d4)"), "oneDNN 3.7.0 (1b2c3d4)");
  DeviceInfo device;
  EXPECT_EQ(libraries_text(device), "");
  device.libraries = {{"onednn", "2.6.3"}, {"openmp", "201511"}};
  EXPECT_EQ(libraries_text(device), "oneDNN 2.6.3, OpenMP 4.5");
}

}  // namespace
}  // namespace gpubench
