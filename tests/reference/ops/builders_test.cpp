#include "reference/ops/builders.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/plan.h"
#include "reference/ops/collective.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/definition.h"
#include "reference/ops/norm.h"
#include "reference/ops/transform/fuse.h"
#include "suites/suites.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace builders_test {

/// A call of a program and the specs of its tensors, on rank 0.
struct Call {
  OpCall call;
  std::vector<TensorSpec> inputs, outputs;
};

Call call_of(const Program& program, const OpCall& call) {
  Call result{call, specs_of(program, call.inputs), specs_of(program, call.outputs)};
  for (std::vector<TensorSpec>* specs : {&result.inputs, &result.outputs}) {
    for (TensorSpec& spec : *specs) spec.placement.rank = 0;
  }
  return result;
}

/// Appends the call to a program that has only its inputs; an input used twice stays one tensor.
const OpCall& make_again(Program& program, Call call) {
  std::map<ValueId, ValueId> added;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    ValueId& id = call.call.inputs[i];
    const auto [found, is_new] = added.try_emplace(id);
    if (is_new) {
      call.inputs[i].name = program.unique_name(call.inputs[i].name);
      found->second = program.add(call.inputs[i]);
    }
    id = found->second;
  }
  return append_call(program, call.call, call.outputs);
}

std::string refusal(const Call& call) {
  Program program;
  return thrown_text<ProgramError>([&] { make_again(program, call); });
}

Call layer_norm() {
  Program program;
  const auto add = [&](const char* name, const Shape& shape) {
    return program.add(tensor(name, DType::f32, shape, Role::activation));
  };
  const ValueId x = add("x", {3, 8}), gamma = add("gamma", {8});
  layer_norm_forward(program, {}, {}, "norm", x, gamma, add("beta", {8}));
  return call_of(program, program.op(0));
}

void make_all_again(const Program& program, std::set<std::string_view>& seen) {
  for (const OpCall& call : program.ops()) {
    if (is_collective(call.kind)) continue;
    seen.insert(call.kind.name);
    const Call given = call_of(program, call);
    SCOPED_TRACE(call.label);
    Program alone;
    try {
      const OpCall& made = make_again(alone, given);
      ASSERT_EQ(made.inputs.size(), given.inputs.size());
      for (std::size_t i = 0; i < made.inputs.size(); ++i)
        EXPECT_EQ(alone.spec(made.inputs[i]).shape, given.inputs[i].shape);
    } catch (const ProgramError& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(Builders, MakeEveryCallOfTheSuitesAgain) {
  Selection selection;
  selection.suites = {"all", "variants"};
  selection.tier = Tier::smoke;
  selection.ranks = {1, 2};
  std::vector<FusionClaim> claims, without_convolution;
  for (const FusionRule& rule : fusion_rules()) {
    claims.push_back({rule.kind});
    if (!(rule.kind == conv2d_batch_norm_forward_kind)) without_convolution.push_back({rule.kind});
  }
  std::set<std::string_view> seen;
  for (const PlannedCase& planned : declared_cases(all_suites(), selection)) {
    SCOPED_TRACE(planned.c.id());
    const Program program = planned.workload->build(planned.c);
    make_all_again(program, seen);
    make_all_again(fuse(program, claims).program, seen);
    make_all_again(fuse(program, without_convolution).program, seen);
  }
  for (const OpDefinition* definition : definitions()) {
    const OpKind kind = definition->kind();
    EXPECT_TRUE(is_collective(kind) || seen.contains(kind.name)) << kind.name;
  }
}

TEST(Builders, RefuseOutputsOfAnotherShapeOrType) {
  EXPECT_EQ(refusal(layer_norm()), "");
  Call call = layer_norm();
  call.outputs[0].shape = {4, 4};
  EXPECT_NE(refusal(call).find("[4, 4]"), std::string::npos) << refusal(call);
  EXPECT_NE(refusal(call).find("[3, 8]"), std::string::npos) << refusal(call);
  call = layer_norm();
  call.outputs[1].dtype = DType::bf16;
  EXPECT_NE(refusal(call).find("expected f32"), std::string::npos) << refusal(call);
  call = layer_norm();
  call.outputs.pop_back();
  EXPECT_NE(refusal(call).find("2 outputs; expected 3"), std::string::npos) << refusal(call);
}

TEST(Builders, RefuseInputsThatDoNotFitEachOther) {
  Call call = layer_norm();
  call.inputs[1].shape = {9};
  EXPECT_NE(refusal(call).find("[9]"), std::string::npos) << refusal(call);
  call = layer_norm();
  call.call.inputs.pop_back();
  EXPECT_NE(refusal(call).find("expected x, gamma, beta"), std::string::npos) << refusal(call);
}

TEST(Builders, RefuseCollectives) {
  Call call = layer_norm();
  call.call.kind = all_reduce_kind;
  EXPECT_NE(refusal(call).find("all_reduce has tensors of several ranks"), std::string::npos) << refusal(call);
}

}  // namespace builders_test
}  // namespace gpubench
