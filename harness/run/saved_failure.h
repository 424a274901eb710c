// --save-failures: the tensors of an op that failed, as files to look at.
#pragma once

#include <string>

#include "harness/core/program.h"
#include "harness/core/record.h"
#include "harness/parity/judge.h"

namespace gpubench {

/// Writes a folder `folder`/<key>/<label>.<phase>, where characters that a case's key or an op's label has and no file
/// should are "_": each input and output as it was stored, <operand>.npy (types that NumPy lacks as their bits), and
/// for each output <operand>.expected.npy and <operand>.bound.npy, the textbook's values and bounds in f64, NaN where
/// they were not worked out: all of them where that takes the textbook at most 5e8 operations, else evenly spaced ones
/// and the worst. load.py loads them and prints the worst elements. A tensor that does not fit into `room` bytes, from
/// which each is taken, is left out.
///
/// Returns the sentence for the op's reason: where the files are, or why they could not be written (a file that is
/// there already is never overwritten).
[[nodiscard]] std::string save_failure(const std::string& folder, const std::string& key, const Program& program,
                                       int op, const OpView& view, const OpParity& parity, std::int64_t& room);

/// What the tensors of one case may take.
inline constexpr std::int64_t most_saved_bytes = std::int64_t{1} << 30U;

}  // namespace gpubench
