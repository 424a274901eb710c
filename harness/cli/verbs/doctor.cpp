#include <fmt/format.h>

#include <algorithm>

#include "harness/cli/cuda_module.h"
#include "harness/cli/device.h"
#include "harness/cli/run_context.h"
#include "harness/cli/verb.h"
#include "harness/hardware/doctor.h"
#include "harness/report/record_text.h"

namespace gpubench {
namespace {

constexpr int text_column = 11;

std::string line(const Finding& finding, const ConsoleStyle& style) {
  const bool warning = finding.health == Health::warning;
  const std::string_view word = warning ? "warn" : finding.health == Health::note ? "note" : "ok";
  const Tone tone = warning ? Tone::doubtful : finding.health == Health::note ? Tone::faint : Tone::good;
  const int width = width_up_to(100, style);
  std::string text = fmt::format("{} {:<4}  {}\n", paint(padded(word, 4), tone, style), finding.code,
                                 wrap(visible(finding.text), width, text_column));
  if (!finding.fix.empty())
    text +=
        fmt::format("{}fix: {}\n", std::string(text_column, ' '), wrap(visible(finding.fix), width, text_column + 5));
  return text;
}

// Reports a backend that cannot start as a finding instead of throwing.
std::vector<Finding> backend_findings(const BackendEntry& entry, const Environment& environment, double deadline_s) {
  try {
    const DeviceInfo info = describe_device({&entry, 0, ""}, environment, deadline_s);
    const std::string libraries = visible(libraries_text(info));
    std::vector<Finding> findings = diagnose_unused(info);
    findings.insert(findings.begin(), {Health::ok, "",
                                       fmt::format("backend {} starts: {}{}{}", entry.name, units_text(info),
                                                   libraries.empty() ? "" : ", ", libraries),
                                       ""});
    return findings;
  } catch (const CannotMeasure& e) {
    return {{Health::warning, "D103", e.what(),
             "see the message above it; a rebuild against the installed libraries often helps"}};
  }
}

// The libraries of the CUDA module. backend_findings() reports why it does not load; D107 a missing driver.
std::vector<ModuleReport> libraries_of(const BackendEntry& entry, const Environment& environment, double deadline_s,
                                       std::vector<Finding>& findings) {
  if (!entry.libraries) return {};
  try {
    return environment.libraries_of(entry, deadline_s);
  } catch (const std::exception& e) {
    findings.push_back({Health::warning, "D107", e.what(), ""});
    return {};
  }
}

// The search folders for NVIDIA's libraries, and those that root passes over.
void add_library_folders(std::vector<Finding>& findings) {
  const std::vector<LibraryFolder> folders = by_neighbours(library_folders_here());
  std::vector<std::string> taken;
  for (const auto& [folder, why] : folders) {
    if (why.empty()) taken.push_back(folder.string());
  }
  findings.push_back(
      {Health::ok, "",
       fmt::format(
           "NVIDIA's libraries are looked for in the loader's folders, then in {}",
           taken.empty() ? "no other: no toolkit in /usr/local, no NVIDIA wheels of a python3 in PATH" : joined(taken)),
       ""});
  for (const auto& [folder, why] : folders) {
    if (why.empty()) continue;
    findings.push_back({Health::note, "D108",
                        fmt::format("as root, no library is loaded from {}: {}", folder.string(), why),
                        "nothing, if the libraries are found elsewhere; else let only root change the folder, or run "
                        "as its user; --trust-libraries loads from it anyway"});
  }
}

// Always exit code 0.
int doctor_command(const Options& options, const Environment& environment) {
  const ConsoleStyle style = console_style(options, Stream::out, environment);
  bool has_cuda = false;
  std::vector<Finding> findings{
      {Health::ok, "", fmt::format("gpubench {} ({})", version(), build_text(environment)), ""}};
  const NvidiaDriver driver = environment.nvidia_driver(options.for_driver_s());
  const GpuSurvey survey = environment.survey_gpus(options.for_driver_s());
  std::vector<ModuleReport> libraries;
  for (const BackendEntry& entry : environment.backends) {
    const bool is_cuda = entry.name == "cuda";
    has_cuda = has_cuda || is_cuda;
    if (is_cuda) libraries = libraries_of(entry, environment, options.for_opening_s(), findings);
    if (is_cuda && !driver.usable) continue;  // diagnose() reports why
    for (Finding& finding : backend_findings(entry, environment, options.for_opening_s()))
      findings.push_back(std::move(finding));
  }
  for (Finding& finding : diagnose(read_host(), driver, has_cuda)) findings.push_back(std::move(finding));
  for (Finding& finding : diagnose_gpus(driver, survey, libraries)) findings.push_back(std::move(finding));
  if (has_cuda) add_library_folders(findings);
  for (const auto& [variable, value] : context_variables(environment)) {
    findings.push_back({Health::note, "D209",
                        fmt::format("{}={} is set and may change numbers; it is recorded in reports", variable, value),
                        ""});
  }
  int warnings = 0;
  for (const Finding& finding : findings) {
    environment.out << line(finding, style);
    warnings += finding.health == Health::warning ? 1 : 0;
  }
  if (const std::string gpus = gpu_table(survey, style); !gpus.empty()) environment.out << "\n" << gpus;
  const bool gpu = driver.usable && has_cuda;
  const std::string end = fmt::format("{}; gpubench --suite all will use {}",
                                      warnings == 0 ? "nothing wrong" : fmt::format("{} warning(s)", warnings),
                                      gpu ? "the GPU" : "the " + environment.backends.front().name + " backend");
  environment.out << "\n" << fitted(end, style.width, 0) << "\n";
  return exit_codes::ok;
}

std::vector<Flag> doctor_flags(std::span<const std::string> /*suites*/) {
  return shared_flags({"--deadline", "--trust-libraries", "--color"});
}

}  // namespace

Verb doctor_verb() {
  return {.name = "doctor",
          .arguments = "[flags]",
          .summary = "report the state of this machine and what disturbs measurements",
          .examples = R"(  gpubench doctor
  gpubench doctor --color always | less -R
)",
          .flags = doctor_flags,
          .act = doctor_command};
}

}  // namespace gpubench
