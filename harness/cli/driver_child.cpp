#include "harness/cli/driver_child.h"

#include <fmt/format.h>

#include "harness/cli/device.h"
#include "harness/cli/driver_json.h"
#include "harness/cli/question.h"
#include "harness/core/error.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

// What the child answered as `read` understands it; nothing where it gave no answer.
template <class Read>
auto understood(const Heard& heard, const Read& read) -> std::optional<decltype(read(std::declval<Node>()))> {
  if (heard.answer.empty()) return std::nullopt;
  try {
    const Json json = parse_json(heard.answer, "probe");
    return read({json, "probe"});
  } catch (const ReadError& e) {
    throw CannotMeasure(e.what());
  }
}

Heard ask_about(const std::string& subject, const std::string& program, double deadline_s, const StopFlag& stop) {
  return ask({program, "probe", subject}, deadline_s, stop);
}

}  // namespace

NvidiaDriver ask_nvidia_driver(const std::string& program, double deadline_s, const StopFlag& stop) {
  const Heard heard = ask_about("driver", program, deadline_s, stop);
  NvidiaDriver driver = understood(heard, driver_from_json).value_or(NvidiaDriver{});
  if (heard.answer.empty()) {
    driver.hardware_seen = nvidia_hardware_seen();
    driver.reason = "the NVIDIA driver " + (heard.trouble.empty() ? "said nothing" : heard.trouble);
  }
  return driver;
}

GpuSurvey ask_gpus(const std::string& program, double deadline_s, const StopFlag& stop) {
  const Heard heard = ask_about("gpus", program, deadline_s, stop);
  GpuSurvey survey = understood(heard, survey_from_json).value_or(GpuSurvey{});
  if (!heard.trouble.empty()) survey.why_not = "NVML " + heard.trouble;
  return survey;
}

std::vector<ModuleReport> ask_libraries(const std::string& program, double deadline_s, const StopFlag& stop) {
  const Heard heard = ask_about("libraries", program, deadline_s, stop);
  const ModuleSurvey survey = understood(heard, module_from_json).value_or(ModuleSurvey{});
  if (!survey.why_not.empty()) throw BackendError(survey.why_not);
  if (heard.answer.empty())
    throw CannotMeasure("the CUDA module " + (heard.trouble.empty() ? "said nothing" : heard.trouble));
  return survey.libraries;
}

void probe(const std::string& subject, int output_fd, std::span<const BackendEntry> backends) {
  const Teller teller(output_fd);
  const auto before = [&teller](std::string_view call) { teller.call(call); };
  if (subject == "driver") {
    teller.answer(dump(to_json(probe_nvidia_driver("", "libcuda.so.1", before))));
  } else if (subject == "gpus") {
    teller.answer(dump(to_json(survey_gpus("libnvidia-ml.so.1", before))));
  } else if (subject == "libraries") {
    teller.call("loading it");
    ModuleSurvey survey;
    try {
      for (const BackendEntry& entry : backends) {
        if (entry.libraries) survey.libraries = entry.libraries();
      }
    } catch (const BackendError& e) {
      survey.why_not = e.what();
    }
    teller.answer(dump(to_json(survey)));
  } else {
    throw UsageError(fmt::format("probe: '{}' is none of driver, gpus, libraries", visible(subject)));
  }
}

}  // namespace gpubench
