// What selftest, determinism, soak and learn find, as JSON and back: in the pipe of a child, in a soak's journal, in
// the documents that --json and --save write.
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

// Each throws ReadError for what the functions above would not have written.

[[nodiscard]] SoakInterval interval_from_json(const Node& node);
[[nodiscard]] JudgedLaunch judged_from_json(const Node& node);
[[nodiscard]] Divergence divergence_from_json(const Node& node);
[[nodiscard]] DeterminismRecord determinism_from_json(const Node& node);
[[nodiscard]] SelftestResult selftest_from_json(const Node& node);
[[nodiscard]] ModelLearning learning_from_json(const Node& node);

/// What cases left, as hashes in a file: of determinism --save and --against, and of its own children.
struct SavedBits {
  std::map<std::string, CaseBits> cases;  ///< by id
  std::string device;
  std::vector<std::pair<std::string, std::string>> libraries;
};

/// The document of --save.
[[nodiscard]] Json bits_json(std::span<const DeterminismRecord> records, const DeviceInfo& device);
/// Throws ReadError.
[[nodiscard]] SavedBits read_bits(const std::string& path);

/// "as before: saved on 'A' (lib 1.0), here 'B' (lib 2.0)".
[[nodiscard]] std::string against_text(const SavedBits& saved, const DeviceInfo& here);

/// What other bits, of this case where there are any, say of what it leaves now.
[[nodiscard]] Repetition against(const std::map<std::string, CaseBits>& others, const CaseBits& now,
                                 std::string_view way);

}  // namespace gpubench
