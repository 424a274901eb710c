// RecordCodec by harness/report: how records cross the pipe from worker to supervisor.
#pragma once

#include "harness/report/json.h"
#include "harness/report/record_json.h"
#include "harness/run/run.h"

namespace gpubench {

class JsonRecordCodec final : public RecordCodec {
 public:
  [[nodiscard]] std::string encode(const CaseRecord& record) const override { return dump(to_json(record)); }
  [[nodiscard]] CaseRecord decode(std::string_view text) const override {
    const Json json = parse_json(text, "worker's record");
    return record_from_json({json, "worker's record"});
  }
};

}  // namespace gpubench
