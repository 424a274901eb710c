// How close each case came to what its device can do, computed over all records after a run.
#pragma once

#include <span>

#include "harness/core/backend.h"
#include "harness/core/record.h"

namespace gpubench {

/// Fills in Derived::peak of every measured case of one rank, and of collectives between devices whose link is known:
/// bus bandwidth against one direction of it.
///
/// A case is compared with the limit that binds it: arithmetic or memory, whichever would take longer at its peak.
/// Peaks are those of the database for a CUDA device that it knows, else units x operations per clock x highest clock.
/// The memory's peak binds only what must come from memory: cold cases that leave no copy in the cache.
///
/// Unreliable timings (timing_unreliable()) are neither the best of a run nor compared with it.
///
/// A rate that is higher than the device can reach at its highest clock (by more than 1%, by which timers may differ)
/// makes the case an error with that finding: time, work or peak is wrong, and the number must not be ranked. For a
/// convolution it is only flagged, because Winograd and FFT need fewer operations than are counted.
void add_ceilings(const DeviceInfo& device, std::span<CaseRecord> records);

}  // namespace gpubench
