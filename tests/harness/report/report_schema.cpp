#include "tests/harness/report/report_schema.h"

#include <fstream>
#include <stdexcept>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "harness/report/json.h"
#include "tests/paths.h"

namespace gpubench {

std::string schema_errors(const Json& written, const std::string& schema_name) {
  const std::string path = std::string(paths::schemas) + "/" + schema_name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  // valijson's adapter needs the unordered document type.
  const nlohmann::json schema_json = nlohmann::json::parse(file);
  const nlohmann::json document = nlohmann::json::parse(written.dump());
  valijson::Schema schema;
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_json), schema);
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results)) return "";
  std::string text;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    for (const std::string& place : error.context) text += place;
    text += ": " + error.description + "\n";
  }
  return text.empty() ? "invalid, without a reason" : text;
}

}  // namespace gpubench
