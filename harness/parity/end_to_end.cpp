#include "harness/parity/end_to_end.h"

#include <algorithm>
#include <cmath>

#include "harness/parity/textbook_machine.h"
#include "reference/ops/transform/widen.h"

namespace gpubench {
namespace {

constexpr int disturbed_runs = 3;
constexpr double margin = 2.0;

double distance(const TensorView& a, const TensorView& b) {
  double sum = 0.0;
  for (std::int64_t e = 0; e < a.shape().elements(); ++e) sum += (a[e] - b[e]) * (a[e] - b[e]);
  return std::sqrt(sum);
}

double norm(const TensorView& a) {
  double sum = 0.0;
  for (std::int64_t e = 0; e < a.shape().elements(); ++e) sum += a[e] * a[e];
  return std::sqrt(sum);
}

// Produced, and not overwritten by a later version of itself or of the value it is a part of.
bool survives(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  if (!value.producer) return false;
  return std::none_of(program.values().begin(), program.values().end(), [&](const Value& other) {
    return other.updates && other.storage == value.storage && other.producer && *other.producer > *value.producer;
  });
}

}  // namespace

std::vector<EndToEndResult> end_to_end(const Program& program, std::string_view case_key, std::uint64_t seed,
                                       const std::function<TensorView(ValueId)>& real) {
  const Program wide = widen(program);
  TextbookMachine exact(wide);
  exact.fill_sources(case_key, seed, program);
  exact.run();
  std::vector<EndToEndResult> results;
  std::vector<ValueId> compared;
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) {
    const ValueId id{i};
    if (!survives(program, id)) continue;
    compared.push_back(id);
    results.push_back(
        {program.spec(id).name, program.spec(id).role, norm(exact.view(id)), distance(real(id), exact.view(id)), 0.0});
  }
  for (int run = 0; run < disturbed_runs; ++run) {
    TextbookMachine disturbed(program);
    disturbed.fill_sources(case_key, seed, program);
    disturbed.run(static_cast<std::uint64_t>(run) + 1);
    for (std::size_t i = 0; i < compared.size(); ++i) {
      results[i].allowed =
          std::max(results[i].allowed, margin * distance(disturbed.view(compared[i]), exact.view(compared[i])));
    }
  }
  return results;
}

}  // namespace gpubench
