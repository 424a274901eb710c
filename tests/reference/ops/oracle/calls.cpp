// Programs of one op each, described by a file (onnx_test.py).
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/core/op_kind.h"
#include "reference/ops/definition.h"
#include "tests/reference/ops/oracle/programs.h"

namespace gpubench::testing {
namespace {

using nlohmann::json;

template <NamedEnum E>
E value_named(const std::string& word) {
  for (const E value : enum_values<E>) {
    if (name(value) == word) return value;
  }
  throw std::runtime_error("unknown word '" + word + "'");
}

// Strings are views into `given`.
AttributeValue attribute_value(const json& given) {
  if (given.is_boolean()) return given.get<bool>();
  if (given.is_number_integer()) return given.get<std::int64_t>();
  if (given.is_number()) return given.get<double>();
  if (given.is_string()) return std::string_view(given.get_ref<const std::string&>());
  return given.get<std::vector<std::int64_t>>();
}

TensorSpec tensor_of(const json& given) {
  return tensor(given["name"], value_named<DType>(given["dtype"]),
                Shape(given["shape"].get<std::vector<std::int64_t>>()), Role::input);
}

}  // namespace

void add_calls(OraclePrograms& all, const std::string& folder) {
  std::ifstream in(folder + "/calls.json"), elements(folder + "/calls.f64", std::ios::binary);
  for (const json& given : json::parse(in)) {
    OracleProgram one{given["name"], {}};
    one.as_stored = given["as_stored"];
    const std::string name = given["kind"];
    const OpKind kind = definition(OpKind{name}).kind();
    std::vector<NamedValue> attributes;
    for (const auto& [attribute, value] : given["attributes"].items())
      attributes.push_back({attribute, attribute_value(value)});
    OpCall call{kind, make_attributes(kind, attributes), {}, {}, {}, "op"};
    for (const json& input : given["inputs"]) {
      call.inputs.push_back(one.program.add(tensor_of(input)));
      std::vector<double>& values = one.given[call.inputs.back()];
      values.resize(static_cast<std::size_t>(one.program.spec(call.inputs.back()).shape.elements()));
      elements.read(reinterpret_cast<char*>(values.data()),
                    static_cast<std::streamsize>(values.size() * sizeof(double)));
      if (!elements) throw std::runtime_error(one.name + ": calls.f64 is too short");
    }
    for (const json& output : given["outputs"]) call.outputs.push_back(one.program.reserve(tensor_of(output)));
    one.program.append(std::move(call));
    all.push_back(std::move(one));
  }
}

}  // namespace gpubench::testing
