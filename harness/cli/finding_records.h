// Findings of selftest, determinism, soak and learn as JSON: in the pipe of a child, in a soak's journal, and in the
// documents of --json and --save.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "harness/verify/determinism.h"
#include "harness/verify/learning.h"
#include "harness/verify/selftest.h"
#include "harness/verify/soak.h"

namespace gpubench {

[[nodiscard]] Json to_json(const SoakInterval& interval);
[[nodiscard]] Json to_json(const JudgedLaunch& launch);
[[nodiscard]] Json to_json(const Divergence& divergence);
[[nodiscard]] Json to_json(const DeterminismRecord& record);
[[nodiscard]] Json to_json(const SelftestResult& result);
[[nodiscard]] Json to_json(const ModelLearning& model);

// These throw ReadError for invalid input.

[[nodiscard]] SoakInterval interval_from_json(const Node& node);
[[nodiscard]] JudgedLaunch judged_from_json(const Node& node);
[[nodiscard]] Divergence divergence_from_json(const Node& node);
[[nodiscard]] DeterminismRecord determinism_from_json(const Node& node);
[[nodiscard]] SelftestResult selftest_from_json(const Node& node);
[[nodiscard]] ModelLearning learning_from_json(const Node& node);

/// Hashes of the results of cases, as written by determinism --save and by its child processes.
struct SavedBits {
  std::map<std::string, CaseBits> cases;
  std::string device;
  std::vector<std::pair<std::string, std::string>> libraries;
};

[[nodiscard]] Json bits_json(std::span<const DeterminismRecord> records, const DeviceInfo& device);
/// Throws ReadError.
[[nodiscard]] SavedBits read_bits(const std::string& path);

/// "as before: saved on 'A' (lib 1.0), here 'B' (lib 2.0)".
[[nodiscard]] std::string against_text(const SavedBits& saved, const DeviceInfo& here);

[[nodiscard]] Repetition against(const std::map<std::string, CaseBits>& others, const CaseBits& now,
                                 std::string_view way);

}  // namespace gpubench
