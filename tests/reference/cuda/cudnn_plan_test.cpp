// The wrapper of cuDNN's graph interface: excluded engines, requests, and error messages.
#include "reference/cuda/cudnn_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "harness/core/error.h"
#include "reference/cuda/kernel.h"
#include "reference/ops/attention.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "tests/reference/cuda/described_chip.h"
#include "tests/thrown_text.h"

namespace gpubench::cuda {
namespace cudnn_plan_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Called {
  Program program;
  std::vector<TensorSpec> tensors;

  [[nodiscard]] const OpCall& call() const { return program.op(0); }
  void finish() {
    std::vector<ValueId> ids = call().inputs;
    ids.insert(ids.end(), call().outputs.begin(), call().outputs.end());
    tensors = specs_of(program, ids);
  }
};

// The filter gradient of a 3x3 convolution, for which cuDNN has engines of every sort.
Called filter_gradient(DType type, const Math& math) {
  Called made;
  const ValueId x = made.program.add(tensor("x", type, {32, 14, 14, 256}, Role::input));
  const ValueId dy = made.program.add(tensor("dy", type, {32, 14, 14, 256}, Role::input));
  conv2d_backward_filter(made.program, {.pad_h = 1, .pad_w = 1}, math, "df", x, dy, 3, 3);
  made.finish();
  return made;
}

Called attention_gradient(std::int64_t s) {
  Called made;
  Program& p = made.program;
  const auto heads = [&](const char* name, std::int64_t count) {
    return p.add(tensor(name, DType::bf16, {2, s, count, 64}, Role::input));
  };
  const ValueId d_o = heads("do", 8), q = heads("q", 8), k = heads("k", 2), v = heads("v", 2), o = heads("o", 8);
  const ValueId lse = p.add(tensor("lse", DType::f32, {2, 8, s}, Role::input));
  attention_backward(p, {.causal = true, .scale = 0.125}, Math{}, "d", d_o, q, k, v, o, lse);
  made.finish();
  return made;
}

std::shared_ptr<const CudnnGraph> shared(CudnnGraph graph) {
  return std::make_shared<const CudnnGraph>(std::move(graph));
}

class CudnnPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_fake_driver(); !why.empty()) GTEST_SKIP() << why;
  }
  static bool any_has(const std::vector<CudnnPlan>& plans, cudnnBackendNumericalNote_t note) {
    return std::any_of(plans.begin(), plans.end(), [note](const CudnnPlan& plan) {
      const auto& notes = plan.engine().notes();
      return std::find(notes.begin(), notes.end(), note) != notes.end();
    });
  }
  std::vector<CudnnPlan> plans(const Called& made, bool deterministic = false) const {
    return cudnn_plans(
        h200_, shared(conv2d_graph(made.call(), made.tensors)),
        {.numerics = CudnnNumerics::of(made.call().math, made.tensors[0].dtype, deterministic), .most = 100});
  }

  const Cudnn h200_ = Cudnn::for_chip(chip_description("h200"));
};

TEST_F(CudnnPlans, F32IsNeverGivenToTensorCores) {
  const std::vector<CudnnPlan> found = plans(filter_gradient(DType::f32, Math{}));

  EXPECT_FALSE(any_has(found, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
  EXPECT_FALSE(any_has(found, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
}

TEST_F(CudnnPlans, TheTf32RecipeMayUseTensorCores) {
  EXPECT_TRUE(any_has(plans(filter_gradient(DType::f32, Math{.inputs = Math::Inputs::tf32})),
                      CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
}

TEST_F(CudnnPlans, ConvolutionsInF64AreSummedInF64) {
  EXPECT_FALSE(plans(filter_gradient(DType::f64, Math{.accumulate = DType::f64})).empty());
}

TEST(CudnnNumericsOfARecipe, FollowWhatItPromises) {
  const auto of = [](const Math& math, DType type) { return CudnnNumerics::of(math, type, false); };
  EXPECT_FALSE(of(Math{}, DType::f32).tensor_cores);
  EXPECT_TRUE(of(Math{.inputs = Math::Inputs::tf32}, DType::f32).tensor_cores);
  EXPECT_TRUE(of(Math{}, DType::bf16).tensor_cores);
  EXPECT_FALSE(of(Math{}, DType::bf16).narrow_partial_sums);
  EXPECT_TRUE(of(Math{.split_k_in_output = true}, DType::bf16).narrow_partial_sums);
}

TEST_F(CudnnPlans, EnginesThatChangeTheSumAreLeftOutInEveryRecipe) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    const std::vector<CudnnPlan> found = plans(filter_gradient(type, Math{}));
    EXPECT_FALSE(any_has(found, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION));
    EXPECT_FALSE(any_has(found, CUDNN_NUMERICAL_NOTE_WINOGRAD));
    EXPECT_FALSE(any_has(found, CUDNN_NUMERICAL_NOTE_FFT));
  }
}

TEST_F(CudnnPlans, AtomicAdditionsAreLeftOutWhereTheSameBitsAreAskedFor) {
  const Called made = filter_gradient(DType::f32, Math{});

  EXPECT_TRUE(any_has(plans(made, false), CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
  EXPECT_FALSE(any_has(plans(made, true), CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));
}

TEST_F(CudnnPlans, NoEngineWithItsKnobsIsListedTwice) {
  std::vector<std::string> names;
  for (const CudnnPlan& plan : plans(filter_gradient(DType::bf16, Math{}))) names.push_back(plan.implementation());
  ASSERT_GT(names.size(), 1U);
  EXPECT_THAT(names, ::testing::Each(StartsWith("cudnn:eng=")));

  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

Called layer(DType type, const Math& math, std::int64_t h, std::int64_t c, std::int64_t k, std::int64_t r,
             std::int64_t stride) {
  Called made;
  const ValueId x = made.program.add(tensor("x", type, {32, h, h, c}, Role::input));
  const ValueId filter = made.program.add(tensor("filter", type, {k, r, r, c}, Role::input));
  const Conv2d conv{.stride_h = stride, .stride_w = stride, .pad_h = r / 2, .pad_w = r / 2};
  (void)conv2d_forward(made.program, conv, math, "y", x, filter);
  made.finish();
  return made;
}

TEST_F(CudnnPlans, ConvolutionsOfResnet50ComeWithTheSumsOfTheirChannels) {
  const Math exact, tf32{.inputs = Math::Inputs::tf32};
  for (const auto& [type, math] :
       {std::pair(DType::bf16, exact), std::pair(DType::f16, exact), std::pair(DType::f32, tf32)}) {
    for (const Called& made : {layer(type, math, 224, 3, 64, 7, 2), layer(type, math, 56, 64, 256, 1, 1),
                               layer(type, math, 56, 128, 128, 3, 2), layer(type, math, 14, 256, 256, 3, 1),
                               layer(type, math, 14, 1024, 2048, 1, 2)}) {
      const auto found = cudnn_plans(h200_, shared(conv2d_sums_graph(made.call(), made.tensors)),
                                     {.numerics = CudnnNumerics::of(math, type, true)});
      EXPECT_EQ(found.size(), 1U) << name(type) << " " << made.tensors[1].to_string();
    }
  }
}

TEST_F(CudnnPlans, InF32NoConvolutionComesWithSumsAsItPromises) {
  const Called made = layer(DType::f32, Math{}, 56, 64, 64, 3, 1);
  EXPECT_THROW((void)cudnn_plans(h200_, shared(conv2d_sums_graph(made.call(), made.tensors)),
                                 {.numerics = CudnnNumerics::of(Math{}, DType::f32, false)}),
               Unsupported);
}

// The suffix of the engine's name selects the kind of graph, of which only that engine is built.
TEST_F(CudnnPlans, AConvolutionWithItsBatchNormIsPinnedByBothItsParts) {
  Called made;
  const auto add = [&](const char* name, DType type, const Shape& shape) {
    return made.program.add(tensor(name, type, shape, Role::input));
  };
  const ValueId x = add("x", DType::bf16, {32, 14, 14, 256}), filter = add("filter", DType::bf16, {200, 1, 1, 256});
  const auto of_channels = [&](const char* name) { return add(name, DType::f32, {200}); };
  (void)conv2d_batch_norm_forward(made.program, {.relu = true}, Math{}, "norm", x, filter,
                                  {of_channels("gamma"), of_channels("beta"), of_channels("mean"), of_channels("var")});
  made.finish();
  const std::span<const TensorSpec> tensors = made.tensors;
  const std::vector<TensorSpec> convolved = convolution_operands(made.call(), tensors);
  const auto engine = [&](CudnnGraph graph) {
    return cudnn_plans(h200_, shared(std::move(graph)), {}).at(0).implementation();
  };
  const OpCall convolution = convolution_of(made.call());
  const std::string with_sums = engine(conv2d_sums_graph(convolution, convolved)) + "+gpubench:sm90:normalize";
  const std::string without = engine(conv2d_graph(convolution, convolved)) + "+gpubench:sm90:batch_norm";
  DeviceTraits traits;
  traits.compute_capability = 90;
  traits.multiprocessors = 132;
  traits.memory_bytes = std::int64_t{1} << 37U;
  alignas(64) const std::byte no_library[64] = {};
  const auto planned = [&](const std::string& pinned) {
    const CudaContext context{
        traits, reinterpret_cast<const CublasLt&>(no_library), h200_, nullptr, {.pinned = pinned}};
    return implementation_of(conv2d_batch_norm_forward_kind).plan(made.call(), tensors, context);
  };

  for (const std::string& name : {with_sums, without}) {
    const int before = h200_.effort().built;
    EXPECT_EQ(planned(name)->implementation(), name);
    EXPECT_EQ(h200_.effort().built, before + 1) << name;
  }
  EXPECT_GE(planned(with_sums)->workspace_bytes(), 2 * 256 * sizeof(float));  // 200 sums, in whole lines, twice
  EXPECT_THROW((void)planned("cudnn:eng=999+gpubench:sm90:normalize"), Unsupported);
}

TEST_F(CudnnPlans, ScratchTensorsOfAttentionsGradientArePartOfTheWorkspace) {
  const Called made = attention_gradient(128);
  const auto graph = shared(attention_backward_graph(made.call(), made.tensors, false));

  // delta: 2 x 8 x 128 numbers; the sum for dq: 64 times that; both f32 and multiples of 256 bytes.
  constexpr std::size_t delta = 2 * 8 * 128 * 4;
  EXPECT_EQ(graph->scratch_bytes(), delta + 64 * delta);
  EXPECT_GE(cudnn_plans(h200_, graph, {}).at(0).workspace_bytes(), graph->scratch_bytes());
}

TEST_F(CudnnPlans, APlanThatNeedsMoreThanMayBeHadIsUnsupportedWithBothNumbers) {
  const Called made = attention_gradient(128);
  EXPECT_THAT(thrown_text<Unsupported>([&] {
                (void)cudnn_plans(h200_, shared(attention_backward_graph(made.call(), made.tensors, false)),
                                  {.workspace_limit = 1000});
              }),
              AllOf(HasSubstr("bytes of workspace"), HasSubstr("(limit 1000)")));
}

TEST_F(CudnnPlans, AMisalignedTensorIsNamedWhenItIsBound) {
  const CudnnPlan plan = plans(filter_gradient(DType::bf16, Math{})).at(0);
  alignas(256) std::array<std::byte, 512> memory{};
  const std::array<std::byte*, 3> aligned{memory.data(), memory.data(), memory.data()};
  const std::array<std::byte*, 3> odd{memory.data(), memory.data() + 2, memory.data()};

  EXPECT_NO_THROW((void)plan.bind(aligned, memory.data()));
  EXPECT_THAT(thrown_text<BackendError>([&] { (void)plan.bind(odd, memory.data()); }),
              AllOf(HasSubstr("tensor 1"), HasSubstr("multiple of 16")));
}

TEST_F(CudnnPlans, APlanForADescribedChipDoesNotRun) {
  const CudnnPlan plan = plans(filter_gradient(DType::bf16, Math{})).at(0);
  alignas(256) std::array<std::byte, 256> memory{};
  const std::array<std::byte*, 3> tensors{memory.data(), memory.data(), memory.data()};

  EXPECT_THROW(plan.bind(tensors, memory.data())(nullptr), BackendError);
  EXPECT_THROW((void)h200_.handle(), BackendError);
}

TEST_F(CudnnPlans, ADescriptionThatLacksAFieldIsRefusedInCudnnsWords) {
  EXPECT_THAT(thrown_text<std::runtime_error>([&] { (void)Cudnn::for_chip("{}"); }),
              AllOf(HasSubstr("reading the description of a chip"), HasSubstr("CUDNN_STATUS_")));
}

TEST_F(CudnnPlans, AChipsDescriptionCanBeReadBackAndUsedAgain) {
  const std::string text = h200_.properties();
  EXPECT_THAT(text, HasSubstr("NVIDIA H200"));
  EXPECT_EQ(Cudnn::for_chip(text).properties(), text);
}

TEST_F(CudnnPlans, ExtentsThatDoNotFitTogetherAreAnErrorSayingWhatWasAttempted) {
  CudnnGraph graph;
  const GraphTensor a = graph.argument(0, dense(CUDNN_DATA_HALF, {1, 8, 16}));
  const GraphTensor b = graph.argument(1, dense(CUDNN_DATA_HALF, {1, 24, 8}));
  const GraphTensor c = graph.argument(2, dense(CUDNN_DATA_HALF, {1, 8, 8}));
  EXPECT_THAT(thrown_text<std::runtime_error>([&] { graph.matmul(a, b, c); }),
              AllOf(HasSubstr("adding a product"), HasSubstr("CUDNN_STATUS_")));
}

// Plans and effort of the backend's search for a call, on a chip with `store`.
struct Planned {
  std::vector<CudnnPlan> plans;
  Cudnn::Effort effort;
};

// `h200` must outlive the plans.
Planned planned_attention(const Cudnn& h200, const std::string& remembered) {
  DeviceTraits traits;
  traits.compute_capability = 90;
  traits.memory_bytes = std::int64_t{1} << 37U;
  alignas(64) const std::byte no_library[64] = {};
  const CudaContext context{
      traits, reinterpret_cast<const CublasLt&>(no_library), h200, nullptr, {.remembered = remembered}};
  const Called made = attention_gradient(128);
  const CudnnSearch search = search_for(made.call(), made.tensors, context);
  Planned planned{cudnn_plans(h200, shared(attention_backward_graph(made.call(), made.tensors, false)), search), {}};
  planned.effort = h200.effort();
  return planned;
}

TEST_F(CudnnPlans, OfAttentionTwoEnginesAreBuiltAtMostAndANamedOneAlone) {
  const Cudnn chip = Cudnn::for_chip(chip_description("h200"));
  const Planned raced = planned_attention(chip, "");
  EXPECT_LE(raced.effort.built, 2);
  ASSERT_FALSE(raced.plans.empty());

  const std::string last = raced.plans.back().implementation();
  const Cudnn other = Cudnn::for_chip(chip_description("h200"));
  const Planned named = planned_attention(other, last);
  EXPECT_EQ(named.effort.built, 1);
  ASSERT_EQ(named.plans.size(), 1U);
  EXPECT_EQ(named.plans[0].implementation(), last);
}

TEST_F(CudnnPlans, AttentionInF32RunsOnOwnKernelsAndSaysSo) {
  const Cudnn chip = Cudnn::for_chip(chip_description("h200"));
  DeviceTraits traits;
  traits.compute_capability = 90;
  traits.memory_bytes = std::int64_t{1} << 37U;
  alignas(64) const std::byte no_library[64] = {};
  const CudaContext context{traits, reinterpret_cast<const CublasLt&>(no_library), chip, nullptr};
  Called made;
  const ValueId x = made.program.add(tensor("x", DType::f32, {2, 128, 8, 64}, Role::input));
  attention_forward(made.program, {.scale = 0.125}, Math{}, "o", x, x, x);
  made.finish();

  EXPECT_EQ(implementation_of(attention_forward_kind).plan(made.call(), made.tensors, context)->implementation(),
            "gpubench:sm90");
  EXPECT_EQ(chip.effort().built, 0);
}

struct Gradients {
  explicit Gradients(std::initializer_list<std::int64_t> lengths) {
    for (const std::int64_t length : lengths) made.push_back(attention_gradient(length));
    for (const Called& one : made) calls.push_back({&one.call(), one.tensors});
  }
  [[nodiscard]] CudaContext context(const Cudnn& chip) const {
    return {traits, reinterpret_cast<const CublasLt&>(no_library), chip};
  }
  [[nodiscard]] std::string plan(const Cudnn& chip, std::size_t call) const {
    const Plan plan =
        implementation_of(attention_backward_kind).plan(*calls[call].call, calls[call].tensors, context(chip));
    return plan->implementation() + " " + std::to_string(plan->workspace_bytes());
  }

  std::vector<Called> made;
  std::vector<CallToPlan> calls;
  DeviceTraits traits{.compute_capability = 90, .memory_bytes = std::int64_t{1} << 37U, .name = {}, .pci_bus_id = {}};
  alignas(64) std::byte no_library[64] = {};
};

TEST_F(CudnnPlans, WhatWasCompiledAheadIsNotCompiledByPlanning) {
  const Gradients gradients({128, 256});
  const Cudnn alone = Cudnn::for_chip(chip_description("h200"));
  const Cudnn chip = Cudnn::for_chip(chip_description("h200"), std::make_shared<CudnnPlanStore>());
  int alive = 0;
  compile_ahead(gradients.calls, gradients.context(chip), 2, [&alive] { ++alive; });
  EXPECT_GT(alive, 0);
  for (const std::size_t call : {0U, 1U}) EXPECT_EQ(gradients.plan(chip, call), gradients.plan(alone, call));
  EXPECT_EQ(chip.effort().built, 0);
  EXPECT_EQ(chip.effort().restored, alone.effort().built);
}

TEST_F(CudnnPlans, CompilingAheadEndsWhenTheRunIsStopped) {
  const Gradients gradients({128, 256, 384});
  const Cudnn chip = Cudnn::for_chip(chip_description("h200"), std::make_shared<CudnnPlanStore>());
  const auto stop = [] { throw std::runtime_error("stopped"); };
  EXPECT_THROW(compile_ahead(gradients.calls, gradients.context(chip), 1, stop), std::runtime_error);

  int built = 0;
  for (const std::size_t call : {0U, 2U}) {
    (void)gradients.plan(chip, call);
    built += chip.effort().built > 0 ? 1 : 0;
  }
  EXPECT_EQ(built, 1);  // the first one compiled is there, the last one is not
}

TEST_F(CudnnPlans, WhereCudnnTakesNoTextItIsBuiltAndNothingIsCompiledAhead) {
  const Gradients gradients({128, 256});
  const auto store = std::make_shared<CudnnPlanStore>();
  const Cudnn chip = Cudnn::for_chip(chip_description("h200"), store);
  const Cudnn alone = Cudnn::for_chip(chip_description("h200"));
  const std::string planned = gradients.plan(alone, 0);
  const std::string engine = planned.substr(planned.find(':') + 1, planned.find(' ') - planned.find(':') - 1);
  const CudnnSearch search = search_for(*gradients.calls[0].call, gradients.calls[0].tensors, gradients.context(chip));
  store->keep(chip.properties() + search.key + "; " + engine, "{}");

  EXPECT_EQ(gradients.plan(chip, 0), planned);
  EXPECT_EQ(chip.effort().restored, 0);
  EXPECT_TRUE(store->is_refused());
  compile_ahead(gradients.calls, gradients.context(chip), 2, [] { ADD_FAILURE() << "something was compiled"; });
}

TEST_F(CudnnPlans, WhatOneRankHasCompiledTheOthersOnItsDeviceDoNot) {
  const auto store = std::make_shared<CudnnPlanStore>();
  const Cudnn rank0 = Cudnn::for_chip(chip_description("h200"), store);
  const Cudnn rank1 = Cudnn::for_chip(chip_description("h200"), store);
  const Planned first = planned_attention(rank0, "");
  const Planned second = planned_attention(rank1, "");

  EXPECT_GT(first.effort.built, 0);
  EXPECT_EQ(first.effort.restored, 0);
  EXPECT_EQ(second.effort.built, 0);
  EXPECT_EQ(second.effort.restored, first.effort.built);
  ASSERT_EQ(second.plans.size(), first.plans.size());
  for (std::size_t i = 0; i < first.plans.size(); ++i) {
    EXPECT_EQ(second.plans[i].implementation(), first.plans[i].implementation());
    EXPECT_EQ(second.plans[i].workspace_bytes(), first.plans[i].workspace_bytes());
  }
}

TEST_F(CudnnPlans, AnEngineThatIsWantedByNameIsTheOnlyOneThatIsBuilt) {
  const Called made = filter_gradient(DType::bf16, Math{});
  const auto graph = shared(conv2d_graph(made.call(), made.tensors));
  const std::string third = plans(made).at(2).engine().name();
  const int before = h200_.effort().built;

  const auto found = cudnn_plans(h200_, graph, {.most = 100, .engine = third});
  EXPECT_EQ(h200_.effort().built, before + 1);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].engine().name(), third);
  EXPECT_THROW((void)cudnn_plans(h200_, graph, {.engine = "eng=999"}), Unsupported);
  EXPECT_EQ(h200_.effort().built, before + 1);
}

TEST_F(CudnnPlans, ARememberedEngineThatIsNoMoreIsNoReasonToFailAndAPinnedOneIs) {
  DeviceTraits traits;
  traits.memory_bytes = std::int64_t{1} << 37U;
  alignas(64) const std::byte no_library[64] = {};
  const Called made = filter_gradient(DType::bf16, Math{});
  const OpCall& call = made.call();
  const auto found = [&](PlanOptions options) {
    return graph_plans(call, made.tensors, conv2d_graph(call, made.tensors),
                       {traits, reinterpret_cast<const CublasLt&>(no_library), h200_, nullptr, std::move(options)});
  };

  EXPECT_GT(found({.remembered = "cudnn:eng=999"}).size(), 1U);  // not available, for example of another version
  EXPECT_THROW((void)found({.pinned = "cudnn:eng=999"}), Unsupported);
}

}  // namespace cudnn_plan_test
}  // namespace gpubench::cuda
