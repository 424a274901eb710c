// --anonymize: the key, the users to hide, and what a run tells while it goes on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/report/anonymize.h"

namespace gpubench {

/// Nothing without --anonymize. Throws UsageError where no key can be had.
[[nodiscard]] std::optional<HashKey> key_for(const Options& options, const Environment& environment);

/// Who runs this: $USER, $LOGNAME and the name of the home folder.
[[nodiscard]] std::vector<std::string> users_of(const Environment& environment);

/// The words that say what is run, without --pin and --like: whoever goes on with the run gives the files again.
[[nodiscard]] std::vector<std::string> without_files(const std::vector<std::string>& own_words);

/// Passes on what it is told, records and notes made anonymous first.
class AnonymousObserver final : public RunObserver {
 public:
  /// Both must outlive it.
  AnonymousObserver(const Anonymizer& anonymizer, RunObserver& next) : anonymizer_(anonymizer), next_(next) {}

  void phase(std::string_view case_id, std::string_view phase) override { next_.phase(case_id, phase); }
  void round(const CaseRecord& record) override { next_.round(made_anonymous(record)); }
  void finished(const CaseRecord& record) override { next_.finished(made_anonymous(record)); }
  void note(std::string_view text) override { next_.note(anonymizer_.text(text)); }
  void tick() override { next_.tick(); }

 private:
  [[nodiscard]] CaseRecord made_anonymous(CaseRecord record) const {
    anonymizer_.record(record);
    return record;
  }

  const Anonymizer& anonymizer_;
  RunObserver& next_;
};

}  // namespace gpubench
