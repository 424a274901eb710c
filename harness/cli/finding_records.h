// What selftest, determinism, soak and learn find, as JSON and back: in the pipe of a child, in a soak's journal, in
// the documents that --json and --save write.
#pragma once

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

}  // namespace gpubench
