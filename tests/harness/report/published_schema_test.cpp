// results/schema/report.v1.json, made from record_members.h. GPUBENCH_UPDATE_GOLDEN=1 rewrites it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "harness/report/json.h"
#include "harness/report/record_members.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench::record_members {
namespace {

const Json count = {{"type", "integer"}, {"minimum", 0}};
const Json from_one = {{"type", "integer"}, {"minimum", 1}};
const Json text = {{"type", "string"}};
const Json named = {{"type", "string"}, {"minLength", 1}};
const Json above_zero = {{"type", "number"}, {"exclusiveMinimum", 0}};

Json reference(const std::string& definition) { return {{"$ref", "#/definitions/" + definition}}; }

template <class T>
Json object_of();

// Makes a struct's JSON properties, and the required ones, from its visit().
class SchemaMaker {
 public:
  template <class T>
  void operator()(const char* key, T&, const Rule& rule = {}) {
    Json schema = schema_of(T{}, rule);
    if (rule.note != nullptr) schema["description"] = rule.note;
    add(key, std::move(schema), !rule.optional);
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& member, const Rule& rule = {}) {
    if constexpr (std::is_same_v<T, Worst>) {
      add(key, {{"oneOf", {{{"type", "null"}}, object_of<Worst>()}}}, true);
    } else {
      Rule optional = rule;
      optional.optional = true;
      (*this)(key, member.emplace(), optional);
    }
  }
  void time(const char* key, std::time_t) { add(key, reference("time"), true); }

  [[nodiscard]] Json object() && {
    if (has_numbers_) properties_["nonfinite"] = reference("nonfinite");
    return {{"type", "object"}, {"required", std::move(required_)}, {"properties", std::move(properties_)}};
  }

 private:
  void add(const char* key, Json schema, bool required) {
    properties_[key] = std::move(schema);
    if (required) required_.push_back(key);
  }

  Json schema_of(double, const Rule& rule) {
    has_numbers_ = true;
    Json schema = {{"type", {"number", "null"}}};
    if (rule.sign == Sign::not_negative) schema["minimum"] = 0;
    if (rule.sign == Sign::positive) schema["exclusiveMinimum"] = 0;
    if (std::isfinite(rule.most)) schema["maximum"] = rule.most;
    return schema;
  }
  Json schema_of(const std::vector<double>&, const Rule& rule) {
    has_numbers_ = true;
    return list_of({{"type", {"number", "null"}}}, rule);
  }
  Json schema_of(const std::string&, const Rule& rule) {
    if (!rule.words.empty()) return {{"enum", rule.words}};
    Json schema = text;
    if (rule.form != nullptr) schema["pattern"] = rule.form->pattern;
    if (rule.least > 0) schema["minLength"] = rule.least;
    return schema;
  }
  Json schema_of(bool, const Rule&) { return {{"type", "boolean"}}; }
  template <Whole T>
  Json schema_of(T, const Rule& rule) {
    return {{"type", "integer"}, {"minimum", rule.least}};
  }
  template <NamedEnum T>
  Json schema_of(T, const Rule&) {
    Json all = Json::array();
    for (const T word : words<T>) all.push_back(name(word));
    return {{"enum", std::move(all)}};
  }
  Json schema_of(const std::vector<std::string>&, const Rule& rule) {
    return list_of(rule.empty_texts ? text : named, rule);
  }
  template <Whole T>
  Json schema_of(const std::vector<T>&, const Rule& rule) {
    return list_of(count, rule);
  }
  template <Part T>
  Json schema_of(const std::vector<T>&, const Rule& rule) {
    return list_of(object_of<T>(), rule);
  }
  template <Pairs T>
  Json schema_of(const T&, const Rule& rule) {
    Json schema = {{"type", "object"}, {"additionalProperties", std::is_same_v<T, Dims> ? count : text}};
    if (rule.least > 0) schema["minProperties"] = rule.least;
    return schema;
  }
  template <Part T>
  Json schema_of(const T&, const Rule&) {
    return object_of<T>();
  }

  static Json list_of(Json items, const Rule& rule) {
    Json schema = {{"type", "array"}, {"items", std::move(items)}};
    if (rule.least > 0) schema["minItems"] = rule.least;
    return schema;
  }

  Json properties_ = Json::object();
  Json required_ = Json::array();
  bool has_numbers_ = false;
};

// Only gpubench's objects are closed: Google Benchmark's tools may add members to theirs.
template <class T>
Json object_of() {
  T value{};
  SchemaMaker maker;
  visit(maker, value);
  Json object = std::move(maker).object();
  if (!AnyOf<T, HostContext, CacheContext>) object["additionalProperties"] = false;
  return object;
}

void add(Json& object, const char* key, Json schema) {
  object["properties"][key] = std::move(schema);
  object["required"].push_back(key);
}

Json object_with(std::initializer_list<std::pair<const char*, Json>> members) {
  Json object = {{"type", "object"}, {"required", Json::array()}, {"properties", Json::object()}};
  for (const auto& [key, schema] : members) add(object, key, schema);
  return object;
}

Json benchmark(const char* run_type, Json name) {
  return object_with({{"name", std::move(name)},
                      {"family_index", count},
                      {"per_family_instance_index", count},
                      {"run_name", named},
                      {"repetitions", from_one},
                      {"threads", {{"const", 1}}},
                      {"iterations", from_one},
                      {"real_time", above_zero},
                      {"cpu_time", above_zero},
                      {"time_unit", {{"const", "us"}}},
                      {"run_type", {{"const", run_type}}}});
}

Json benchmarks() {
  Json iteration = benchmark("iteration", named);
  add(iteration, "repetition_index", count);
  Json aggregate = benchmark("aggregate", {{"type", "string"}, {"pattern", "_median$"}});
  add(aggregate, "aggregate_name", {{"const", "median"}});
  add(aggregate, "aggregate_unit", {{"const", "time"}});
  return {{"type", "array"}, {"items", {{"oneOf", {std::move(iteration), std::move(aggregate)}}}}};
}

Json context() {
  Json run = object_of<RunContext>();
  add(run, "schema", {{"const", report_schema}});
  add(run, "schema_version", {{"type", "string"}, {"pattern", "^1\\.[0-9]+$"}});
  Json context = object_of<HostContext>();
  add(context, "date", reference("time"));
  add(context, "load_avg", {{"type", "array"}, {"items", {{"type", "number"}, {"minimum", 0}}}, {"maxItems", 3}});
  add(context, "library_build_type", {{"enum", {"release", "debug"}}});
  add(context, "json_schema_version", {{"const", 1}});
  add(context, "gpubench", std::move(run));
  return context;
}

Json one_case() {
  Json one = object_of<CaseRecord>();
  one["if"] = {{"properties", {{"status", {{"const", "pass"}}}}}};
  one["then"] = Json::parse(R"({"$comment": "a pass has been judged and timed", "properties": {
    "parity": {"properties": {"ops": {"minItems": 1}}},
    "rounds": {"minItems": 1},
    "batch": {"minimum": 1},
    "summary": {"properties": {"rounds": {"minimum": 1}, "samples": {"minimum": 1},
                               "median_ns": {"type": "number", "exclusiveMinimum": 0}}}}})");
  one["else"] = {{"$comment", "every other verdict says why"}, {"properties", {{"reason", {{"minLength", 1}}}}}};
  return one;
}

Json totals() {
  Json totals = object_with({{"cases", count}});
  for (const Verdict verdict : enum_values<Verdict>) add(totals, std::string(name(verdict)).c_str(), count);
  for (const char* cost : {"check_s", "time_s"}) add(totals, cost, {{"type", {"number", "null"}}, {"minimum", 0}});
  totals["additionalProperties"] = false;
  return totals;
}

Json report_schema_json() {
  Json results = object_with({{"cases", {{"type", "array"}, {"items", one_case()}}}, {"totals", totals()}});
  results["properties"]["calls_totals"] = {
      {"description", "since 1.9; what all calls of a list of shapes take together, left out without one"},
      {"type", "array"},
      {"items", object_of<CallsTotal>()},
      {"minItems", 1}};
  results["additionalProperties"] = false;
  Json schema = {
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"$id", "report.v1.json"},
      {"title", "gpubench report, major version 1"},
      {"description",
       "A superset of Google Benchmark's JSON (its json_schema_version 1): `context` and `benchmarks` may hold members "
       "of its tools; the objects under `gpubench` are closed, and a minor version that adds to them comes with a "
       "newer "
       "copy of this file. A null number is a NaN or infinity, named in the object's `nonfinite`."}};
  schema.update(object_with({{"context", context()}, {"benchmarks", benchmarks()}, {"gpubench", std::move(results)}}));
  schema["properties"]["digest"] = {
      {"description",
       "Of the content, since 1.6: 16 hexadecimal digits over the bytes before this member, blanks outside texts left "
       "out."},
      {"type", "string"},
      {"pattern", hex16.pattern}};
  schema["definitions"] = {
      {"nonfinite", {{"type", "object"}, {"additionalProperties", {{"enum", {"nan", "inf", "-inf"}}}}}},
      {"time", {{"type", "string"}, {"pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\+00:00$"}}}};
  return schema;
}

// Short values on one line.
std::string readable(const Json& json, const std::string& indent = "") {
  constexpr std::size_t width = 120;
  std::string line = dump(json);
  if (!json.is_structured() || indent.size() + line.size() < width) return line;
  std::string lines;
  for (const auto& item : json.items()) {
    const std::string name = json.is_object() ? dump(Json(item.key())) + ": " : "";
    lines += (lines.empty() ? "\n" : ",\n") + indent + " " + name + readable(item.value(), indent + " ");
  }
  return (json.is_object() ? "{" : "[") + lines + "\n" + indent + (json.is_object() ? "}" : "]");
}

TEST(PublishedSchema, IsWhatTheMembersTableMakes) {
  const std::string path = std::string(paths::schemas) + "/report.v1.json";
  const std::string made = readable(report_schema_json()) + "\n";
  if (std::getenv("GPUBENCH_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << made;
    return;
  }
  EXPECT_EQ(ScratchFolder::content_of(path), made);
}

}  // namespace
}  // namespace gpubench::record_members
