// --save-failures: inputs and outputs of a failing op, readable by NumPy and people.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/harness/cli/child.h"
#include "tests/harness/core/text/terminal_width.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SaveFailures : public ScratchFolder {
 protected:
  static ChildResult run(const Words& words) {
    return run_child(Words{paths::program} +
                     "run --device cpu --tier smoke --tuning-cache off --preset minimal --json r.json --force" + words);
  }
  static bool has_numpy() { return run_child({"/bin/sh", "-c", "/usr/bin/python3 -c 'import numpy'"}).exit_code == 0; }
  static ChildResult loaded(const std::string& folder) {
    return run_child({"/bin/sh", "-c", "/usr/bin/python3 '" + folder + "/load.py'"});
  }
};

TEST_F(SaveFailures, ASingleWrongElementIsInTheFilesWithWhatItShouldBe) {
  const ChildResult failed =
      exits(1, run("--filter gemm/matmul/m=35.*/f32/ --inject-error gemm=bit --save-failures f"));
  const std::string folder = "f/gemm_matmul_m=35,n=127,k=1760_f32_x1/c.check";
  EXPECT_THAT(unwrapped(failed.out), HasSubstr("its tensors are in " + folder));
  for (const char* file : {"a.npy", "b.npy", "c.npy", "c.expected.npy", "c.bound.npy", "load.py"})
    EXPECT_TRUE(std::filesystem::exists(folder + "/" + file)) << file;
  EXPECT_EQ(content_of(folder + "/c.npy").substr(0, 6), "\x93NUMPY");
  EXPECT_EQ(content_of(folder + "/c.npy").size(), 128 + 4 * 35 * 127U) << "a head of 128 bytes, then the elements";
  if (!has_numpy()) GTEST_SKIP() << "/usr/bin/python3 has no numpy";
  EXPECT_THAT(exits(0, loaded(folder)).out, AllOf(HasSubstr("c f32[35, 127]: 4445 of 4445 elements known"),
                                                  HasSubstr(" outside their bound"), HasSubstr("want")));
}

TEST_F(SaveFailures, EveryKindOfOpCanBeLoaded) {
  if (!has_numpy()) GTEST_SKIP() << "/usr/bin/python3 has no numpy";
  const std::pair<const char*, const char*> failing[] = {{"attention_forward", "attention/.*forward"},
                                                         {"layer_norm_backward", "norm/layer_norm_backward"},
                                                         {"quantize_blocks", "quantize"},
                                                         {"adamw", "optimizer/adamw"},
                                                         {"gemm", "bert_train_step"}};
  for (const auto& [op, filter] : failing) {
    std::filesystem::remove_all("f");
    const ChildResult failed =
        run({"--filter", filter, "--inject-error", std::string(op) + "=zero", "--save-failures", "f"});
    EXPECT_EQ(failed.exit_code, 1) << op << failed.err;
    int folders = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator("f")) {
      if (entry.path().filename() != "load.py" || ++folders > 2) continue;
      const ChildResult shown = loaded(entry.path().parent_path().string());
      EXPECT_EQ(shown.exit_code, 0) << entry.path() << shown.err;
      EXPECT_THAT(shown.out, HasSubstr("elements known")) << entry.path();
    }
    EXPECT_GT(folders, 0) << op;
  }
}

TEST_F(SaveFailures, AFolderThatOthersCanChangeAndALinkAreRefusedAsTheyAre) {
  namespace fs = std::filesystem;
  fs::create_directory("shared");
  fs::permissions("shared", fs::perms::all | fs::perms::sticky_bit);
  fs::create_directory("mine");
  fs::permissions("mine", fs::perms::owner_all | fs::perms::group_read);
  fs::create_directory_symlink("mine", "link");
  const auto before = fs::status("shared").permissions(), of_mine = fs::status("mine").permissions();
  for (const auto& [folder, why] :
       {std::pair{"shared", "other users can change shared"}, {"link", "link is a link or not a folder"}})
    EXPECT_THAT(exits(2, run({"--filter", "gemm/matmul/m=35.*/f32/", "--save-failures", folder})).err, HasSubstr(why));
  EXPECT_EQ(fs::status("shared").permissions(), before);
  EXPECT_EQ(fs::status("mine").permissions(), of_mine);
}

TEST_F(SaveFailures, NothingIsOverwrittenAndWhatCannotBeWrittenLeavesTheVerdict) {
  std::filesystem::create_directory("f");
  write("f/mine", "kept");
  const Words words("--filter gemm/matmul/m=35.*/f32/ --inject-error gemm=bit --save-failures f");
  ChildResult refused = run_child({paths::program, "run", "--device", "cpu", "--tier", "smoke", "--filter",
                                   "gemm/matmul/m=35.*/f32/", "--save-failures", "f"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--save-failures: f already has files"));
  write("f/gemm_matmul_m=35,n=127,k=1760_f32_x1", "in the way");
  const ChildResult failed = run(words);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(unwrapped(failed.out), HasSubstr("its tensors could not be saved: "));
  EXPECT_EQ(content_of("f/gemm_matmul_m=35,n=127,k=1760_f32_x1"), "in the way");
  EXPECT_EQ(content_of("f/mine"), "kept");
}

}  // namespace
}  // namespace gpubench
