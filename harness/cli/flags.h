// The table of flags: the parser and the help text are both made from it.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace CLI {
class App;
}

namespace gpubench {

/// Flags as typed, before their values are checked.
struct RawOptions {
  std::vector<std::string> suites, filters, excludes, precisions, batches, axes, launches, ranks;
  std::string tier, preset, slowdown, error, device = "auto", seed = "42", check = "sample", isolate = "on",
                                             fuse = "on", breakdown = "on", deadline = "auto";
  std::string pin, like, tuning_cache, out, json, junit, csv, markdown, github = "auto", color = "auto",
                                                                        progress = "auto", format = "table";
  std::string mode, resume, worker_input, worker_output, subject;
  CompareFlags compare;
  std::vector<std::string> files;
  std::string export_format, output, svg, price;
  std::vector<std::string> labels;
  bool dry_run = false;
  bool virtual_ranks = false;
  bool deterministic = false;
  bool energy = false;
  bool trust_libraries = false;
  std::string locked_clock;
  bool force = false;
  bool anonymize = false;
  std::string anonymize_key;
  bool quiet = false;
  bool verbose = false;
};

struct VerbInfo {
  Verb verb;
  std::string_view name;
  std::string_view arguments;  ///< after the verb in the usage line
  std::string_view description;
  bool hidden = false;
};

/// Every verb, in the order of the help text.
[[nodiscard]] std::span<const VerbInfo> verbs();

/// Adds the flags of a verb to `app`, bound to `raw`. Groups: select, measure, check, output; hidden flags have none.
void add_flags(CLI::App& app, Verb verb, RawOptions& raw);

}  // namespace gpubench
