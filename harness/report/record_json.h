// CaseRecord as JSON and back: the form in which a record crosses from worker to supervisor and stands in a report.
//
// The round trip is exact: doubles are written with the digits that bring them back; a NaN or infinity is null, and the
// object's "nonfinite" member says which ({"nonfinite": {"got": "nan"}}), because JSON has no such numbers.
#pragma once

#include "harness/core/record.h"
#include "harness/report/json_fwd.h"
#include "harness/report/reader.h"

namespace gpubench {

[[nodiscard]] Json to_json(const CaseRecord& record);

/// Throws ReadError for anything that to_json() would not have written, unknown members aside. Members in `left_out`
/// are as in a CaseRecord that is new.
[[nodiscard]] CaseRecord record_from_json(const Node& node, LeftOut left_out = {});
/// The same, with everything that is wrong collected; what could not be read is as in a CaseRecord that is new.
[[nodiscard]] CaseRecord record_from_json(const Node& node, Problems& problems);

[[nodiscard]] Json to_json(const DeviceInfo& device);

/// Throws ReadError as above.
[[nodiscard]] DeviceInfo device_from_json(const Node& node);
[[nodiscard]] DeviceInfo device_from_json(const Node& node, Problems& problems);

}  // namespace gpubench
