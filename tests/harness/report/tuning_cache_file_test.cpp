#include "harness/report/tuning_cache_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TuningSetting h200() {
  TuningSetting setting;
  setting.device.name = "NVIDIA H200";
  setting.device.units = 132;
  setting.device.properties = {{"compute_capability", "9.0"}};
  setting.device.libraries = {{"cublasLt", "13.1.0"}, {"cudnn", "9.19.0"}};
  setting.tool_version = "0.1.0";
  return setting;
}

class CachedTuning : public ScratchFolder {
 protected:
  [[nodiscard]] TuningCacheFile open(const TuningSetting& setting = h200()) const { return {folder(), setting}; }
  [[nodiscard]] std::string folder() const { return (root_ / "deep" / "gpubench").string(); }
  // Writes a file in place of the cache.
  void put(const std::string& content) const {
    fs::create_directories(folder());
    write(open().path(), content);
  }
  [[nodiscard]] std::string content() const { return content_of(open().path()); }
  [[nodiscard]] std::string written_file() const {
    open().keep({{"gemm; sums f32; bf16[8, 8]", "cublaslt:algo=66"}});
    return content();
  }
  fs::path root_ = folder_ / "root";
};

TEST_F(CachedTuning, WhatOneRunKeepsTheNextRecalls) {
  open().keep({{"gemm; sums f32; bf16[8, 8]", "cublaslt:algo=66"}, {"conv2d_forward; sums f32;", "cudnn:eng=6"}});

  TuningCacheFile next = open();
  EXPECT_EQ(next.recall("gemm; sums f32; bf16[8, 8]"), "cublaslt:algo=66");
  EXPECT_EQ(next.recall("conv2d_forward; sums f32;"), "cudnn:eng=6");
  EXPECT_EQ(next.recall("gemm; sums f32; bf16[8, 9]"), "");
  EXPECT_EQ(next.take_complaint(), "");
  const std::string name = fs::path(next.path()).filename().string();
  EXPECT_THAT(name, ::testing::MatchesRegex("nvidia-h200-[0-9a-f]*\\.json"));
  EXPECT_EQ(name.size(), std::string("nvidia-h200-0123456789abcdef.json").size());
}

TEST_F(CachedTuning, WithNothingToKeepNothingIsCreated) {
  TuningCacheFile cache = open();
  cache.keep({});
  EXPECT_FALSE(fs::exists(root_));
  EXPECT_EQ(cache.take_complaint(), "");
}

TEST_F(CachedTuning, EveryDeviceLibraryAndSettingHasAFileOfItsOwn) {
  std::set<std::string> paths{open().path()};
  const auto changed = [&](const auto& change) {
    TuningSetting setting = h200();
    change(setting);
    return paths.insert(open(setting).path()).second;
  };
  EXPECT_TRUE(changed([](TuningSetting& s) { s.device.name = "NVIDIA H100"; }));
  EXPECT_TRUE(changed([](TuningSetting& s) { s.device.units = 114; }));
  EXPECT_TRUE(changed([](TuningSetting& s) { s.device.properties[0].second = "9.1"; }));
  EXPECT_TRUE(changed([](TuningSetting& s) { s.device.libraries[0].second = "13.2.0"; }));
  EXPECT_TRUE(changed([](TuningSetting& s) { s.device.libraries[1].second = "9.20.0"; }));
  EXPECT_TRUE(changed([](TuningSetting& s) { s.deterministic = true; }));
  EXPECT_TRUE(changed([](TuningSetting& s) { s.tool_version = "0.2.0"; }));
  EXPECT_FALSE(changed([](TuningSetting& s) { s.device.available_bytes = 7; }));
}

TEST_F(CachedTuning, AHostileDeviceNameStaysInTheFolder) {
  TuningSetting setting = h200();
  setting.device.name = "../../\x1b[2J\xff/etc";
  open(setting).keep({{"k", "v"}});
  EXPECT_EQ(fs::path(open(setting).path()).parent_path(), folder());
  EXPECT_EQ(open(setting).recall("k"), "v");
  EXPECT_EQ(open(setting).take_complaint(), "");
}

TEST_F(CachedTuning, AFileThatIsNotWhatItShouldBeIsComplainedOfOnceIgnoredAndWrittenAnew) {
  const std::string good = written_file();
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[]"), good.substr(0, good.size() / 2),
        with("\"gpubench-tuning\"", "\"gpubench-report\""), with("\"schema_version\": 1", "\"schema_version\": 2"),
        with("\"units\": \"132\"", "\"units\": \"114\""), with("\"cublaslt:algo=66\"", "66"),
        with("\"cublaslt:algo=66\"", "{\"a\": {\"b\": 1}}"), with("\"choices\"", "\"choice\""),
        std::string(std::size_t{17} << 20U, ' '), std::string(100000, '[')}) {
    put(bad);
    TuningCacheFile cache = open();
    EXPECT_EQ(cache.recall("gemm; sums f32; bf16[8, 8]"), "") << bad.substr(0, 200);
    EXPECT_THAT(cache.take_complaint(),
                AllOf(HasSubstr("choices of earlier runs are ignored"), HasSubstr("nvidia-h200")));
    EXPECT_EQ(cache.take_complaint(), "");
    cache.keep({{"gemm; sums f32; bf16[8, 8]", "cublaslt:algo=66"}});
    EXPECT_EQ(cache.take_complaint(), "");
    EXPECT_EQ(content(), good);
  }
}

TEST_F(CachedTuning, WhatIsNoFileIsNeitherReadNorWritten) {
  fs::create_directories(folder());
  ASSERT_EQ(::mkfifo(open().path().c_str(), 0600), 0);  // opening it would block
  TuningCacheFile cache = open();
  EXPECT_THAT(cache.take_complaint(), HasSubstr("is not a regular file"));
  cache.keep({{"k", "v"}});
  EXPECT_EQ(cache.take_complaint(), "");
  EXPECT_TRUE(fs::is_fifo(open().path()));
}

TEST_F(CachedTuning, AFolderThatCannotBeMadeIsComplainedOfOnce) {
  write(root_, "in the way");
  TuningCacheFile cache = open();
  cache.keep({{"k", "v"}});
  EXPECT_THAT(cache.take_complaint(), HasSubstr("choices are not stored"));
  cache.keep({{"l", "w"}});
  EXPECT_EQ(cache.take_complaint(), "");
  EXPECT_EQ(cache.recall("l"), "w");
}

TEST_F(CachedTuning, WhatAnotherRunKeptMeanwhileStays) {
  TuningCacheFile one = open();
  TuningCacheFile two = open();
  one.keep({{"k", "of one"}, {"both", "of one"}});
  two.keep({{"l", "of two"}, {"both", "of two"}});
  one.keep({{"m", "of one"}});

  const TuningCacheFile next = open();
  EXPECT_EQ(next.recall("k"), "of one");
  EXPECT_EQ(next.recall("l"), "of two");
  EXPECT_EQ(next.recall("m"), "of one");
  EXPECT_EQ(next.recall("both"), "of one");
}

TEST_F(CachedTuning, ManyProcessesAtOnceLeaveAWholeFile) {
  constexpr int processes = 8;
  constexpr int rounds = 20;
  std::vector<pid_t> children;
  for (int child = 0; child < processes; ++child) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      TuningCacheFile cache = open();
      for (int round = 0; round < rounds; ++round)
        cache.keep({{"call " + std::to_string(child * rounds + round), "sim:a"}});
      ::_exit(cache.take_complaint().empty() ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  TuningCacheFile cache = open();
  EXPECT_EQ(cache.take_complaint(), "");
  const Json json = read_json_file(cache.path());
  EXPECT_GE(json["choices"].size(), static_cast<std::size_t>(rounds));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 1);
}

TEST(DefaultTuningFolder, FollowsTheXdgSpecification) {
  EXPECT_EQ(default_tuning_folder("/cache", "/home/me"), "/cache/gpubench");
  EXPECT_EQ(default_tuning_folder("", "/home/me"), "/home/me/.cache/gpubench");
  EXPECT_EQ(default_tuning_folder("relative", "/home/me"), "/home/me/.cache/gpubench");
  EXPECT_EQ(default_tuning_folder("", ""), "");
  EXPECT_EQ(default_tuning_folder("", "relative"), "");
}

}  // namespace
}  // namespace gpubench
