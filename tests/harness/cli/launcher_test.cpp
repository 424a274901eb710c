#include "harness/cli/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "harness/core/error.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using Variables = std::map<std::string, std::string>;

LauncherPlace place_of(const Variables& set) {
  return launcher_place([&set](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? std::string() : found->second;
  });
}

std::string complaint_about(const Variables& set) {
  return thrown_text<UsageError>([&] { (void)place_of(set); });
}

TEST(Launcher, EachNamesItsPlaceAndTheLibraryThatJoins) {
  const LauncherPlace open_mpi =
      place_of({{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"PMIX_RANK", "3"}});
  EXPECT_EQ(open_mpi.processes, 8);
  EXPECT_EQ(open_mpi.rank, 3);
  EXPECT_EQ(open_mpi.library, "openmpi");
  const LauncherPlace mpich = place_of({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  EXPECT_EQ(mpich.processes, 2);
  EXPECT_EQ(mpich.rank, 1);
  EXPECT_EQ(mpich.library, "mpich");
  const Variables srun{{"SLURM_STEP_NUM_TASKS", "64"}, {"SLURM_PROCID", "63"}};
  EXPECT_EQ(place_of(srun).processes, 64);
  EXPECT_EQ(place_of(srun).library, "mpich");
  Variables by_pmix = srun;
  by_pmix["PMIX_RANK"] = "63";
  EXPECT_EQ(place_of(by_pmix).library, "openmpi");
}

TEST(Launcher, SeveralCommandLinesAreKnown) {
  Variables set{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_NUM_APP_CTX", "1"}};
  EXPECT_FALSE(place_of(set).several_commands);
  set["OMPI_NUM_APP_CTX"] = "2";
  EXPECT_TRUE(place_of(set).several_commands);
}

TEST(Launcher, OneProcessIsARunByItself) {
  EXPECT_EQ(place_of({}).processes, 1);
  EXPECT_EQ(place_of({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}).processes, 1);
  // Set in a batch script, too, whose commands without srun are single processes.
  EXPECT_EQ(place_of({{"SLURM_NTASKS", "16"}, {"SLURM_PROCID", "0"}}).processes, 1);
}

TEST(Launcher, VariablesThatCannotBeAreRefusedByName) {
  EXPECT_EQ(
      complaint_about({{"PMI_SIZE", "many"}}),
      "PMI_SIZE is 'many'; expected a number from 1 to 1048576, as launchers set it (unset it without a launcher)");
  EXPECT_THAT(complaint_about({{"PMI_SIZE", "2"}}), ::testing::HasSubstr("PMI_RANK is ''"));
  EXPECT_THAT(complaint_about({{"PMI_SIZE", "2"}, {"PMI_RANK", "2"}}), ::testing::HasSubstr("a number from 0 to 1"));
  EXPECT_THAT(complaint_about({{"OMPI_COMM_WORLD_SIZE", "-1"}}), ::testing::HasSubstr("OMPI_COMM_WORLD_SIZE is '-1'"));
  EXPECT_THAT(complaint_about({{"OMPI_COMM_WORLD_SIZE", "99999999999999999999"}}), ::testing::HasSubstr("number"));
}

}  // namespace
}  // namespace gpubench
