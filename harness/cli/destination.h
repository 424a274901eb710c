// Where the report goes, settled and tried before the first case runs.
#pragma once

#include <ctime>
#include <string>

#include "harness/cli/options.h"

namespace gpubench {

struct Destination {
  std::string file;        ///< report.json in a folder; empty: none
  std::string json_file;   ///< of --json; empty: none
  bool to_stdout = false;  ///< --json -
};

/// --out DIR and --json FILE as asked; with neither, gpubench-out/<timestamp>/report.json. Creates the folder and
/// proves that a file can be written. Throws UsageError otherwise: "--out x: ...".
[[nodiscard]] Destination open_destination(const Options& options, std::time_t now);

}  // namespace gpubench
