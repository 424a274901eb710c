// The same id means the same work for ever: what each case stood for when it came, against what it stands for now.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "harness/run/case_record.h"
#include "reference/ops/definition.h"
#include "suites/suites.h"
#include "tests/paths.h"

namespace gpubench {
namespace {

const char* const published = paths::definitions;

std::map<std::string, std::string> definitions_in(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::map<std::string, std::string> all;
  for (std::string hash, id; file >> hash >> id;) EXPECT_TRUE(all.emplace(id, hash).second) << id;
  return all;
}

Selection everything() {
  Selection selection;
  selection.tier = Tier::quick;  // every workload in every precision; larger shapes are built by the same code
  return selection;
}

std::map<std::string, std::string> definitions_now() {
  std::map<std::string, std::string> all;
  for (const PlannedCase& planned : plan_cases(all_suites(), everything()))
    all.emplace(planned.id(), definition_hash(planned));
  return all;
}

// Where this fails, the work of a case was changed under its id, so that old reports would be compared with new ones as
// if nothing had happened: give the changed case a new name, dimension or mode. A line may only be replaced while no
// report of the case has been published. The lines of this build:
//   gpubench list --tier quick --precision
//     f64,f32,tf32,bf16,f16,bf16_approx_tanh,f8_hybrid,f8_hybrid_fast,mxfp8,nvfp4 --format json |
//     jq -r '.cases[] | .def_hash + " " + .id' | sort -k 2
TEST(Definitions, AnIdStandsForTheWorkThatItWasPublishedWith) {
  const std::map<std::string, std::string> then = definitions_in(published);
  const std::map<std::string, std::string> now = definitions_now();
  EXPECT_FALSE(then.empty());
  for (const auto& [id, hash] : then) {
    const auto same = now.find(id);
    if (same == now.end()) continue;  // it is no more, which is not the same as another
    EXPECT_EQ(same->second, hash) << "another definition of " << id;
  }
  for (const auto& [id, hash] : now)
    EXPECT_TRUE(then.count(id) == 1) << "a new case, to be added: " << hash << " " << id;
}

TEST(Definitions, EveryCallCanBeMadeFromTheNamesAndValuesOfItsAttributes) {
  std::set<std::string_view> seen;
  for (const PlannedCase& declared : declared_cases(all_suites(), everything())) {
    const Program program = declared.workload->build(declared.c);
    for (const OpCall& call : program.ops()) {
      std::vector<NamedValue> values;
      for (const Attribute& attribute : call.attributes.list()) values.push_back({attribute.name, attribute.value});

      EXPECT_EQ(make_attributes(find_definition(call.kind.name)->kind(), values), call.attributes) << declared.id();
      seen.insert(call.kind.name);
    }
  }
  EXPECT_GT(seen.size(), 60U);
}

}  // namespace
}  // namespace gpubench
