#include "harness/cli/soak_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/cli/finding_records.h"
#include "harness/report/line_journal.h"
#include "harness/report/report_json.h"

namespace gpubench {
namespace {

constexpr std::int64_t max_in_an_interval = 1'000'000'000'000;

Json with_text(const std::string& text) { return {{"text", text}}; }

std::vector<std::string> texts_of(const Node& node) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < node.length(); ++i) texts.push_back(node.at(i).text());
  return texts;
}

Json totals_of_soak(const SoakResult& r) {
  return {{"seconds", r.seconds},
          {"device_s", r.device_s},
          {"comparing_s", r.comparing_s},
          {"clearing_s", r.clearing_s},
          {"judging_s", r.judging_s},
          {"launches", r.launches},
          {"ops", r.ops},
          {"flop", r.flop},
          {"rechecks", r.rechecks},
          {"diverged", r.diverged},
          {"rejected", r.rejected}};
}

Json json_of(const SoakingDevice& device) {
  const SoakResult& r = device.result;
  Json json = totals_of_soak(r);
  json["device"] = device.word;
  json["info"] = to_json(device.info);
  json["burst_launches_per_s"] = r.burst_rate();
  json["sustained_launches_per_s"] = r.sustained_rate();
  json["cases"] = r.cases;
  json["left_out"] = r.left_out;
  json["divergences"] = Json::array();
  for (const Divergence& divergence : r.divergences) json["divergences"].push_back(to_json(divergence));
  json["wrong"] = r.wrong;
  json["intervals"] = Json::array();
  for (const SoakInterval& interval : r.intervals) json["intervals"].push_back(to_json(interval));
  if (!device.trouble.empty()) json["trouble"] = device.trouble;
  return json;
}

}  // namespace

SoakObserver soak_findings(const WorkFindings& findings) {
  const auto tell = [&findings](const char* kind, Json content) { findings.found({{kind, std::move(content)}}); };
  return {.prepared =
              [tell](const SoakResult& r) {
                tell("cases", {{"cases", r.cases}, {"left_out", r.left_out}});
              },
          .interval = [tell](const SoakInterval& interval) { tell("interval", to_json(interval)); },
          .divergence = [tell](const Divergence& divergence) { tell("divergence", to_json(divergence)); },
          .wrong = [tell](const std::string& text) { tell("wrong", with_text(text)); },
          .judged = [tell](const JudgedLaunch& launch) { tell("judged", to_json(launch)); },
          .rechecked =
              [tell](double seconds) {
                tell("recheck", {{"seconds", seconds}});
              },
          .now = findings.now};
}

void SoakLog::take(std::size_t number, const WorkFinding& finding) {
  SoakingDevice& device = devices_.at(number);
  const Node& content = finding.content;
  if (finding.kind == "opened") {
    device.info = device_from_json(content);
  } else if (finding.kind == "cases") {
    device.result.cases = texts_of(content.at("cases"));
    device.result.left_out = texts_of(content.at("left_out"));
  } else if (finding.kind == "interval") {
    for (const std::string_view counter : {"launches", "ops"})  // so that sums over a file cannot overflow
      (void)content.at(counter).integer(0, max_in_an_interval);
    device.result.add(interval_from_json(content));
  } else if (finding.kind == "divergence") {
    device.result.add(divergence_from_json(content));
  } else if (finding.kind == "wrong") {
    device.result.add_wrong(content.at("text").text());
  } else if (finding.kind == "recheck") {
    ++device.result.rechecks;
    device.result.judging_s += content.at("seconds").number(0.0, 1e9);
  } else {
    content.refuse(fmt::format("is a finding of an unknown kind, '{}'", finding.kind));
  }
}

void SoakLog::add_vote(std::string text) {
  ++disagreements_;
  if (votes_.size() < max_soak_findings) votes_.push_back(std::move(text));
}

SoakResult SoakLog::total() const {
  SoakResult total;
  for (const SoakingDevice& device : devices_) {
    const SoakResult& r = device.result;
    total.seconds += r.seconds;
    total.device_s += r.device_s;
    total.clearing_s += r.clearing_s;
    total.comparing_s += r.comparing_s;
    total.judging_s += r.judging_s;
    total.launches += r.launches;
    total.ops += r.ops;
    total.flop += r.flop;
    total.rechecks += r.rechecks;
    total.diverged += r.diverged;
    total.rejected += r.rejected;
  }
  return total;
}

bool SoakLog::has_trouble() const {
  return std::ranges::any_of(devices_, [](const SoakingDevice& device) { return !device.trouble.empty(); });
}

Completion SoakLog::completion() const {
  double done_s = requested_s_;
  for (const SoakingDevice& device : devices_)
    done_s = std::min(done_s, device.result.intervals.empty() ? 0.0 : device.result.intervals.back().at_s);
  return {has_ended_ && !interrupted_ && !has_trouble(), done_s, requested_s_, "s"};
}

std::int64_t SoakLog::faults() const {
  const SoakResult all = total();
  return all.diverged + all.rejected + disagreements_;
}

Json SoakLog::json() const {
  const SoakResult all = total();
  Json json = totals_of_soak(all);
  const Completion completion = this->completion();
  completion.add_to(json);
  json["passed"] = passed() && completion.complete;
  json["excluded_rate_per_op"] = excluded_rate(all.ops);
  json["devices"] = Json::array();
  for (const SoakingDevice& device : devices_) json["devices"].push_back(json_of(device));
  json["voted"] = voted_;
  json["disagreements"] = disagreements_;
  json["votes"] = votes_;
  json["not_compared"] = not_compared_;
  return json;
}

SoakRead read_soak(const std::string& path) {
  SoakRead read;
  (void)read_lines(path, [&](const Node& entry, std::size_t line) {
    const auto members = entry.members();
    const auto& [kind, content] = members.back();
    if (line == 0) {
      if (kind != "start" || content.at("schema").text() != soak_schema) entry.refuse("is not a journal of a soak");
      (void)content.at("schema_version").integer(soak_schema_version, soak_schema_version);
      read.version = content.at("version").text();
      read.seed = content.at("seed").natural();
      const std::vector<std::string> words = texts_of(content.at("devices"));
      if (words.empty()) content.at("devices").refuse("is empty");
      read.book = SoakLog(words);
      read.book.set_requested(content.at("seconds").number(0.0, 1e12));
    } else if (kind == "end") {
      std::vector<std::string> not_compared = texts_of(content.at("not_compared"));
      read.book.set_voted(content.at("voted").integer(), {not_compared.begin(), not_compared.end()});
      // An interrupted soak has an end line, too; journals of earlier versions lack "complete".
      if (content.has("complete") && !content.at("complete").boolean()) read.book.set_interrupted();
      read.ended = true;
    } else if (kind == "vote") {
      read.book.add_vote(content.at("text").text());
    } else {
      const auto last = static_cast<std::int64_t>(read.book.devices().size()) - 1;
      const auto device = static_cast<std::size_t>(content.at("device").integer(0, last));
      if (kind == "lost") {
        read.book.add_trouble(device, content.at("text").text());
      } else {
        read.book.take(device, {kind, content});
      }
    }
  });
  if (!read.ended) read.book.set_unended();
  return read;
}

}  // namespace gpubench
