#include "harness/report/journal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "harness/core/hash.h"
#include "tests/fakes/io_faults/io_faults.h"
#include "tests/harness/report/sample_records.h"
#include "tests/scratch_folder.h"
#include "tests/thrown_text.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class JournalFile : public ScratchFolder {
 protected:
  static JournalStart start() { return {"0123456789abcdef", {"--tier", "smoke"}, {{"device.name", "a device"}}}; }
  static CaseRecord round_of(CaseRecord record, int number) {
    record.rounds.resize(1);
    record.rounds.front().times.device_ns = {100.0 * number};
    record.summary.rounds = number;
    return record;
  }
  // One case with two rounds and its record, and a round of another.
  void write_sample() const {
    JournalWriter journal(path_, start(), {});
    journal.round(round_of(record_, 1));
    journal.round(round_of(record_, 2));
    journal.finished(record_);
    journal.round(round_of(other_, 1));
  }
  std::string text() const { return content_of(path_); }
  void put(const std::string& text) const { write(path_, text); }
  std::string refusal() const {
    return thrown_text<ReadError>([&] { (void)read_journal(path_); }, "accepted");
  }
  std::string refusal_to_start() const {
    return thrown_text<WriteError>([&] { const JournalWriter writer(path_, start(), {}); }, "started");
  }
  static std::string line(const std::string& entry) {
    return fmt::format("{{\"crc32\":\"{:08x}\",\"entry\":{}}}\n", crc32(entry), entry);
  }

  static CaseRecord other_sample() {
    CaseRecord record = sample_record();
    record.c.label.clear();
    record.c.dims = {{"m", 8}};
    record.id = record.c.id();
    return record;
  }

  std::string path_ = (folder_ / "journal.jsonl").string();
  CaseRecord record_ = sample_record();
  CaseRecord other_ = other_sample();
};

TEST_F(JournalFile, TellsWhatWasFinishedAndWhatIsInFlight) {
  write_sample();
  const Journal journal = read_journal(path_);
  EXPECT_EQ(journal.start.invocation, "0123456789abcdef");
  EXPECT_THAT(journal.start.words, ElementsAre("--tier", "smoke"));
  EXPECT_THAT(journal.start.settings, ElementsAre(Pair("device.name", "a device")));
  ASSERT_EQ(journal.finished.size(), 1U);
  EXPECT_EQ(journal.finished.at(record_.id).summary.median_ns, record_.summary.median_ns);
  ASSERT_EQ(journal.in_flight.size(), 1U);
  EXPECT_EQ(journal.in_flight.at(other_.id).rounds.size(), 1U);
  EXPECT_EQ(journal.resumed, 0);
  EXPECT_EQ(journal.end.bytes, text().size());
}

TEST_F(JournalFile, RoundsAddUpAndAWorkerThatBeginsAnewReplacesThem) {
  {
    JournalWriter journal(path_, start(), {});
    for (const int number : {1, 2, 3, 1, 2}) journal.round(round_of(record_, number));
  }
  const Journal journal = read_journal(path_);
  const std::vector<RoundRecord>& rounds = journal.in_flight.at(record_.id).rounds;
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[1].times.device_ns.front(), 200.0);
}

// A resumed run repeats the last round, since the recheck needs its buffers.
TEST_F(JournalFile, ARoundThatIsMeasuredAgainTakesThePlaceOfTheFormer) {
  const auto numbers_read = [this](std::initializer_list<int> numbers) {
    {
      JournalWriter journal(path_, start(), {.replace = true});
      for (const int number : numbers) journal.round(round_of(record_, number));
    }
    return read_journal(path_).in_flight.at(record_.id).rounds.size();
  };
  EXPECT_EQ(numbers_read({1, 2, 3, 3}), 3U);
  EXPECT_EQ(numbers_read({1, 2, 3, 3, 3}), 3U);
  EXPECT_EQ(numbers_read({1, 2, 3, 2}), 2U);
  EXPECT_THROW((void)numbers_read({1, 3}), ReadError);
  EXPECT_THROW((void)numbers_read({1, 0}), ReadError);
}

// As after a kill: complete lines are kept, and resuming cuts the rest off.
TEST_F(JournalFile, ATornEndIsIgnoredAtEveryByteAndCutOffBeforeTheNextLine) {
  write_sample();
  const std::string whole = text();
  const std::size_t head = whole.find('\n') + 1;
  for (std::size_t bytes = head; bytes <= whole.size(); bytes += 97) {
    put(whole.substr(0, bytes));
    Journal cut;
    JournalWriter on(path_, cut, {});
    const std::string kept = whole.substr(0, bytes);
    const std::size_t lines = static_cast<std::size_t>(std::count(kept.begin(), kept.end(), '\n'));
    ASSERT_EQ(cut.end.lines, lines) << bytes;
    EXPECT_EQ(text(), kept);
    on.resumed();
    const Journal again = read_journal(path_);
    EXPECT_EQ(again.end.lines, lines + 1);
    EXPECT_EQ(again.resumed, 1);
  }
}

TEST_F(JournalFile, OneThatWasInterruptedBeforeItsFirstLineIsStartedAnew) {
  write_sample();
  const std::string whole = text();
  const std::size_t first = whole.find('\n');
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{20}, first / 2, first}) {
    put(whole.substr(0, bytes));
    EXPECT_THAT(refusal(), HasSubstr("has no lines, so nothing is lost; run without --resume"));
    { const JournalWriter writer(path_, start(), {}); }
    EXPECT_EQ(text(), whole.substr(0, first + 1));
  }
  for (const std::string& other : {whole.substr(0, first + 1), std::string("notes"), std::string("\n")}) {
    put(other);
    EXPECT_NE(refusal_to_start(), "started");
    EXPECT_EQ(text(), other);
  }
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(refusal_to_start(), "started");
}

TEST_F(JournalFile, ADamagedMissingOrForeignLineMakesItUnusable) {
  write_sample();
  const std::string whole = text();
  std::string changed = whole;
  changed[whole.size() / 2] ^= 1;
  put(changed);
  EXPECT_THAT(refusal(), HasSubstr("is damaged: its checksum does not match"));
  const std::size_t first = whole.find('\n') + 1, second = whole.find('\n', first) + 1;
  put(whole.substr(0, first) + whole.substr(second));
  EXPECT_THAT(refusal(), HasSubstr("a line is missing"));
  put("notes");
  EXPECT_THAT(refusal(), HasSubstr("is damaged"));
  put("{\"schema\": \"gpubench-report\"}\n");
  EXPECT_THAT(refusal(), HasSubstr("line 1: is damaged"));
}

// A checksum does not prove the origin.
TEST_F(JournalFile, WhatAChecksumDoesNotTellIsCheckedToo) {
  const std::string head = line(
      R"({"line":0,"start":{"schema":"gpubench-journal","schema_version":1,"invocation":"0","words":[],"settings":{}}})");
  put(head);
  EXPECT_EQ(refusal(), "accepted");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += '[';
  for (const std::string& entry : std::vector<std::string>{
           R"({"line":1})", R"({"line":1,"case":{}})", R"({"line":1,"round":{"id":"x"}})", R"({"line":1,"resumed":3})",
           R"({"line":-1,"resumed":true})", R"([])", R"({"line":1,"resumed":true,"line":1})", "{", deep}) {
    put(head + line(entry) + head);
    EXPECT_NE(refusal(), "accepted") << entry.substr(0, 40);
  }
  put(line(R"({"line":0,"start":{"schema":"other","schema_version":1}})"));
  EXPECT_THAT(refusal(), HasSubstr("is not gpubench-journal"));
}

TEST_F(JournalFile, AnInterruptedRunIsNotReplacedByAccidentNorWrittenByTwo) {
  { const JournalWriter interrupted(path_, start(), {}); }
  EXPECT_THAT(refusal_to_start(), HasSubstr("is the journal of an interrupted run; --resume continues it"));
  std::filesystem::remove(path_);
  JournalWriter first(path_, start(), {});
  EXPECT_THAT(refusal_to_start(), HasSubstr("another run is writing to it"));
  Journal read;
  EXPECT_THROW(JournalWriter(path_, read, {}), WriteError);
  JournalWriter writer(path_, start(), {.replace = true});
  EXPECT_EQ(read_journal(path_).end.lines, 1U);
}

TEST_F(JournalFile, ALinkInItsPlaceIsNotFollowed) {
  write("precious", "precious");
  std::filesystem::create_symlink("precious", path_);
  EXPECT_THROW(JournalWriter(path_, start(), {}), WriteError);
  Journal read;
  EXPECT_THROW(JournalWriter(path_, read, {}), ReadError);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "precious"), 8U);
}

TEST_F(JournalFile, TheFileThatWasReadIsContinuedThoughAnotherTakesItsName) {
  write_sample();
  Journal read;
  JournalWriter on(path_, read, {});
  const std::string moved = (folder_ / "moved").string();
  std::filesystem::rename(path_, moved);
  put("precious");
  Journal second;
  EXPECT_THROW(JournalWriter(moved, second, {}), WriteError);

  on.resumed();

  EXPECT_EQ(text(), "precious");
  EXPECT_EQ(read_journal(moved).resumed, 1);
}

// Whichever operation fails, entries reported as written can be read.
TEST_F(JournalFile, WhicheverOperationFailsEveryEntryThatWasWrittenIsRead) {
  int injected = 0;
  for (const bool and_after : {false, true}) {
    for (int k = 1;; ++k) {
      std::filesystem::remove(path_);
      int written = 0;
      bool struck = false;
      {
        const FailingIo io(folder_, {k, and_after, k % 2 == 0 ? EIO : ENOSPC});
        try {
          JournalWriter journal(path_, start(), {});
          ++written;
          for (int number = 1; number <= 3; ++number, ++written) journal.round(round_of(record_, number));
        } catch (const WriteError&) {
        }
        struck = io.struck();
      }
      if (written > 0) {
        const std::size_t lines = read_journal(path_).end.lines;
        EXPECT_GE(lines, static_cast<std::size_t>(written)) << "operation " << k;
        EXPECT_LE(lines, static_cast<std::size_t>(written) + 1) << "operation " << k;
      }
      if (!struck) break;
      ++injected;
    }
  }
  tell_count("I/O faults injected", injected);
  EXPECT_GE(injected, 16);
}

}  // namespace
}  // namespace gpubench
