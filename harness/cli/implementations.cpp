#include "harness/cli/implementations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include "harness/cli/device.h"
#include "harness/cli/recorder.h"
#include "harness/cli/verb_output.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/core/tuning_cache.h"
#include "harness/plan/names.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/run/child_process.h"

namespace gpubench {
namespace {

namespace fs = std::filesystem;

std::string digest_of_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  DigestMaker maker;
  std::string piece(std::size_t{1} << 16U, '\0');
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    maker.take(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
  }
  if (in.bad()) throw UsageError(fmt::format("--impl: {} cannot be read: {}", visible(file), std::strerror(errno)));
  return maker.digest();
}

void read_claims(Claims& claims, const Node& node) {
  if (node.has("error")) throw UsageError(fmt::format("--impl: {}", visible(node.at("error").text())));
  claims.file.version = node.at("version").text();
  claims.cases.emplace();
  const Node cases = node.at("cases");
  for (std::size_t i = 0; i < cases.length(); ++i) claims.cases->insert(cases.at(i).text());
  const Node ops = node.at("ops");
  for (std::size_t i = 0; i < ops.length(); ++i) {
    const Node op = ops.at(i);
    claims.ops.push_back({op.at("op").text(), op.at("type").text(), static_cast<int>(op.at("taken").integer()),
                          static_cast<int>(op.at("declined").integer()), op.at("reason").text()});
  }
  if (node.has("offered")) claims.offered = read_offered_calls(node.at("offered"));
}

std::string name_of(const fs::path& file) {
  std::string name = file.stem().string();
  if (file.extension() == ".so" && name.starts_with("lib") && name.size() > 3) name.erase(0, 3);
  return name;
}

constexpr const char* worker_module = "gpubench._worker";
// As python -m without the current folder on the path, an empty entry: anyone may have put a ctypes.py there. (Python
// 3.11 has -P for that, and adds no entry with PYTHONSAFEPATH.)
constexpr const char* without_current_folder = "import sys; sys.path[:] = [place for place in sys.path if place]; ";

// Starts the interpreter with env, which looks it up on the path.
std::vector<std::string> python_words(const std::string& interpreter, const std::string& program) {
  std::vector<std::string> places;
  // In the build folder of a program that is not installed.
  const fs::path package = fs::path(program).parent_path() / "harness/python";
  std::error_code ignored;
  if (fs::exists(package / "gpubench/lib/libgpubench.so", ignored)) places.push_back(package.string());
  // Drops empty entries: the interpreter would search the current folder.
  const char* value = std::getenv("PYTHONPATH");
  std::istringstream given(value == nullptr ? "" : value);
  for (std::string place; std::getline(given, place, ':');) {
    if (!place.empty()) places.push_back(place);
  }
  return {"/usr/bin/env", "PYTHONPATH=" + joined(places, ":"), interpreter};
}

// Throws UsageError for an interpreter without the package.
void check_interpreter(const NamedImplementation& named, const Environment& environment, double deadline_s) {
  std::vector<std::string> argv = python_words(named.interpreter, environment.program);
  argv.insert(argv.end(), {"-c", fmt::format("{}import {}", without_current_folder, worker_module)});
  const ChildReply heard = ask(argv, deadline_s, environment.stop, Printing::dropped);
  if (heard.trouble.empty()) return;
  throw UsageError(fmt::format(
      "--impl: {} needs the package gpubench, which {} cannot import ({}): install it there, or name another "
      "interpreter with --python",
      visible(named.file), visible(named.interpreter), heard.trouble));
}

}  // namespace

std::vector<NamedImplementation> named_implementations(std::span<const std::string> files, const std::string& python) {
  std::vector<NamedImplementation> named;
  for (const std::string& file : files) {
    std::error_code error;
    const fs::path path = fs::canonical(file, error);
    if (error) throw UsageError(fmt::format("--impl: {}: {}", visible(file), error.message()));
    if (!fs::is_regular_file(path, error))
      throw UsageError(
          fmt::format("--impl: {} is not a file; expected a shared library, or a Python file", visible(file)));
    const std::string name = name_of(fs::path(file));
    if (!is_contender_name(name) || name == reference_name)
      throw UsageError(fmt::format(
          "--impl: {}: '{}' cannot be its name in records; expected 1 to 40 characters of A-Z a-z 0-9 . _ + -, not "
          "'{}': rename the file",
          visible(file), visible(name), reference_name));
    if (std::ranges::any_of(named, [&](const NamedImplementation& one) { return one.name == name; }))
      throw UsageError(fmt::format("--impl: two files are called '{}' in records; rename one", name));
    named.push_back({name, path.string(), path.extension() == ".py" ? python : ""});
  }
  return named;
}

std::vector<Claims> query_claims(std::span<const NamedImplementation> named, std::span<const std::string> words,
                                 const std::string& device, const Environment& environment, double deadline_s) {
  std::vector<Claims> all;
  for (const NamedImplementation& one : named) {
    Claims& claims = all.emplace_back(Claims{{one.name, digest_of_file(one.file), ""}});
    std::vector<std::string> argv = program_for(std::span(&one, 1), environment.program);
    argv.insert(argv.end(), words.begin(), words.end());
    argv.insert(argv.end(), {"--device", device, "--claims-of", one.name});
    const Orphans orphans;
    const ChildReply heard = ask(argv, deadline_s, environment.stop, Printing::dropped);
    if (heard.answer.empty()) {
      if (!one.interpreter.empty()) check_interpreter(one, environment, deadline_s);
      environment.err << fmt::format("warning: {} {} when asked what it takes; each case asks again\n", one.name,
                                     heard.trouble.empty() ? "said nothing" : heard.trouble);
      continue;
    }
    try {
      const Json json = parse_json(heard.answer, "claims");
      read_claims(claims, {json, "claims"});
    } catch (const ReadError& e) {
      throw CannotMeasure(e.what());
    }
  }
  return all;
}

void send_claims(const NamedImplementation& named, std::span<const PlannedCase> cases, std::span<const Suite> suites,
                 const DeviceInfo& device, bool deterministic, int output_fd) {
  const ChildReporter teller(output_fd);
  teller.call("loading it");
  Json answer;
  try {
    const OwnImplementation own(named.name, named.file);
    std::map<std::string, std::string> reasons;  // by choice_key(), so that each call is asked once
    const auto declined = [&](const Program& program, const OpCall& call) -> const std::string& {
      constexpr std::size_t often = 64;
      const std::vector<TensorSpec> specs = specs_of_call(program, call);
      const auto [at, is_new] = reasons.try_emplace(choice_key(call, specs));
      if (is_new && reasons.size() % often == 1) teller.call("asking it");
      if (is_new) at->second = declines(own, call, specs, device, deterministic);
      return at->second;
    };
    std::map<std::pair<std::string, std::string>, OpClaim> ops;
    Json taken = Json::array();
    for (const PlannedCase& one : cases) {
      const Program program = one.workload->build(one.c);
      bool takes = false;
      for (const OpCall& call : program.ops()) {
        const std::vector<TensorSpec> specs = specs_of_call(program, call);
        const std::string type(specs.empty() ? "" : name(specs.front().dtype));
        OpClaim& claim =
            ops.try_emplace({std::string(call.kind.name), type}, OpClaim{std::string(call.kind.name), type})
                .first->second;
        const std::string& reason = declined(program, call);
        takes = takes || (reason.empty() && call.phase == Phase::timed);
        ++(reason.empty() ? claim.taken : claim.declined);
        if (claim.reason.empty()) claim.reason = reason;
      }
      if (takes) taken.push_back(one.id());
    }
    Json list = Json::array();
    for (const auto& [key, claim] : ops)
      list.push_back({{"op", claim.op},
                      {"type", claim.type},
                      {"taken", claim.taken},
                      {"declined", claim.declined},
                      {"reason", claim.reason}});
    answer = {{"version", own.version()}, {"cases", std::move(taken)}, {"ops", std::move(list)}};
    if (!suites.empty()) {
      const auto takes = [&](const Program& program, const OpCall& call) { return declined(program, call).empty(); };
      answer["offered"] = to_json(offered_calls(cases, suites, takes));
    }
  } catch (const BackendError& e) {
    answer = {{"error", e.what()}};
  }
  teller.answer(dump(answer));
}

std::vector<std::string> program_for(std::span<const NamedImplementation> named, const std::string& program) {
  std::vector<std::string> words;
  for (const NamedImplementation& one : named) {
    if (one.interpreter.empty()) continue;
    if (words.empty()) {
      words = python_words(one.interpreter, program);
      words.insert(words.end(),
                   {"-c", fmt::format("{}from {} import main; main()", without_current_folder, worker_module)});
    }
    words.push_back(one.file);
  }
  if (!words.empty()) words.emplace_back("--");
  words.push_back(program);
  return words;
}

std::vector<PlannedCase> for_contenders(std::vector<PlannedCase> cases, std::span<const NamedImplementation> named,
                                        bool with_reference) {
  if (named.empty()) return cases;
  std::vector<PlannedCase> all;
  for (PlannedCase& one : cases) {
    if (with_reference) all.push_back(one);
    for (const NamedImplementation& contender : named) {
      one.c.contender = contender.name;
      all.push_back(one);
    }
  }
  return all;
}

std::vector<PlannedCase> claimed(std::vector<PlannedCase> cases, std::span<const Claims> claims) {
  std::erase_if(cases, [&](const PlannedCase& one) {
    const std::string id = one.id();
    return std::ranges::none_of(claims, [&](const Claims& of) {
      return (one.c.contender.empty() || one.c.contender == of.file.name) && of.may_take(id);
    });
  });
  return cases;
}

std::string printed_log_path(const std::string& journal_file) {
  const fs::path journal(journal_file);
  if (journal.filename() == journal_name) return (journal.parent_path() / "printed.log").string();
  return journal_file.substr(0, journal_file.size() - journal_ending.size()) + ".printed.log";
}

PrintedLog::PrintedLog(std::string path, const WriteRules& rules) : path_(std::move(path)), rules_(rules) {
  const std::string name = rules_.name_of(path_);
  if (rules_.replace) ::unlinkat(rules_.folder, name.c_str(), 0);
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  file_ = Descriptor(::openat(rules_.folder, name.c_str(), flags, 0600));
  if (file_.get() < 0)
    fail_to_write("", WriteError(fmt::format("{}: {}", visible(path_), std::strerror(errno)), errno));
}

PrintedLog::~PrintedLog() {
  if (bytes() == 0) ::unlinkat(rules_.folder, rules_.name_of(path_).c_str(), 0);
}

std::int64_t PrintedLog::bytes() const {
  struct stat status {};
  return ::fstat(file_.get(), &status) == 0 ? status.st_size : 0;
}

std::string PrintedLog::told() const {
  return bytes() == 0 ? "" : fmt::format("the implementations printed {} bytes: {}", bytes(), visible(path_));
}

void check_versus(const std::optional<std::string>& versus, std::span<const NamedImplementation> named) {
  if (!versus) return;
  std::vector<std::string> names{std::string(reference_name)};
  for (const NamedImplementation& one : named) names.push_back(one.name);
  if (names.size() == 1) throw UsageError("--versus: nothing to compare with the reference; add --impl FILE");
  if (std::ranges::find(names, *versus) == names.end())
    throw UsageError(fmt::format("--versus: '{}' is not one of {}{}", visible(*versus), joined(names),
                                 did_you_mean(*versus, names)));
}

}  // namespace gpubench
