#include "harness/hardware/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpubench {
namespace host_test {

// A machine of files: two sockets of two processors, one of them allowed, and 8 GB, of which a cgroup allows 4.
class FakeMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    put("proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Made Up CPU @ 2.00GHz\nphysical id\t: 0\ncpu MHz\t\t: 1999.9\n"
        "flags\t\t: fpu sse4_2 avx2 fma amx_bf16 avx512f avx512_bf16\n\n"
        "processor\t: 1\nmodel name\t: Made Up CPU @ 2.00GHz\nphysical id\t: 1\nflags\t\t: fpu\n");
    put("proc/meminfo", "MemTotal:        8000000 kB\nMemFree:          100000 kB\nMemAvailable:    6000000 kB\n");
    put("proc/loadavg", "0.50 0.25 0.10 1/100 1234\n");
    put("proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.10 total=1\n");
    put("sys/devices/system/cpu/online", "0-2,4\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    put("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n");
    put("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n");
    put("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n");
    put("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0-1\n");
    put("sys/devices/system/cpu/cpu0/cache/index1/type", "Unified\n");
    put("sys/devices/system/cpu/cpu0/cache/index1/level", "3\n");
    put("sys/devices/system/cpu/cpu0/cache/index1/size", "260M\n");
    put("sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list", "0-2,4\n");
    put("sys/fs/cgroup/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/memory.max", "4000000000\n");
    put("sys/fs/cgroup/memory.current", "1000000000\n");
    put("etc/os-release", "NAME=\"Made Up\"\nPRETTY_NAME=\"Made Up Linux 7 (test)\"\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  std::string root_ = ::testing::TempDir() + "host_test." + std::to_string(::getpid());
};

TEST_F(FakeMachine, IsReadFromTheKernelsFiles) {
  const HostInfo host = read_host(root_);
  EXPECT_EQ(host.cpu_model, "Made Up CPU @ 2.00GHz");
  EXPECT_EQ(host.distribution, "Made Up Linux 7 (test)");
  EXPECT_EQ(host.instruction_sets,
            (std::vector<std::string>{"sse4_2", "fma", "avx2", "avx512f", "avx512_bf16", "amx_bf16"}));
  EXPECT_EQ(host.cpus, 4);
  EXPECT_EQ(host.sockets, 2);
  EXPECT_EQ(host.mhz, 1999);
  EXPECT_EQ(host.memory_bytes, 8192000000);
  EXPECT_EQ(host.load_avg, (std::vector<double>{0.50, 0.25, 0.10}));
  EXPECT_EQ(host.cpu_pressure, 12.5);
  EXPECT_TRUE(host.cpu_scaling_enabled());
  ASSERT_EQ(host.caches.size(), 2U);
  EXPECT_EQ(host.caches[0].bytes, 48 * 1024);
  EXPECT_EQ(host.caches[0].sharing, 2);
  EXPECT_EQ(host.caches[1].level, 3);
  EXPECT_EQ(host.caches[1].bytes, std::int64_t{260} << 20);
  EXPECT_EQ(host.caches[1].sharing, 4);
}

TEST_F(FakeMachine, TheCgroupsLimitsCount) {
  const HostInfo host = read_host(root_);
  EXPECT_EQ(host.cgroup_cpus, 1.5);
  EXPECT_EQ(host.cgroup_memory_bytes, 4000000000);
  EXPECT_EQ(host.available_bytes, 3000000000);  // 4 GB allowed, 1 GB in use; the machine has 6.1 GB available
}

TEST_F(FakeMachine, ACgroupWithoutLimitsIsNone) {
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/memory.max", "max\n");
  HostInfo host = read_host(root_);
  EXPECT_FALSE(host.cgroup_cpus.has_value());
  EXPECT_FALSE(host.cgroup_memory_bytes.has_value());
  EXPECT_EQ(host.available_bytes, 6144000000);
}

TEST_F(FakeMachine, TheOlderCgroupsAreReadToo) {
  std::filesystem::remove_all(root_ + "/sys/fs/cgroup");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000000\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "500000000\n");
  HostInfo host = read_host(root_);
  EXPECT_EQ(host.cgroup_cpus, 2.0);
  EXPECT_EQ(host.available_bytes, 1500000000);
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  host = read_host(root_);
  EXPECT_FALSE(host.cgroup_cpus.has_value());
  EXPECT_FALSE(host.cgroup_memory_bytes.has_value());
}

// A container or an emulator may report such values.
TEST_F(FakeMachine, InvalidValuesOfTheKernelAreIgnored) {
  for (const char* odd : {"nan", "inf", "-5", "1e300", "99999999999999999999", "", "x", "0x10"}) {
    const std::string value(odd);
    put("proc/cpuinfo", "model name\t: x\ncpu MHz\t\t: " + value + "\n");
    put("proc/meminfo", "MemTotal: " + value + " kB\nMemAvailable: " + value + " kB\n");
    put("proc/loadavg", value + " " + value + " " + value + "\n");
    put("proc/pressure/cpu", "some avg10=" + value + " avg60=1.00\n");
    put("sys/devices/system/cpu/online", value + "-" + value + "," + value + "\n");
    for (const char* file : {"level", "size", "shared_cpu_list"})
      put(std::string("sys/devices/system/cpu/cpu0/cache/index0/") + file, value + "\n");
    put("sys/fs/cgroup/cpu.max", value + " " + value + "\n");
    put("sys/fs/cgroup/memory.max", value + "\n");
    const HostInfo host = read_host(root_);
    EXPECT_EQ(host.mhz, 0) << odd;
    EXPECT_GE(host.memory_bytes, 0) << odd;
    EXPECT_GE(host.available_bytes, 0) << odd;
    EXPECT_GE(host.cpus, 1) << odd;
    EXPECT_LE(host.cpus, 1 << 20) << odd;
    for (const double load : host.load_avg) EXPECT_TRUE(load >= 0.0 && load <= 1e300) << odd;
    EXPECT_TRUE(!host.cpu_pressure || (*host.cpu_pressure >= 0.0 && *host.cpu_pressure <= 100.0)) << odd;
    ASSERT_EQ(host.caches.size(), 1U) << odd;  // the other has no level
    EXPECT_EQ(host.caches[0].level, 3) << odd;
    EXPECT_GT(host.cgroup_cpus.value_or(1.0), 0.0) << odd;
    EXPECT_GE(host.cgroup_memory_bytes.value_or(0), 0) << odd;
  }
}

TEST_F(FakeMachine, ACacheOfUnreadableLevelIsLeftOut) {
  std::filesystem::remove(root_ + "/sys/devices/system/cpu/cpu0/cache/index0/level");
  const HostInfo host = read_host(root_);
  ASSERT_EQ(host.caches.size(), 1U);
  EXPECT_EQ(host.caches[0].level, 3);
}

TEST(EmptyMachine, KeepsDefaultsWhereNothingCanBeRead) {
  const HostInfo host = read_host("/nonexistent");
  EXPECT_EQ(host.cpus, 1);
  EXPECT_EQ(host.cpu_model, "");
  EXPECT_TRUE(host.caches.empty());
  EXPECT_FALSE(host.cpu_scaling_enabled());
}

TEST(ThisMachine, HasProcessorsAndMemory) {
  const HostInfo host = read_host();
  EXPECT_GE(host.cpus, host.usable_cpus);
  EXPECT_GE(host.usable_cpus, 1);
  EXPECT_GT(host.memory_bytes, 0);
  EXPECT_GT(host.available_bytes, 0);
}

}  // namespace host_test
}  // namespace gpubench
