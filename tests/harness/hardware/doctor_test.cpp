#include "harness/hardware/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpubench {
namespace doctor_test {

HostInfo healthy() {
  HostInfo host;
  host.cpu_model = "Made Up CPU";
  host.instruction_sets = {"avx2", "avx512f", "avx512_bf16"};
  host.cpus = host.usable_cpus = 8;
  host.memory_bytes = 64000000000;
  host.available_bytes = 60000000000;
  host.governor = "performance";
  host.load_avg = {0.1, 0.1, 0.1};
  return host;
}

NvidiaDriver working() {
  NvidiaDriver driver;
  driver.usable = true;
  driver.devices = 1;
  driver.cuda_version = 13000;
  driver.hardware_seen = true;
  return driver;
}

const Finding* find(const std::vector<Finding>& findings, const std::string& code) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
  return found == findings.end() ? nullptr : &*found;
}

TEST(Diagnose, FindsNothingWrongWithAHealthyMachine) {
  for (const Finding& finding : diagnose(healthy(), working(), true))
    EXPECT_EQ(finding.health, Health::ok) << finding.text;
}

TEST(Diagnose, EachTroubleHasItsCodeItsNumbersAndAMend) {
  HostInfo host = healthy();
  host.instruction_sets = {"avx2"};
  host.usable_cpus = 4;
  host.cgroup_cpus = 1.5;
  host.governor = "powersave";
  host.cpu_pressure = 35.0;
  host.cgroup_memory_bytes = 4000000000;
  host.available_bytes = 1000000000;
  const std::vector<Finding> findings = diagnose(host, working(), true);
  const std::pair<const char*, const char*> expected[] = {
      {"D201", "bf16"},   {"D202", "4 of 8"}, {"D203", "1.5 processors of 4"}, {"D204", "powersave"}, {"D205", "35%"},
      {"D207", "4.0 GB"}, {"D208", "2 GB"}};
  for (const auto& [code, text] : expected) {
    const Finding* finding = find(findings, code);
    ASSERT_NE(finding, nullptr) << code;
    EXPECT_NE(finding->text.find(text), std::string::npos) << finding->text;
    EXPECT_FALSE(finding->fix.empty()) << code;
    EXPECT_NE(finding->health, Health::ok) << code;
  }
}

TEST(Diagnose, NoDriverIsAWarningOnlyWhereThereIsAGpu) {
  NvidiaDriver driver;
  driver.reason = "no NVIDIA driver: libcuda.so.1 cannot be loaded (x)";
  const std::vector<Finding> without = diagnose(healthy(), driver, false);
  ASSERT_NE(find(without, "D101"), nullptr);
  EXPECT_EQ(find(without, "D101")->health, Health::note);
  EXPECT_NE(find(without, "D101")->text.find("libcuda.so.1"), std::string::npos);
  driver.hardware_seen = true;
  EXPECT_EQ(find(diagnose(healthy(), driver, false), "D101")->health, Health::warning);
}

TEST(Diagnose, AnInstructionSetThatIsPassedOverIsAWarningWithItsReason) {
  DeviceInfo device;
  device.properties = {{"threads", "8"}};
  EXPECT_TRUE(diagnose_unused(device).empty());
  device.properties.emplace_back("cpu_isa", "limited to avx512_core_bf16");
  device.properties.emplace_back("cpu_isa_reason", "amx is announced, but CPUID leaf 0x1D is empty");
  const std::vector<Finding> findings = diagnose_unused(device);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, "D210");
  EXPECT_EQ(findings[0].health, Health::warning);
  EXPECT_EQ(findings[0].text, "cpu isa limited to avx512_core_bf16: amx is announced, but CPUID leaf 0x1D is empty");
  EXPECT_FALSE(findings[0].fix.empty());
}

TEST(Diagnose, AnExcludedKernelIsAFact) {
  DeviceInfo device;
  device.properties = {{"excluded_kernels", "oneDNN's jit: it writes outside its buffers"}};
  const std::vector<Finding> findings = diagnose_unused(device);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text, "excluded: oneDNN's jit: it writes outside its buffers");
  EXPECT_EQ(findings[0].health, Health::ok);
}

TEST(Diagnose, ADriverWithoutOurCudaBackendIsAWarning) {
  EXPECT_EQ(find(diagnose(healthy(), working(), false), "D102")->health, Health::warning);
  EXPECT_EQ(find(diagnose(healthy(), working(), true), "D102"), nullptr);
}

}  // namespace doctor_test
}  // namespace gpubench
