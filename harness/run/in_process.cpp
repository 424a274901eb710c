// run_in_process(): the engine without a worker, for debuggers, profilers and tests.
#include <set>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/run/case_verdict.h"
#include "harness/run/engine.h"

namespace gpubench {
namespace {

/// Thrown through whatever a case is doing once `stop` is raised; no std::exception, which would become its record.
struct Interrupted {};

/// Passes everything on, and remembers which cases have their record.
class Finished : public RunObserver {
 public:
  explicit Finished(RunObserver& next) : next_(next) {}
  void phase(std::string_view case_id, std::string_view phase) override { next_.phase(case_id, phase); }
  void finished(const CaseRecord& record) override {
    ids_.insert(record.id);
    next_.finished(record);
  }
  void round(const CaseRecord& record) override { next_.round(record); }
  void note(std::string_view text) override { next_.note(text); }
  void tick() override { next_.tick(); }
  [[nodiscard]] bool has(const std::string& id) const { return ids_.contains(id); }

 private:
  RunObserver& next_;
  std::set<std::string> ids_;
};

}  // namespace

void run_in_process(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                    RunObserver& observer, const StopFlag& stop) {
  Finished finished(observer);
  RunOptions stoppable = options;
  stoppable.alive = [&] {
    observer.tick();
    if (stop != 0) throw Interrupted();
  };
  std::vector<PlannedCase> wanted;
  for (const PlannedCase& planned : cases) {
    if (!options.finished.contains(planned.id())) wanted.push_back(planned);
  }
  try {
    Engine(backend, stoppable).run(wanted, finished, stop);
  } catch (const Interrupted&) {
    return;
  } catch (const DeviceLost&) {
    for (const PlannedCase& planned : wanted) {
      if (finished.has(planned.id())) continue;
      CaseRecord record = open_record(planned, options);
      blame(record, Verdict::error,
            "the device was lost in an earlier case, and without isolation there is no other process to go on in");
      finished.finished(record);
    }
  }
}

}  // namespace gpubench
