// A case id must always stand for the same work: compares the published definitions with the current ones.
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
  selection.tier = Tier::quick;  // every workload in every precision; larger shapes use the same code
  return selection;
}

std::map<std::string, std::string> definitions_now() {
  std::map<std::string, std::string> all;
  for (const PlannedCase& planned : plan_cases(all_suites(), everything()))
    all.emplace(planned.id(), definition_hash(planned));
  return all;
}

// A failure means that a case's work changed under its id, so old and new reports would be compared wrongly. Give the
// changed case a new name, dimension or mode; replace a line only if no report of it was published. Current lines:
//   gpubench list --tier quick --precision
//     f64,f32,tf32,bf16,f16,bf16_approx_tanh,f8_hybrid,f8_hybrid_fast,mxfp8,nvfp4 --format json |
//     jq -r '.cases[] | .def_hash + " " + .id' | sort -k 2
TEST(Definitions, AnIdStandsForTheWorkThatItWasPublishedWith) {
  const std::map<std::string, std::string> then = definitions_in(published);
  const std::map<std::string, std::string> now = definitions_now();
  EXPECT_FALSE(then.empty());
  for (const auto& [id, hash] : then) {
    const auto same = now.find(id);
    if (same == now.end()) continue;  // a removed case is no error
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
