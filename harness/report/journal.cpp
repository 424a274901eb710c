#include "harness/report/journal.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/report/report_json.h"

namespace gpubench {
namespace {

constexpr std::string_view journal_schema = "gpubench-journal";
constexpr std::int64_t journal_version = 1;
JournalStart start_from(const Node& node) {
  JournalStart start;
  if (node.at("schema").text() != journal_schema) node.at("schema").refuse(fmt::format("is not {}", journal_schema));
  (void)node.at("schema_version").integer(journal_version, journal_version);
  start.invocation = node.at("invocation").text();
  const Node words = node.at("words");
  for (std::size_t i = 0; i < words.length(); ++i) start.words.push_back(words.at(i).text());
  for (const auto& [key, value] : node.at("settings").members()) start.settings.emplace_back(key, value.text());
  return start;
}

// The next round, or one measured again by a later run, which replaces it and all after it.
void add_round(Journal& journal, CaseRecord&& record, const Node& node) {
  if (record.rounds.size() != 1) node.refuse("does not hold one round");
  if (journal.finished.contains(record.key())) node.refuse("is a round of a finished case");
  const auto found = journal.in_flight.find(record.key());
  const std::size_t before = found == journal.in_flight.end() ? 0 : found->second.rounds.size();
  const int number = record.summary.rounds;
  if (number < 1 || number > static_cast<int>(before) + 1)
    node.refuse(fmt::format("is round {} of its case, out of turn", number));
  add_round(journal.in_flight, std::move(record));
}

void add_entry(Journal& journal, const Node& node, std::size_t line) {
  if (line == 0) {
    journal.start = start_from(node.at("start"));
  } else if (node.has("case")) {
    CaseRecord record = record_from_json(node.at("case"));
    journal.in_flight.erase(record.key());
    const std::string id = record.key();
    if (!journal.finished.emplace(id, std::move(record)).second) node.refuse("finishes a case twice");
  } else if (node.has("round")) {
    add_round(journal, record_from_json(node.at("round")), node.at("round"));
  } else {
    (void)node.at("resumed").boolean();
    ++journal.resumed;
  }
}

VisitLine adding_to(Journal& journal) {
  return [&journal](const Node& entry, std::size_t line) { add_entry(journal, entry, line); };
}

}  // namespace

void add_round(std::map<std::string, CaseRecord>& in_flight, CaseRecord record) {
  CaseRecord& so_far = in_flight[record.key()];
  std::vector<RoundRecord> rounds = std::move(so_far.rounds);
  rounds.resize(std::min(rounds.size(), static_cast<std::size_t>(std::max(record.summary.rounds - 1, 0))));
  rounds.push_back(std::move(record.rounds.front()));
  so_far = std::move(record);
  so_far.rounds = std::move(rounds);
}

Journal read_journal(const std::string& path) {
  Journal journal;
  journal.end = read_lines(path, adding_to(journal));
  return journal;
}

JournalWriter::JournalWriter(const std::string& path, const JournalStart& start, const WriteRules& rules)
    : lines_(path, rules, "is the journal of an interrupted run; --resume continues it, --force starts a new one") {
  Json settings = Json::object();
  for (const auto& [key, value] : start.settings) settings[key] = value;
  lines_.append("start", {{"schema", journal_schema},
                          {"schema_version", journal_version},
                          {"invocation", start.invocation},
                          {"words", start.words},
                          {"settings", std::move(settings)}});
}

JournalWriter::JournalWriter(const std::string& path, Journal& journal, const WriteRules& rules)
    : lines_(path, rules, adding_to(journal)) {
  journal.end = lines_.end();
}

void JournalWriter::resumed() { lines_.append("resumed", true); }

void JournalWriter::finished(const CaseRecord& record) { lines_.append("case", to_json(record)); }

void JournalWriter::round(const CaseRecord& record) { lines_.append("round", to_json(record)); }

}  // namespace gpubench
