// For the tests of harness/run: an observer that keeps records, and a run of the sim suite.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/run/run.h"
#include "tests/fakes/sim/sim_backend.h"
#include "tests/fakes/sim/sim_suite.h"

namespace gpubench::sim {

class Remembering : public RunObserver {
 public:
  void phase(std::string_view case_id, std::string_view phase) override {
    phases.emplace_back(case_id, phase);
    if (stop_at == phase) stop = 15;
  }
  void finished(const CaseRecord& record) override {
    if (!records.emplace(record.id, record).second) throw std::logic_error("two records of " + record.id);
  }
  void note(std::string_view text) override { notes.emplace_back(text); }
  void tick() override { ++ticks; }

  [[nodiscard]] const CaseRecord& of(const std::string& name) const { return records.at(sim_id(name)); }
  [[nodiscard]] int count(Verdict verdict) const {
    int n = 0;
    for (const auto& [id, record] : records) n += record.verdict == verdict ? 1 : 0;
    return n;
  }

  std::vector<std::pair<std::string, std::string>> phases;
  std::map<std::string, CaseRecord> records;
  std::vector<std::string> notes;
  int ticks = 0;
  std::string stop_at;  ///< raises `stop` when a case enters this phase
  StopFlag stop{0};
};

inline RunOptions smoke_options() {
  RunOptions options;
  options.tier = Tier::smoke;
  return options;
}

/// The whole sim suite in this process on a backend that follows `script`.
struct InProcess {
  explicit InProcess(const std::string& script, const RunOptions& options = smoke_options())
      : backend(parse_script(script)) {
    run_in_process(backend, sim_cases(), options, seen, seen.stop);
  }
  SimBackend backend;
  Remembering seen;
};

}  // namespace gpubench::sim
