#include "harness/cli/soak_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/cli/finding_records.h"
#include "harness/cli/flags.h"
#include "harness/cli/repeated_runs.h"
#include "harness/cli/run_context.h"
#include "harness/cli/verb_output.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_faults_printed = 5;

std::vector<std::string> words_of(std::span<const SoakPlace> places) {
  std::vector<std::string> words;
  for (const SoakPlace& place : places) words.push_back(place.word);
  return words;
}

std::string of_ordinal(DeviceChoice device, int ordinal) {
  device.ordinal = ordinal;
  return device.word();
}

}  // namespace

std::vector<SoakPlace> soak_places(const Options& options, const DeviceChoice& device, const Environment& environment) {
  const std::vector<std::string>& devices = options.of<SoakOptions>().devices;
  if (devices.empty()) return {{device.word(), device.word()}};
  if (!options.isolate) throw UsageError("--devices: each device needs a separate process; leave --isolate off out");
  const std::optional<int> count = devices.size() == 1 ? number<int>(devices.front()) : std::nullopt;
  std::vector<SoakPlace> places;
  if (!count) {
    for (const std::string& name : devices) {
      const DeviceChoice one = choose_device(name, environment, options.for_driver_s());
      if (one.devices == 0)
        throw UsageError(fmt::format("--devices: '{}' is not a GPU; a number N makes N equal shares of the processors",
                                     visible(name)));
      places.push_back({one.word(), one.word()});
    }
    return places;
  }
  const int all = device.devices > 0 ? device.devices : usable_processors();
  if (*count < 1 || *count > all)
    throw UsageError(fmt::format("--devices: '{}'; expected a number from 1 to {}, the {} that there are",
                                 visible(devices.front()), all, device.devices > 0 ? "GPUs" : "processors"));
  for (int i = 0; i < *count; ++i) {
    if (device.devices > 0) {
      const std::string word = of_ordinal(device, i);
      places.push_back({word, word});
    } else {
      const int each = all / *count;
      places.push_back({device.word(),
                        fmt::format("{} share {}, {} processor{}", device.word(), i, each, each == 1 ? "" : "s"), each,
                        each * i});
    }
  }
  return places;
}

SoakRun::SoakRun(const Options& options, const Environment& environment, std::span<const SoakPlace> places)
    : options_(options),
      own_(options.of<SoakOptions>()),
      environment_(environment),
      words_(words_of(places)),
      log_(words_),
      vote_(places.size()),
      status_(environment) {
  log_.set_requested(own_.minutes * 60.0);
}

void SoakRun::open_journal(std::uint64_t seed, std::span<const PlannedCase> cases) {
  if (own_.journal.empty()) return;
  Json ids = Json::array();
  for (const PlannedCase& planned : cases) ids.push_back(planned.id());
  try {
    journal_.emplace(own_.journal, options_.writing, "is there already; --force replaces it");
    journal_->append("start", {{"schema", soak_schema},
                               {"schema_version", soak_schema_version},
                               {"version", version()},
                               {"devices", words_},
                               {"seed", seed},
                               {"seconds", own_.minutes * 60.0},
                               {"cases", std::move(ids)}});
  } catch (const WriteError& e) {
    fail_to_write("--journal", e);
  }
}

void SoakRun::take(std::size_t device, const Json& json) {
  const WorkFinding finding = finding_of(json);
  if (finding.kind == "error") {
    errors_[device] = visible(finding.content.text());
  } else if (finding.kind == "judged") {
    print_votes(vote_.judged(device, judged_from_json(finding.content)));
  } else {
    log_.take(device, finding);
    Json content = json.begin().value();
    content["device"] = device;
    append_note(finding.kind, std::move(content));
    react(device, finding);
  }
}

void SoakRun::ended(std::size_t device, std::string trouble) {
  const bool stopped = errors_.contains(device);  // reported its own error
  if (stopped) trouble = "stopped: " + errors_.at(device);
  if (environment_.stop != 0) trouble.clear();
  print_votes(vote_.ended(device));
  if (trouble.empty()) return;
  append_note("lost", {{"device", device}, {"text", trouble}});
  tell(words_.size() == 1 ? fmt::format("gpubench: the soak's process {}", trouble)
                          : fmt::format("gpubench: the process of device {} ({}) {}; the others go on", device,
                                        visible(words_[device]), trouble));
  log_.add_trouble(device, std::move(trouble));
}

void SoakRun::show(const std::string& now) {
  const SoakResult all = log_.total();
  std::string text = now;
  if (all.launches > 0) {
    double at_s = 0.0;
    std::string sensors;
    for (const SoakingDevice& device : log_.devices()) {
      if (device.result.intervals.empty()) continue;
      const SoakInterval& last = device.result.intervals.back();
      at_s = std::max(at_s, last.at_s);
      sensors += sensors_text(last.telemetry);
    }
    text = fmt::format("{:.0f} of {:.0f} s · {} launches{} · {} faults", at_s, own_.minutes * 60.0, all.launches,
                       sensors, log_.faults());
  }
  if (text != shown_) status_.show(text);
  shown_ = std::move(text);
}

SoakLog SoakRun::finish() {
  log_.set_voted(vote_.voted(), vote_.not_compared());
  if (environment_.stop != 0) log_.set_interrupted();
  Json end = log_.json();
  end.erase("devices");  // each device has its own line
  append_note("end", std::move(end));
  status_.erase();
  return std::move(log_);
}

void SoakRun::react(std::size_t device, const WorkFinding& finding) {
  const std::string where = words_.size() == 1 ? std::string() : fmt::format("device {}, ", device);
  if (finding.kind == "opened") {
    vote_.opened(device, log_.devices()[device].info);
  } else if (finding.kind == "divergence") {
    const Divergence divergence = divergence_from_json(finding.content);
    print_fault(fmt::format("other bits after {}{}", where, divergence_text(divergence)));
    print_votes(vote_.diverged(device, divergence));
  } else if (finding.kind == "wrong") {
    print_fault(where + "rejected by the textbook: " + visible(finding.content.at("text").text()));
  }
}

void SoakRun::print_votes(const std::vector<std::string>& votes) {
  for (const std::string& text : votes) {
    log_.add_vote(text);
    append_note("vote", {{"text", text}});
    print_fault("vote: " + visible(text));
  }
}

// Prints the first few; counts all.
void SoakRun::print_fault(const std::string& text) {
  if (++told_ <= max_faults_printed) tell(text);
}

void SoakRun::tell(const std::string& text) {
  status_.erase();
  environment_.err << text << std::endl;
}

void SoakRun::append_note(const std::string& what, Json content) {
  try {
    if (journal_) journal_->append(what, std::move(content));
  } catch (const WriteError& e) {
    journal_.reset();
    tell(fmt::format("gpubench: the journal ends here: {}", e.what()));
  }
}

}  // namespace gpubench
