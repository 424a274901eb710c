// Writes the textbook's results for the oracle's programs: write_programs FOLDER [CALLS]
//   CALLS              a folder that describes programs of one op each, instead of the built-in ones (programs.h)
//   FOLDER/index.json  every program: its tensors, ops with their attributes and operands, gradients
//   FOLDER/data.f64    elements in row-major order, native fp64, at the places (counted in elements) in the index
// Computes in fp64 from sources rounded to their types; programs as_stored in their types.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/parity/end_to_end.h"
#include "reference/ops/definition.h"
#include "suites/variants/variants.h"
#include "tests/reference/ops/oracle/programs.h"

namespace gpubench::testing {

void add_program(OraclePrograms& all, std::string name, const std::function<void(Program&)>& build, bool as_stored) {
  OracleProgram one{std::move(name), {}};
  build(one.program);
  one.as_stored = as_stored;
  all.push_back(std::move(one));
}

void add_differentiated(OraclePrograms& all, std::string name, const std::function<OracleForward(Program&)>& build) {
  OracleProgram one{std::move(name), {}};
  const OracleForward forward = build(one.program);
  one.forward_ops = static_cast<int>(one.program.ops().size());
  for (const ValueId y : forward.y) {
    if (forward.loss) {
      one.seeds.push_back({y, {}});
      continue;
    }
    TensorSpec seed = one.program.spec(y);
    seed.name = "seed of " + seed.name;
    seed.layout = Layout::row_major(seed.shape);
    seed.role = Role::gradient;
    one.seeds.push_back({y, one.program.add(std::move(seed))});
  }
  one.gradients = differentiate(one.program, one.seeds, forward.wanted);
  all.push_back(std::move(one));
}

void add_variants(OraclePrograms& all) {
  constexpr std::int64_t extent = 7;
  for (const variants::Variants& one : variants::all_variants()) {
    if (one.name == "gemm_blocks") continue;  // matrix_programs.cpp has block-scaled products, whose results stay wide
    variants::VariantProgram made = variants::program_of(one, extent, recipe(one.recipes.front()));
    OracleProgram& added = all.emplace_back();
    added.name = one.name;
    added.program = std::move(made.program);
    added.seeds = std::move(made.seeds);
    added.gradients = std::move(made.gradients);
    added.forward_ops = made.forward_ops;
    added.as_stored = one.name.starts_with("quantize") || one.name == "scale_from_amax";
  }
}

namespace {

using nlohmann::json;

class Elements {
 public:
  explicit Elements(const std::filesystem::path& path) : out_(path, std::ios::binary) {}

  std::int64_t append(const TensorView& view) {
    std::vector<double> values(static_cast<std::size_t>(view.shape().elements()));
    view.read(0, values);
    out_.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(double)));
    if (!out_) throw std::runtime_error("the elements could not be written");
    const std::int64_t at = count_;
    count_ += static_cast<std::int64_t>(values.size());
    return at;
  }

 private:
  std::ofstream out_;
  std::int64_t count_ = 0;
};

class Recorder {
 public:
  Recorder(const Program& program, TextbookMachine& machine, Elements& elements)
      : program_(program), machine_(machine), elements_(elements), writes_(program.storages().size()) {}

  json run(int index) {
    const OpCall& call = program_.op(index);
    json op{{"kind", call.kind.name}, {"label", call.label}, {"attributes", json::object()}};
    for (const Attribute& attribute : call.attributes.list())
      std::visit([&](const auto& value) { op["attributes"][std::string(attribute.name)] = value; }, attribute.value);
    op["inputs"] = operands(call, call.kind.inputs, call.inputs);
    machine_.run_op(index);
    for (const ValueId id : call.outputs) ++writes_[storage(id)];
    op["outputs"] = operands(call, call.kind.outputs, call.outputs);
    return op;
  }

  std::int64_t place(ValueId id) {
    const auto key = std::pair(id, writes_[storage(id)]);
    if (!places_.contains(key)) places_[key] = elements_.append(machine_.view(id));
    return places_[key];
  }

 private:
  [[nodiscard]] std::size_t storage(ValueId id) const {
    return static_cast<std::size_t>(program_.value(id).storage.index);
  }

  json operands(const OpCall& call, std::string_view declared, const std::vector<ValueId>& ids) {
    json list = json::array();
    const std::vector<OperandName> names = operand_names(declared, call.attributes, ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
      list.push_back({{"name", names[i].name},
                      {"list", declared.find(names[i].name + "*") != std::string_view::npos},
                      {"value", ids[i].index},
                      {"at", place(ids[i])}});
    return list;
  }

  const Program& program_;
  TextbookMachine& machine_;
  Elements& elements_;
  std::vector<int> writes_;  // by storage: number of writes by ops
  std::map<std::pair<ValueId, int>, std::int64_t> places_;
};

json described(const Value& value) {
  const TensorSpec& spec = value.spec;
  json text{{"name", spec.name}, {"shape", json::array()}, {"dtype", name(spec.dtype)}};
  for (int axis = 0; axis < spec.shape.rank(); ++axis) text["shape"].push_back(spec.shape[axis]);
  if (value.part_of) {
    text["part_of"] = value.part_of->index;
    text["strides"] = spec.layout.strides;
    text["first"] = value.offset_bytes * 8 / bits_of(spec.dtype);
  }
  return text;
}

json recorded(const OracleProgram& oracle, Elements& elements) {
  const Program program = oracle.as_stored ? oracle.program : widen(oracle.program);
  TextbookMachine machine(program);
  machine.fill_sources(oracle.name, 18, oracle.program);
  for (const auto& [id, values] : oracle.given) {
    const TensorSpec& spec = program.spec(id);
    for (std::size_t i = 0; i < values.size(); ++i)
      store(spec.dtype, machine.data(program.value(id).storage), static_cast<std::int64_t>(i), values[i]);
  }
  Recorder recorder(program, machine, elements);
  json text{{"name", oracle.name},       {"as_stored", oracle.as_stored}, {"forward_ops", oracle.forward_ops},
            {"values", json::array()},   {"ops", json::array()},          {"seeds", json::array()},
            {"gradients", json::array()}};
  for (std::size_t id = 0; id < program.values().size(); ++id) {
    const Value& value = program.values()[id];
    text["values"].push_back(described(value));
    if (value.source && !value.part_of) text["values"].back()["at"] = recorder.place({static_cast<int>(id)});
  }
  for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) text["ops"].push_back(recorder.run(op));
  for (const Seed& seed : oracle.seeds)
    text["seeds"].push_back({{"value", seed.value.index}, {"gradient", seed.gradient ? seed.gradient->index : -1}});
  for (const auto& [wanted, gradient] : oracle.gradients)
    text["gradients"].push_back(
        {{"value", wanted.index}, {"gradient", gradient.index}, {"at", recorder.place(gradient)}});
  return text;
}

OraclePrograms our_programs() {
  OraclePrograms programs;
  add_matrix_programs(programs);
  add_image_programs(programs);
  add_row_programs(programs);
  add_element_programs(programs);
  add_collective_programs(programs);
  add_random_programs(programs);
  add_variants(programs);
  add_models(programs);
  return programs;
}

void write(const std::filesystem::path& folder, const OraclePrograms& programs) {
  std::filesystem::create_directories(folder);
  Elements elements(folder / "data.f64");
  json index{{"registry", json::array()}, {"programs", json::array()}};
  for (const OpDefinition* op : definitions()) index["registry"].push_back(op->kind().name);
  index["training_steps"] = training_steps();
  for (const OracleProgram& program : programs) index["programs"].push_back(recorded(program, elements));
  std::ofstream out(folder / "index.json");
  out << index;
  if (!out.flush()) throw std::runtime_error("the index could not be written");
}

}  // namespace
}  // namespace gpubench::testing

int main(int argc, char** argv) {
  using namespace gpubench::testing;
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: write_programs FOLDER [CALLS]\n";
    return 2;
  }
  try {
    OraclePrograms programs;
    if (argc == 2) {
      programs = our_programs();
    } else {
      add_calls(programs, argv[2]);
    }
    write(argv[1], programs);
  } catch (const std::exception& error) {
    std::cerr << "write_programs: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
