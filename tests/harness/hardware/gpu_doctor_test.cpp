#include "harness/hardware/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpubench {
namespace gpu_doctor_test {

using ::testing::HasSubstr;

NvidiaDriver working() {
  NvidiaDriver driver;
  driver.usable = true;
  driver.devices = 1;
  driver.cuda_version = 13000;
  return driver;
}

GpuFacts healthy() {
  GpuFacts gpu;
  gpu.name = "NVIDIA H200";
  gpu.power_limit_w = gpu.power_limit_max_w = 700.0;
  gpu.persistence = gpu.ecc = true;
  gpu.mig = false;
  gpu.corrected_errors = 0;
  gpu.nvlinks = gpu.nvlinks_up = 18;
  gpu.pcie_generation = 1;  // asleep
  gpu.pcie_generation_max = 5;
  gpu.pcie_width = gpu.pcie_width_max = 16;
  gpu.processes.emplace();
  gpu.now.reasons = 1;
  gpu.now.uncorrected_errors = 0;
  gpu.now.temperature_c = 88;
  return gpu;
}

GpuSurvey survey_of(const GpuFacts& gpu) {
  GpuSurvey survey;
  survey.driver_version = "580.65.06";
  survey.cuda_version = 13000;
  survey.gpus = {gpu};
  return survey;
}

std::vector<ModuleReport> libraries() {
  return {{"cudart", "13.0", ""}, {"cublaslt", "13.1.0", "/opt/lib/libcublasLt.so.13"}};
}

std::vector<Finding> of_gpu(const GpuFacts& gpu) { return diagnose_gpus(working(), survey_of(gpu), libraries()); }

const Finding* find(const std::vector<Finding>& findings, const std::string& code) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
  return found == findings.end() ? nullptr : &*found;
}

TEST(DiagnoseGpus, FindsNothingWrongWithAHealthyOne) {
  for (const Finding& finding : of_gpu(healthy())) EXPECT_EQ(finding.health, Health::ok) << finding.text;
}

TEST(DiagnoseGpus, ListsTheSupportedAndTheMissingRecipesOfAGpu) {
  const auto told = [](int capability) {
    GpuFacts gpu = healthy();
    gpu.compute_capability = capability;
    for (const Finding& finding : of_gpu(gpu)) {
      if (finding.text.find("compute capability") != std::string::npos) return finding;
    }
    return Finding{};
  };
  EXPECT_EQ(told(100).health, Health::ok);
  EXPECT_EQ(told(100).text,
            "gpu 0: compute capability 10.0: f64, f32, tf32, bf16, f16, bf16_approx_tanh, f8_hybrid, f8_hybrid_fast, "
            "mxfp8, nvfp4");
  EXPECT_EQ(told(80).health, Health::note);
  EXPECT_EQ(told(80).code, "D122");
  EXPECT_EQ(
      told(80).text,
      "gpu 0: compute capability 8.0: f64, f32, tf32, bf16, f16, bf16_approx_tanh; f8_hybrid, f8_hybrid_fast need "
      "compute capability 8.9; mxfp8, nvfp4 need compute capability 10.0; this device has 8.0");
}

TEST(DiagnoseGpus, ListsEachLibraryWithItsVersionAndFile) {
  const std::vector<Finding> findings = of_gpu(healthy());
  EXPECT_EQ(findings[0].text, "cudart 13.0");
  EXPECT_EQ(findings[1].text, "cublaslt 13.1.0 from /opt/lib/libcublasLt.so.13");
  const std::vector<ModuleReport> missing{{"cudnn", "", ""}};
  const std::vector<Finding> without = diagnose_gpus(working(), survey_of(healthy()), missing);
  ASSERT_NE(find(without, "D106"), nullptr);
  EXPECT_EQ(find(without, "D106")->text, "cudnn could not be loaded");
  EXPECT_EQ(find(without, "D106")->health, Health::warning);
}

TEST(DiagnoseGpus, ADriverOlderThanTheBuildsCudaIsAWarning) {
  NvidiaDriver driver = working();
  driver.cuda_version = 12020;
  GpuSurvey survey = survey_of(healthy());
  survey.driver_version = "535.129.03";
  const std::vector<Finding> findings = diagnose_gpus(driver, survey, libraries());
  const Finding* old = find(findings, "D104");
  ASSERT_NE(old, nullptr);
  EXPECT_EQ(old->health, Health::warning);
  EXPECT_EQ(old->text, "the driver 535.129.03 is too old: it supports CUDA 12.2, this build needs 13.0");
  EXPECT_THAT(old->fix, HasSubstr("580"));
}

TEST(DiagnoseGpus, ANewerMinorVersionOfCudaIsAccepted) {
  const std::vector<ModuleReport> newer{{"cudart", "13.2", ""}};
  EXPECT_EQ(find(diagnose_gpus(working(), survey_of(healthy()), newer), "D104"), nullptr);
  const std::vector<ModuleReport> nonsense{{"cudart", "new", ""}};
  EXPECT_EQ(find(diagnose_gpus(working(), survey_of(healthy()), nonsense), "D104"), nullptr);
}

TEST(DiagnoseGpus, WithoutNvmlItGivesTheReasonOnlyIfThereIsADriver) {
  GpuSurvey survey;
  survey.failure = "NVML cannot be loaded from libnvidia-ml.so.1 (no such file)";
  const std::vector<Finding> with = diagnose_gpus(working(), survey, {});
  ASSERT_NE(find(with, "D105"), nullptr);
  EXPECT_THAT(find(with, "D105")->text, HasSubstr("no such file"));
  EXPECT_TRUE(diagnose_gpus(NvidiaDriver{}, survey, {}).empty());
}

TEST(DiagnoseGpus, EachTroubleHasItsCodeItsNumbersAndAMend) {
  GpuFacts gpu = healthy();
  gpu.index = 3;
  gpu.now.reasons = 0x40 | 0x08 | 0x02;  // hardware thermal slowdown, hardware slowdown, application clocks; not idle
  gpu.power_limit_w = 400.0;
  gpu.now.uncorrected_errors = 2;
  gpu.corrected_errors = 7;
  gpu.ecc = false;
  gpu.mig = true;
  gpu.persistence = false;
  gpu.processes = {{{41, std::nullopt}, {42, std::nullopt}}};
  gpu.pcie_width = 8;
  gpu.nvlinks_up = 17;
  const std::vector<Finding> findings = of_gpu(gpu);
  const std::pair<const char*, const char*> expected[] = {{"D110", "heat now (88 C)"},
                                                          {"D111", "2 uncorrected"},
                                                          {"D112", "7 memory error(s) corrected"},
                                                          {"D113", "ECC is off"},
                                                          {"D114", "MIG is on"},
                                                          {"D115", "persistence mode is off"},
                                                          {"D116", "2 process(es) compute on it: 41, 42"},
                                                          {"D117", "generation 1 x8 of 5 x16 under load"},
                                                          {"D118", "power limit 400 W, below its maximum of 700 W"},
                                                          {"D119", "17 of 18 NVLinks"},
                                                          {"D121", "application clocks"}};
  for (const auto& [code, text] : expected) {
    const Finding* finding = find(findings, code);
    ASSERT_NE(finding, nullptr) << code;
    EXPECT_THAT(finding->text, ::testing::AllOf(HasSubstr("gpu 3: "), HasSubstr(text)));
    EXPECT_FALSE(finding->fix.empty()) << code;
    EXPECT_NE(finding->health, Health::ok) << code;
  }
}

TEST(DiagnoseGpus, AnIdleDevicesLinkMaySleep) {
  GpuFacts gpu = healthy();
  EXPECT_EQ(find(of_gpu(gpu), "D117"), nullptr);
  gpu.now.reasons.reset();  // unknown whether it is idle
  EXPECT_EQ(find(of_gpu(gpu), "D117"), nullptr);
  gpu.now.reasons = 4;
  EXPECT_NE(find(of_gpu(gpu), "D117"), nullptr);
}

TEST(DiagnoseGpus, APowerBrakeIsReportedOnce) {
  GpuFacts gpu = healthy();
  gpu.now.reasons = 0x80 | 0x08;
  const std::vector<Finding> findings = of_gpu(gpu);
  EXPECT_EQ(std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.code == "D110"; }), 1);
  EXPECT_THAT(find(findings, "D110")->text, HasSubstr("power brake"));
}

TEST(DiagnoseGpus, UnknownFactsAreNotFindings) {
  for (const Finding& finding : of_gpu(GpuFacts{})) EXPECT_EQ(finding.health, Health::ok) << finding.text;
}

TEST(DiagnoseGpus, ADeviceThatDoesNotAnswerIsAWarning) {
  GpuSurvey survey = survey_of(healthy());
  survey.unresponsive = {5};
  EXPECT_EQ(find(diagnose_gpus(working(), survey, {}), "D120")->text, "gpu 5: does not respond");
}

}  // namespace gpu_doctor_test
}  // namespace gpubench
