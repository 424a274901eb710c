#include "harness/cli/recorder.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <utility>

#include "harness/cli/selection.h"
#include "harness/cli/verb.h"
#include "harness/cli/verb_output.h"
#include "harness/compare/invocation.h"
#include "harness/core/error.h"
#include "harness/core/file/atomic_file.h"
#include "harness/core/hash.h"
#include "harness/core/text/visible_text.h"
#include "harness/hardware/peaks.h"
#include "harness/report/anonymize.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/run/case_record.h"
#include "reference/ops/definition.h"

namespace gpubench {

Recorder::Recorder(RunObserver& view, const DeviceInfo& device, JournalWriter* journal)
    : view_(view), device_(device), journal_(journal) {}

void Recorder::take(const Journal& journal) {
  for (const auto& [key, record] : journal.finished) {
    records_[key] = record;
    (void)peak_checked(record);
  }
  in_flight_ = journal.in_flight;
}

void Recorder::append_note(const CaseRecord& record, void (JournalWriter::*entry)(const CaseRecord&)) {
  if (journal_ == nullptr) return;
  try {
    (journal_->*entry)(record);
  } catch (const WriteError& e) {
    journal_ = nullptr;
    view_.note(fmt::format("the run continues, but its journal ends here: {}", e.what()));
  }
}

void Recorder::round(const CaseRecord& record) {
  append_note(record, &JournalWriter::round);
  add_round(in_flight_, record);
}

void Recorder::finished(const CaseRecord& record) {
  append_note(record, &JournalWriter::finished);
  records_[record.key()] = record;
  in_flight_.erase(record.key());
  view_.finished(peak_checked(record));
}

CaseRecord Recorder::peak_checked(const CaseRecord& record) {
  bests_.push_back(record);
  CaseRecord held = record;
  add_peak_share(held, peak_shares(device_, bests_).back());
  if (!held.derived.peak || held.derived.peak->of_best.value_or(0.0) < 1.0) bests_.pop_back();
  return held;
}

std::vector<CaseRecord> Recorder::in_order_of(std::span<const PlannedCase> plan, int signal) const {
  std::vector<CaseRecord> all;
  for (const PlannedCase& planned : plan) {
    if (const auto found = records_.find(planned.key()); found != records_.end()) {
      all.push_back(found->second);
      continue;
    }
    const auto left = in_flight_.find(planned.key());
    all.push_back(unfinished_record(planned, signal, left == in_flight_.end() ? nullptr : &left->second));
  }
  return all;
}

namespace {

using Words = std::vector<std::string>;

bool names_code(const Flag& flag) { return flag.has(use::code); }

// A journal is untrusted: it must not start code that the command line does not name.
void require_code_named_again(const Words& needed, const Words& given) {
  for (const Flag& flag : flags_of("run")) {
    const auto in = [&](const Words& words) { return std::ranges::find(words, flag.long_name) != words.end(); };
    if (!names_code(flag) || !in(needed) || in(given)) continue;
    throw UsageError(fmt::format("it ran code that a journal alone can't start; give its flags again: {}",
                                 visible(joined(needed, " "))));
  }
}

// A journal is untrusted: it may select what runs and how it is measured, but not what is written where.
void require_measurement_flags(const Resumption& one, std::span<const std::string> suites) {
  std::vector<std::string> words{"run"};
  words.insert(words.end(), one.journal.start.words.begin(), one.journal.start.words.end());
  if (parse_options(words, {}, suites).own_words != one.journal.start.words)
    throw UsageError("it has flags that neither select nor measure");
}

// With --resume only the verb, flags that name code and --tuning-cache may be given; the rest comes from the journal.
bool takes_flags_of_journal(const Options& options) {
  const Words chosen = parted("run", options.own_words, names_code).others;
  return chosen.empty() || std::ranges::equal(chosen, no_tuning_cache);
}

// The report replaces the partial one next to the journal.
void keep_places(Resumption& one, const std::string& resume) {
  Options& o = one.options;
  o.writing.replace = true;
  if (std::filesystem::is_directory(resume)) {
    if (o.out) throw UsageError("--out: a resumed run keeps its folder; leave the flag out");
    o.out = resume;
    return;
  }
  const std::string file = one.path.substr(0, one.path.size() - journal_ending.size());
  if (o.out || (o.json && *o.json != file))
    throw UsageError("--resume: the report goes where the journal is; leave --out and --json out");
  o.json = file;
}

}  // namespace

std::string journal_of(const std::string& resume) {
  if (std::filesystem::is_directory(resume)) return (std::filesystem::path(resume) / journal_name).string();
  if (!resume.ends_with(journal_ending) || resume.size() == journal_ending.size())
    throw UsageError(fmt::format("--resume: '{}' is neither a folder nor a FILE{}", visible(resume), journal_ending));
  return resume;
}

Resumption open_resumption(const Options& options, const Environment& environment) {
  Resumption one;
  one.path = journal_of(*options.resume);
  one.options = options;
  const std::vector<std::string> suites = suite_names(environment.suites);
  const bool takes_flags = takes_flags_of_journal(options);
  PartedWords kept;
  try {
    if (options.dry_run) {
      one.journal = read_journal(one.path);
    } else {
      one.folders.hold(one.path);
      one.writer = std::make_unique<JournalWriter>(one.path, one.journal, one.folders.rules(one.path, options.writing));
    }
    require_measurement_flags(one, suites);
    kept = parted("run", one.journal.start.words, names_code);
    if (takes_flags) require_code_named_again(kept.taken, options.own_words);
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("--resume: {}; expected the journal of a run that was interrupted", e.what()));
  } catch (const WriteError& e) {
    fail_to_write("--resume", e);
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("--resume: {}: {}", visible(one.path), e.what()));
  }
  if (takes_flags) {
    Words all{"run"};
    all.insert(all.end(), kept.others.begin(), kept.others.end());
    const bool has_verb = !options.words.empty() && options.words.front() == "run";
    all.insert(all.end(), options.words.begin() + (has_verb ? 1 : 0), options.words.end());
    one.options = parse_options(all, environment.variable, suites);
    // Code is loaded only as named by this command line, whatever the journal contains.
    if (one.options.implementations != options.implementations || one.options.python != options.python ||
        one.options.trust_libraries != options.trust_libraries)
      throw UsageError(fmt::format("--resume: {}: its flags change which code is loaded", visible(one.path)));
  }
  keep_places(one, *options.resume);
  return one;
}

std::vector<std::pair<std::string, std::string>> settings_of(const Report& report, std::span<const PlannedCase> plan,
                                                             const Options& options, const Anonymizer* anonymizer) {
  Setup setup = setup_of(report);
  Facts facts = std::move(setup.decisive);
  facts.insert(facts.end(), setup.telling.begin(), setup.telling.end());
  facts.emplace_back("check", report.run.check);
  facts.emplace_back("injected", report.run.injected);
  facts.emplace_back("energy", options.run.energy ? "on" : "off");
  for (const auto& [fact, file] :
       {std::pair{"pin", &options.pin}, {"like", &options.like}, {"shapes", &options.shapes}}) {
    if (*file) facts.emplace_back(fact, anonymizer == nullptr ? **file : anonymizer->path(**file));
  }
  facts.emplace_back("breakdown", options.run.breakdown ? "on" : "off");
  std::uint64_t digest = 0;
  for (const PlannedCase& planned : plan) digest = hash(planned.key(), digest);
  facts.emplace_back("cases", fmt::format("{} ({:016x})", plan.size(), digest));
  return facts;
}

void require_same_run(const Resumption& resumption, const std::vector<std::pair<std::string, std::string>>& settings,
                      std::span<const std::string_view> unknown) {
  std::vector<Difference> all = differences(resumption.journal.start.settings, settings);
  std::erase_if(all, [&](const Difference& one) { return std::ranges::find(unknown, one.key) != unknown.end(); });
  if (all.empty()) return;
  const std::string more = all.size() == 1 ? "" : fmt::format(", and {} more", all.size() - 1);
  throw DifferentRun(
      fmt::format("--resume: this is another run than the interrupted one: {}{}; use the same machine, build and "
                  "flags, or start a new run",
                  difference_text(all.front()), more));
}

std::optional<HashKey> key_for(const Options& options, const Environment& environment) {
  if (!options.anonymize) return std::nullopt;
  const std::string file = options.anonymize_key.value_or(
      default_key_file(environment.variable("XDG_CONFIG_HOME"), environment.variable("HOME")));
  if (file.empty()) throw UsageError("--anonymize: no home folder for the key; name a file: --anonymize-key FILE");
  try {
    return anonymize_key(file);
  } catch (const ReadError& e) {
    throw UsageError(fmt::format("--anonymize: {}", e.what()));
  } catch (const WriteError& e) {
    if (e.is_disk_error()) fail_to_write("--anonymize", e);
    throw UsageError(fmt::format("--anonymize: {}; name another key file: --anonymize-key FILE", e.what()));
  }
}

KeptFlags kept_flags(std::span<const Suite> suites) {
  KeptFlags kept;
  const auto keep_words = [&kept](std::string_view sentence) {
    std::string word;
    for (const char c : std::string(sentence) + " ") {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0 || c == '_') {
        word += static_cast<char>(std::tolower(byte));
      } else if (!word.empty()) {
        kept.words.push_back(std::exchange(word, ""));
      }
    }
  };
  for (const OpDefinition* op : definitions()) keep_words(op->kind().name);
  for (const Suite& suite : suites) {
    keep_words(suite.name);
    for (const auto& workload : suite.workloads) keep_words(workload->info().name);
  }
  for (const Flag& flag : flags_of("run")) {
    keep_words(flag.text);
    for (const std::string& name : flag.names()) keep_words(name);
    if (!flag.use) {
      if (flag.value == ValueKind::file || flag.value == ValueKind::folder)
        for (std::string& name : flag.names()) kept.outputs.push_back(std::move(name));
      continue;
    }
    auto& kind = flag.value == ValueKind::none   ? kept.switches
                 : flag.value == ValueKind::text ? kept.values
                                                 : kept.files;
    for (std::string& name : flag.names()) kind.push_back(std::move(name));
  }
  return kept;
}

std::vector<std::string> users_of(const Environment& environment) {
  return {environment.variable("USER"), environment.variable("LOGNAME"),
          std::filesystem::path(environment.variable("HOME")).filename().string()};
}

std::vector<std::string> without_files(const std::vector<std::string>& own_words) {
  return parted("run", own_words, [](const Flag& flag) { return flag.has(use::file); }).others;
}

std::vector<std::string> code_flags(const std::vector<std::string>& own_words) {
  return parted("run", own_words, names_code).taken;
}

}  // namespace gpubench
