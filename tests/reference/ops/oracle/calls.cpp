// Programs of one op each, as a file describes them: vectors of others (onnx_test.py).
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/definition.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pool.h"
#include "reference/ops/quantize.h"
#include "reference/ops/rotary.h"
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

/// Sets the attributes of a struct that a JSON object names, for `T::visit`.
template <class T>
class AttributesFromJson {
 public:
  AttributesFromJson(const json& given, T& held) : given_(given), held_(held) {}

  template <class M, class... Names>
  void operator()(std::string_view attribute, M T::*member, const Names&... names) {
    const auto found = given_.find(attribute);
    if (found == given_.end()) return;
    if constexpr (sizeof...(Names) == 1) {
      const std::string word = found->template get<std::string>();
      const auto& words = std::get<0>(std::tie(names...)).of;
      const auto at = std::find(words.begin(), words.end(), word);
      if (at == words.end()) throw std::runtime_error("unknown " + std::string(attribute) + " '" + word + "'");
      held_.*member = static_cast<M>(at - words.begin());
    } else if constexpr (NamedEnum<M>) {
      held_.*member = value_named<M>(found->template get<std::string>());
    } else {
      held_.*member = found->template get<M>();
    }
  }
  void always(std::string_view attribute, auto member, const auto&... names) { (*this)(attribute, member, names...); }
  void when(auto, std::string_view attribute, auto member, const auto&... names) {
    (*this)(attribute, member, names...);
  }
  template <class M>
  void part(M T::*member) {
    M::visit(AttributesFromJson<M>(given_, held_.*member));
  }

 private:
  const json& given_;
  T& held_;
};

template <class T>
Attributes attributes_from(const json& given) {
  T held;
  T::visit(AttributesFromJson<T>(given, held));
  return held;
}

Attributes attributes_of_kind(std::string_view kind, const json& given) {
  using From = Attributes (*)(const json&);
  static const std::map<std::string_view, From> structs{{"average_pool_forward", attributes_from<Pool>},
                                                        {"attention_forward", attributes_from<Attention>},
                                                        {"batch_norm_forward", attributes_from<BatchNorm>},
                                                        {"conv2d_forward", attributes_from<Conv2d>},
                                                        {"cross_entropy_forward", attributes_from<CrossEntropy>},
                                                        {"gelu_forward", attributes_from<Gelu>},
                                                        {"gemm", attributes_from<Gemm>},
                                                        {"layer_norm_forward", attributes_from<Norm>},
                                                        {"max_pool_forward", attributes_from<Pool>},
                                                        {"quantize", attributes_from<Quantize>},
                                                        {"rms_norm_forward", attributes_from<Norm>},
                                                        {"rotary", attributes_from<Rotary>},
                                                        {"sgd", attributes_from<Sgd>},
                                                        {"transpose", attributes_from<Transpose>}};
  const auto found = structs.find(kind);
  if (found != structs.end()) return found->second(given);
  if (!given.empty()) throw std::runtime_error("calls.cpp does not know the attributes of '" + std::string(kind) + "'");
  return {};
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
    const std::string kind = given["kind"];
    OpCall call{definition(OpKind{kind}).kind(), attributes_of_kind(kind, given["attributes"]), {}, {}, {}, "op"};
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
