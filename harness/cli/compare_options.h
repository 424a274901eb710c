// Flags of the verbs that hold reports against each other: compare, gate, calibrate, baseline.
#pragma once

#include <string>
#include <vector>

#include "harness/compare/tau.h"

namespace CLI {
class App;
}

namespace gpubench {

enum class Verb;

/// As typed; reports are paths.
struct CompareFlags {
  std::vector<std::string> words;  ///< without a flag: reports of compare; what baseline is to do, and with what
  std::vector<std::string> side_a, side_b, baselines, candidates, from, allowed;
  std::vector<std::string> tau;
  std::string noise, form = "table", junit, markdown, json, output, keep, runs = "10", dir;
  bool strict = false;
  bool allow_missing = false;
  bool github = false;
  bool force = false;
};

enum class CompareFormat { table, markdown, json, csv };

/// Checked.
struct CompareOptions {
  std::vector<std::vector<std::string>> sides;  ///< of compare; the first is A
  std::vector<std::string> baselines, candidates;
  std::vector<std::string> from;  ///< of calibrate: reports that there are already
  std::vector<std::string> allowed_differences;
  std::vector<std::string> words;  ///< of baseline: "save", NAME, reports...
  std::string noise;               ///< file, or folder of them; "" for none
  Tau tau{};
  CompareFormat format = CompareFormat::table;
  std::string junit, markdown;  ///< files; "" for none
  std::string json;             ///< file, "-" for standard output, "" for none
  std::string output;           ///< of calibrate: the noise file; "": named after the set-up
  std::string keep;             ///< of calibrate: folder in which its reports stay
  std::string dir;              ///< of baseline
  int runs = 10;
  bool strict = false;
  bool allow_missing = false;
  bool github = false;
  bool force = false;
};

/// Adds what the verb takes; calibrate's flags stand beside those of run.
void add_compare_flags(CLI::App& app, Verb verb, CompareFlags& flags);

/// Throws UsageError that names what is wrong, and what was expected.
[[nodiscard]] CompareOptions checked_compare(Verb verb, const CompareFlags& flags);

/// "3%" and "0.03" alike: 0.03. Throws UsageError naming the flag unless it is above 0 and below 1000%, and for 1 and
/// more without a percent sign: who writes 3 means 3%.
[[nodiscard]] double share_of(const char* flag, const std::string& word);

/// Of the words of a calibrate call, those that its runs are started with: all but its own flags.
[[nodiscard]] std::vector<std::string> words_for_runs(const std::vector<std::string>& words);

}  // namespace gpubench
