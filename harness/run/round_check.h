// What every round left in every copy, compared with what the check saw: faults that come now and then, in one round,
// in one copy, in one element.
//
// Equal inputs must give equal bits, so a fingerprint of each output after each round is enough to find what differs.
// What differs is looked at element by element, and the textbook judges the elements that differ. A program with state
// has moved on after a round; its rounds are compared with each other: the same number of runs from the same state.
//
// What this can't see: a wrong result that a later run of the same round overwrites before anybody looks. Of a program
// without state the last run in each copy is seen; a state carries every wrong run on to the end of its round.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/core/record.h"
#include "harness/run/op_judge.h"
#include "harness/run/prepared_case.h"

namespace gpubench {

/// Fingerprints of what a copy holds, by storage, to find what changed.
using Fingerprints = std::map<int, std::uint64_t>;
[[nodiscard]] Fingerprints fingerprints_of(PreparedCase& prepared, int copy, const std::vector<StorageId>& storages);

class RoundCheck {
 public:
  /// All must outlive it.
  RoundCheck(PreparedCase& prepared, const OpJudge& judge, CaseRecord& record);

  /// What the check has judged, of the storages that the timed ops produce.
  void expect(Fingerprints judged) { judged_ = std::move(judged); }

  /// A round has ended; `copies` of them had a turn. Chooses what is looked at: everything where the backend
  /// examines its memory itself, or where `whole`; else up to 256 MiB, the storages taking turns, for it crosses a bus.
  void begin(int copies, bool whole);
  /// The storages of the copy that are not as they should be, of those chosen. Also learns what a state should be.
  [[nodiscard]] std::vector<StorageId> differing(int copy);
  /// Whether something of the last round was not chosen.
  [[nodiscard]] bool partial() const { return partial_; }
  /// Finds out what it means: judges the elements that differ, or repeats the round (`plan`) where there is state. What
  /// is wrong goes to the record. True: there is a fault, and no sense in more rounds.
  [[nodiscard]] bool settle(int copy, const std::vector<StorageId>& differing, const RoundPlan& plan);
  /// To be called after the replay, which names the op where it finds the fault too: what is left to be told.
  void tell_deferred();

  /// "outputs of 3 rounds as checked, bit for bit"; nothing where no round was looked at.
  [[nodiscard]] std::string coverage() const;

 private:
  struct Left;
  [[nodiscard]] bool judge_left(int copy, const std::vector<StorageId>& differing);
  [[nodiscard]] bool repeat(int copy, const std::vector<StorageId>& differing, const RoundPlan& plan);
  [[nodiscard]] std::string writer_of(int storage) const;

  PreparedCase& prepared_;
  const OpJudge& judge_;
  CaseRecord& record_;
  std::vector<StorageId> watched_;
  Fingerprints judged_;
  std::map<std::tuple<int, std::int64_t, int>, std::uint64_t> states_;  ///< by copy, runs of the round, storage
  std::set<std::pair<int, int>> chosen_;                                ///< copies and storages of this round
  std::size_t next_ = 0;                                                ///< whose turn it is, where not all are chosen
  Fingerprints found_;                                                  ///< of the copy that was looked at last
  bool varies_ = false;   ///< the bits differ from run to run although nothing is wrong
  std::set<int> passed_;  ///< ops that differed and were within their bound: told once
  std::vector<OpParity> deferred_;
  std::string deferred_reason_;
  std::int64_t compared_bytes_ = 0;
  std::int64_t left_bytes_ = 0;  ///< by all rounds
  std::int64_t within_bound_ = 0;
  std::size_t rounds_ = 0;
  bool partial_ = false;
  bool counts_ = true;  ///< a round counts once, however often it is looked at
};

}  // namespace gpubench
