// An implementation under test, through the C interface.
#include "harness/run/own_implementation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/call_view.h"
#include "harness/core/error.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/gemm.h"
#include "reference/ops/optimizer.h"
#include "suites/suites.h"
#include "tests/harness/run/loop_gemm.h"
#include "tests/harness/run/run_fixture.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace own_implementation_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TensorSpec matrix(const char* name, Shape shape, double scale = 1.0) {
  return tensor(name, DType::f32, std::move(shape), Role::input, Fill::normal(scale));
}

// All products that loop_gemm offers, and one with an epilogue, which it does not.
Program products(const Case& c, const Recipe& r) {
  const std::int64_t m = c.dim("m"), n = 17, k = 65;
  Program p;
  const ValueId a = p.add(matrix("a", {m, k})), b = p.add(matrix("b", {k, n}));
  const ValueId at = p.add(matrix("at", {k, m})), bt = p.add(matrix("bt", {n, k}));
  const ValueId bias = p.add(matrix("bias", {n})), old = p.add(matrix("old", {m, n}));
  gemm(p, {.bias = true}, r.math, "biased", a, b, {.bias = bias});
  gemm(p, {.transpose_a = true, .transpose_b = true, .alpha = 0.5}, r.math, "turned", at, bt);
  gemm(p, {.transpose_b = true, .beta = 2.0}, r.math, "added", a, bt, {.c_in = old});
  gemm(p, {}, r.math, "batched", p.add(matrix("aa", {3, m, k})), p.add(matrix("bb", {3, k, n})));
  gemm(p, {.epilogue = Gemm::Epilogue::gelu}, r.math, "gelu", a, b);
  return p;
}

const std::vector<PlannedCase>& cases() {
  Grid grid;
  grid.recipes = {"f32"};
  grid.points = {Point{{{"m", 33}}, "odd", Tier::smoke}};
  static const std::vector<Suite> suites{
      {"own",
       "products",
       {suites::declare({{"products", "every kind", "", PrimaryMetric::flop_per_s, "rows", CacheMode::cold},
                         grid,
                         products,
                         [](const Case&) { return 1.0; }})}}};
  static const std::vector<PlannedCase> planned = plan_cases(suites, {});
  return planned;
}

struct Ran {
  Ran(const char* name, const gpubench_implementation& table, CheckMode check = CheckMode::full) {
    const OwnImplementation implementation(name, table);
    const std::unique_ptr<Backend> cpu = open_cpu_backend(2);
    const std::unique_ptr<Backend> own = with_implementation(*cpu, implementation);
    RunOptions options = sim::smoke_options();
    options.check = check;
    options.check_flop = 1000.0;  // less than for a product of the device
    run_in_process(*own, cases(), options, seen, seen.stop);
  }
  [[nodiscard]] const CaseRecord& record() const { return seen.records.begin()->second; }
  [[nodiscard]] std::string implementation_of(const std::string& label) const {
    for (const OpParity& op : record().parity.ops) {
      if (op.label == label) return op.implementation;
    }
    return "no op " + label;
  }
  sim::Remembering seen;
};

TEST(OwnImplementation, InCPassesParityInEveryOpThatItOffersAndLeavesTheOthersToTheDevice) {
  const Ran ran("loops", loop_gemm);
  EXPECT_EQ(ran.record().verdict, Verdict::pass) << ran.record().reason;
  for (const char* label : {"biased", "turned", "added", "batched"})
    EXPECT_EQ(ran.implementation_of(label), "impl:loops") << label;
  EXPECT_THAT(ran.implementation_of("gelu"), StartsWith("onednn"));
}

TEST(OwnImplementation, IsCheckedInFullBesideASampleOfTheDevicesOps) {
  const Ran ran("loops", loop_gemm, CheckMode::own);
  EXPECT_EQ(ran.record().verdict, Verdict::pass) << ran.record().reason;
  for (const OpParity& op : ran.record().parity.ops) {
    const bool own = op.label != "gelu", usual = op.phase == "check" || op.phase == "recheck";
    EXPECT_TRUE(own || usual) << op.phase;
    if (!usual) continue;
    EXPECT_EQ(op.judged == op.elements, own) << op.label << " " << op.phase;
  }
}

TEST(OwnImplementation, ThatForgetsATermFails) {
  const Ran ran("wrong", wrong_gemm);
  EXPECT_EQ(ran.record().verdict, Verdict::fail);
  EXPECT_THAT(ran.record().reason, HasSubstr("op 'biased' (gemm) failed in check"));
}

TEST(OwnImplementation, ThatReportsAFailureIsAnErrorInItsOwnWords) {
  const Ran ran("failing", failing_gemm);
  EXPECT_EQ(ran.record().verdict, Verdict::error);
  EXPECT_THAT(ran.record().reason, HasSubstr("impl:failing, op 'biased': out of luck: gemm"));
}

TEST(OwnImplementation, OfAnotherVersionIsRefusedWithBothVersions) {
  gpubench_implementation newer = loop_gemm;
  newer.abi_version = 7U << 16U | 3U;
  const std::string thrown = thrown_text<BackendError>([&] { (void)OwnImplementation("newer", newer); });
  EXPECT_THAT(thrown, ::testing::AllOf(HasSubstr("version 7.3"), HasSubstr("this gpubench has 1.0")));
}

TEST(OwnImplementation, OfAnotherMinorVersionIsTakenWithALongerOrAShorterTable) {
  struct {
    gpubench_implementation known = loop_gemm;
    void* added_later = nullptr;
  } newer;
  newer.known.abi_version = GPUBENCH_ABI_VERSION + 1;
  newer.known.struct_size = sizeof(newer);
  EXPECT_EQ(OwnImplementation("newer", newer.known).table().run, loop_gemm.run);
  gpubench_implementation older = loop_gemm;
  older.struct_size = offsetof(gpubench_implementation, destroy);
  older.destroy = [](void*) { FAIL() << "read beyond its table"; };
  EXPECT_EQ(OwnImplementation("older", older).table().destroy, nullptr);
}

std::string text_of(const gpubench_call& call) {
  std::string text = std::string(call.op) + " " + call.accumulate + " " + call.inputs + ":";
  for (std::size_t i = 0; i < call.attribute_count; ++i) text += std::string(" ") + call.attributes[i].name;
  text += ";";
  for (std::size_t i = 0; i < call.input_count + call.output_count; ++i) {
    const gpubench_tensor& t = call.tensors[i];
    text += std::string(" ") + t.operand + (t.item > 0 ? std::to_string(t.item) : "") + ":" + t.type;
  }
  return text;
}

TEST(CallView, TellsOperandsAndAttributesAsTheOpDeclaresThem) {
  Program p;
  const ValueId lr = p.add(tensor("lr", DType::f32, Shape{1}, Role::scalar));
  const ValueId step = p.add(tensor("step", DType::i32, Shape{1}, Role::scalar));
  std::vector<AdamWTensor> tensors;
  for (const char* name : {"0", "1"}) {
    const auto of = [&](const std::string& what, DType type) {
      return p.add(tensor(what + name, type, {4}, Role::parameter));
    };
    tensors.push_back(
        {of("w", DType::f32), of("g", DType::bf16), of("m", DType::f32), of("v", DType::f32), of("copy", DType::bf16)});
  }
  adamw(p, {.copies = true}, {}, "adamw", lr, step, tensors);
  const OpCall& call = p.op(0);
  std::vector<TensorSpec> specs = specs_of(p, call.inputs);
  for (const TensorSpec& output : specs_of(p, call.outputs)) specs.push_back(output);

  const CallView view(call, specs, {1, 0}, false);

  EXPECT_EQ(text_of(view.call()),
            "adamw f32 exact: beta1 beta2 epsilon weight_decay copies skips l2; lr:f32 step:i32 "
            "w:f32 g:bf16 m:f32 v:f32 copy:bf16 w1:f32 g1:bf16 m1:f32 v1:f32 copy1:bf16 "
            "w':f32 m':f32 v':f32 copy':bf16 w'1:f32 m'1:f32 v'1:f32 copy'1:bf16");
  EXPECT_EQ(view.call().attributes[1].real, 0.95);
  EXPECT_EQ(view.call().attributes[4].type, GPUBENCH_BOOL);
  EXPECT_EQ(view.call().attributes[4].whole, 1);
  EXPECT_EQ(view.call().tensors[2].dl.shape[0], 4);
}

TEST(CallView, TellsWordsListsAndStrides) {
  Program p;
  TensorSpec x = matrix("x", {4, 6});
  x.layout.strides = {1, 4};
  const ValueId a = p.add(x);
  const ValueId b = p.add(matrix("b", {6, 2}));
  gemm(p, {.epilogue = Gemm::Epilogue::gelu}, {.inputs = Math::Inputs::tf32}, "g", a, b);
  std::vector<TensorSpec> specs = specs_of(p, p.op(0).inputs);
  for (const TensorSpec& output : specs_of(p, p.op(0).outputs)) specs.push_back(output);

  const CallView view(p.op(0), specs, {1, 0}, false);

  EXPECT_STREQ(view.call().inputs, "tf32");
  EXPECT_STREQ(view.call().attributes[7].name, "epilogue");
  EXPECT_STREQ(view.call().attributes[7].word, "gelu");
  EXPECT_EQ(view.call().tensors[0].dl.strides[1], 4);
  EXPECT_STREQ(view.call().tensors[3].operand, "z");
}

}  // namespace own_implementation_test
}  // namespace gpubench
