// What cases left, as hashes in a file: of determinism --save and --against, and of its own children.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/report/json.h"
#include "harness/verify/determinism.h"

namespace gpubench {

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
