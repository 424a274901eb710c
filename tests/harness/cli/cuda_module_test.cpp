// Finding and loading the CUDA backend. Using it needs a GPU.
#include "harness/cli/cuda_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "harness/core/error.h"
#include "harness/hardware/gpu_survey.h"
#include "reference/cuda/module.h"
#include "tests/paths.h"

namespace gpubench {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CudaModule : public ::testing::Test {
 protected:
  // The loader caches files by path, so each test has a folder.
  CudaModule()
      : folder_(fs::path(::testing::TempDir()) / ("cuda_module_" + std::to_string(::getpid()) + "_" +
                                                  ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "bin");
  }
  ~CudaModule() override { fs::remove_all(folder_); }

  [[nodiscard]] fs::path program() const { return folder_ / "bin/gpubench"; }

  // The error of opening it with `library` as the module.
  std::string complaint_about(const fs::path& library) {
    fs::copy_file(library, folder_ / "bin" / cuda::module_file_name);
    try {
      (void)cuda_entry(program()).value().open({});
    } catch (const BackendError& e) {
      return e.what();
    }
    return "it opened";
  }

  fs::path folder_;
};

TEST_F(CudaModule, WithoutItsFileThereIsNoEntry) { EXPECT_FALSE(cuda_entry(program()).has_value()); }

TEST_F(CudaModule, ItIsFoundBesideTheProgramAndInLib) {
  fs::create_directories(folder_ / "lib");
  std::ofstream(folder_ / "lib" / cuda::module_file_name) << "x";
  EXPECT_EQ(cuda_entry(program()).value().name, "cuda");
}

TEST_F(CudaModule, AModuleOfAnotherBuildIsRefused) {
  EXPECT_THAT(complaint_about(paths::other_build),
              AllOf(HasSubstr("is of another build (0123456789abcdef)"), HasSubstr("build both together")));
}

TEST_F(CudaModule, AFileThatIsNoLibraryIsAnErrorInTheLoadersWords) {
  std::ofstream(folder_ / "text") << "not a library";
  EXPECT_THAT(complaint_about(folder_ / "text"),
              AllOf(HasSubstr("libgpubench_cuda.so cannot be loaded"),
                    AnyOf(HasSubstr("file too short"), HasSubstr("invalid ELF header"))));
}

TEST(MissingLibrary, IsReadFromTheLoadersComplaintAndIsABareName) {
  const std::string tail = ": cannot open shared object file: No such file or directory";
  EXPECT_EQ(missing_library("libcublasLt.so.13" + tail), "libcublasLt.so.13");
  EXPECT_EQ(missing_library("/opt/libcublasLt.so.13" + tail), "");
  EXPECT_EQ(missing_library("../libx.so" + tail), "");
  EXPECT_EQ(missing_library("libx.so: undefined symbol: f"), "");
  EXPECT_EQ(missing_library(""), "");
}

TEST_F(CudaModule, LibrariesAreLookedForInToolkitsAndPythonPackages) {
  const fs::path env = folder_ / "env";
  for (const char* made :
       {"root/usr/local/cuda-12.9/lib64", "root/usr/local/cuda-13.0/lib64", "root/usr/local/other/lib64",
        "root/usr/lib/python3/dist-packages/nvidia/cudnn/lib", "env/lib/python3.11/site-packages/nvidia/cu13/lib",
        "env/lib/python2.7/site-packages/nvidia/cublas/lib"})
    fs::create_directories(folder_ / made);
  const fs::path root = folder_ / "root";
  EXPECT_THAT(library_folders(root, {env}),
              ElementsAre(root / "usr/local/cuda-13.0/lib64", root / "usr/local/cuda-12.9/lib64",
                          env / "lib/python3.11/site-packages/nvidia/cu13/lib",
                          root / "usr/lib/python3/dist-packages/nvidia/cudnn/lib"));
}

TEST_F(CudaModule, ThePython3OnThePathLeadsToItsPackages) {
  fs::create_directories(folder_ / "env/bin");
  std::ofstream(folder_ / "env/bin/python3") << "x";
  const std::string path = "bin:" + (folder_ / "none/bin").string() + ":" + (folder_ / "env/bin").string();
  EXPECT_THAT(python_prefixes(path), ElementsAre(folder_ / "env"));
}

// As in Python's sys.prefix.
TEST_F(CudaModule, APython3ThatIsALinkLeadsOnUnlessAVirtualEnvironmentHasIt) {
  for (const char* folder : {"opt/bin", "local/bin", "venv/bin"}) fs::create_directories(folder_ / folder);
  std::ofstream(folder_ / "opt/bin/python3.12") << "x";
  for (const char* linked : {"local/bin/python3", "venv/bin/python3"})
    fs::create_symlink(folder_ / "opt/bin/python3.12", folder_ / linked);
  std::ofstream(folder_ / "venv/pyvenv.cfg") << "home = /opt/bin";
  const std::string path = (folder_ / "local/bin").string() + ":" + (folder_ / "venv/bin").string();
  EXPECT_THAT(python_prefixes(path), ElementsAre(folder_ / "local", folder_ / "opt", folder_ / "venv"));
}

class TrustedFile : public CudaModule {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make folders that belong to root";
  }
};

TEST_F(TrustedFile, WhatOnlyRootCanChangeIsTrusted) {
  std::ofstream(folder_ / "bin/library") << "x";
  EXPECT_EQ(changeable_by_others(folder_ / "bin/library"), "");  // in /tmp, which has the sticky bit
  EXPECT_EQ(changeable_by_others("/"), "");
}

TEST_F(TrustedFile, AFileOrAnyFolderAboveItThatOthersCanChangeIsNot) {
  const fs::path file = folder_ / "bin/library";
  std::ofstream(file) << "x";
  fs::permissions(folder_, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(changeable_by_others(file), "everybody may write to " + folder_.string());
  fs::permissions(folder_, fs::perms::others_write, fs::perm_options::remove);
  ASSERT_EQ(::chown((folder_ / "bin").c_str(), 4242, 0), 0);
  EXPECT_EQ(changeable_by_others(file), (folder_ / "bin").string() + " belongs to user 4242");
  ASSERT_EQ(::chown((folder_ / "bin").c_str(), 0, 4242), 0);
  fs::permissions(folder_ / "bin", fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(changeable_by_others(file), "group 4242 may write to " + (folder_ / "bin").string());
  fs::permissions(folder_ / "bin", fs::perms::group_write, fs::perm_options::remove);
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(changeable_by_others(file), "everybody may write to " + file.string());
}

TEST_F(TrustedFile, ALinkCountsAsWhatItLeadsTo) {
  fs::create_directories(folder_ / "theirs");
  ASSERT_EQ(::chown((folder_ / "theirs").c_str(), 4242, 4242), 0);
  fs::create_symlink(folder_ / "theirs", folder_ / "link");
  EXPECT_EQ(changeable_by_others(folder_ / "link"), (folder_ / "theirs").string() + " belongs to user 4242");
  EXPECT_THAT(changeable_by_others(folder_ / "none"), HasSubstr("No such file or directory"));
}

TEST_F(TrustedFile, FoldersThatAreThereAreTakenOrPassedOverWithTheReason) {
  fs::create_directories(folder_ / "ours");
  fs::create_directories(folder_ / "theirs");
  ASSERT_EQ(::chown((folder_ / "theirs").c_str(), 4242, 4242), 0);
  const std::vector<fs::path> all{folder_ / "none", folder_ / "ours", folder_ / "theirs"};
  const std::vector<LibraryFolder> found = checked_folders(all, false);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].path, folder_ / "ours");
  EXPECT_EQ(found[0].passed_over, "");
  EXPECT_THAT(found[1].passed_over, HasSubstr("belongs to user 4242"));
  EXPECT_EQ(checked_folders(all, true)[1].passed_over, "");
}

TEST(LibraryFolders, AreToldByNeighboursThatAreAllTakenOrAllPassedOver) {
  const std::vector<LibraryFolder> folders{{"/usr/local/cuda-13.0/lib64", ""},
                                           {"/usr/local/cuda-12.9/lib64", ""},
                                           {"/opt/env/site-packages/nvidia/cublas/lib", ""},
                                           {"/opt/env/site-packages/nvidia/cudnn/lib", ""},
                                           {"/opt/env/site-packages/nvidia/nccl/lib", "it belongs to user 4242"},
                                           {"/opt/env/site-packages/nvidia/nvjitlink/lib", "everybody may write to it"},
                                           {"/usr/lib/site-packages/nvidia/cu13/lib", ""}};
  std::vector<std::string> told;
  for (const auto& [path, why] : by_neighbours(folders))
    told.push_back(path.string() + (why.empty() ? "" : ": " + why));
  EXPECT_THAT(told,
              ::testing::ElementsAre("/usr/local/cuda-13.0/lib64", "/usr/local/cuda-12.9/lib64",
                                     "/opt/env/site-packages/nvidia/{cublas,cudnn}/lib",
                                     "/opt/env/site-packages/nvidia/{nccl,nvjitlink}/lib: it belongs to user 4242",
                                     "/usr/lib/site-packages/nvidia/cu13/lib"));
  EXPECT_TRUE(by_neighbours({}).empty());
}

// Root activates another user's Python environment with a planted library.
TEST_F(TrustedFile, AsRootNoFolderOfAnotherUserIsLoadedFromUnlessTheFlagSaysSo) {
  const fs::path lib = folder_ / "env/lib/python3.11/site-packages/nvidia/cu13/lib";
  fs::create_directories(lib);
  ASSERT_EQ(::chown((folder_ / "env").c_str(), 4242, 4242), 0);
  ::setenv("VIRTUAL_ENV", (folder_ / "env").c_str(), 1);
  const auto is_told = [&] {
    return std::ranges::any_of(library_folders_here(),
                               [&](const LibraryFolder& one) { return one.path == lib && !one.passed_over.empty(); });
  };
  EXPECT_TRUE(is_told());
  ::setenv(trust_libraries_variable, "on", 1);
  EXPECT_FALSE(is_told());
  ::unsetenv(trust_libraries_variable);
  ::unsetenv("VIRTUAL_ENV");
}

#ifdef GPUBENCH_TEST_CUDA_MODULE
TEST_F(CudaModule, TheRealOneLoadsAndAnswersPolitelyWithNoDriver) {
  if (probe_nvidia_driver().usable) GTEST_SKIP() << "there is a driver";
  const std::optional<BackendEntry> entry = cuda_entry(fs::path(paths::cuda_module).parent_path() / "gpubench");
  try {
    (void)entry.value().open({});
    FAIL() << "a device was opened without a driver";
  } catch (const BackendError& e) {
    EXPECT_THAT(e.what(), HasSubstr("no NVIDIA driver is loaded"));
  }
}
#endif

}  // namespace
}  // namespace gpubench
