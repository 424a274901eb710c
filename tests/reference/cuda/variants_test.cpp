// Every op with pairwise combinations of its attributes on the CUDA backend, against the textbook.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/parity/end_to_end.h"
#include "harness/parity/judge.h"
#include "suites/variants/variants.h"
#include "tests/reference/cuda/emulated_backend.h"

namespace gpubench {
namespace cuda_variants_test {

/// A program's storages on an emulated device. Each op runs on the textbook's results of earlier ops.
class EmulatedOps {
 public:
  explicit EmulatedOps(const Program& program) : program_(program), machine_(program) {
    for (const Storage& storage : program.storages())
      device_.push_back(backend_->allocate_on(storage.rank, static_cast<std::size_t>(storage.bytes)));
    machine_.fill_sources("test/case", 42, program);
  }

  /// The check's verdict on the op's outputs; "" if they are right. Throws Unsupported.
  std::string judge(int op) {
    const OpCall& call = program_.op(op);
    std::vector<ValueId> ids(call.inputs);
    ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
    std::vector<HostTensor> in, out;
    for (const ValueId id : call.inputs) in.emplace_back(machine_.view(id));
    launch(call, ids);
    for (const ValueId id : call.outputs) out.emplace_back(on_host(id));
    const OpParity parity = gpubench::judge(program_, op, {views_of(in), views_of(out)}, {CheckMode::full}, "check");
    return parity.verdict == Verdict::pass ? "" : std::string(name(parity.verdict)) + ": " + parity.reason;
  }
  /// Stores the textbook's outputs for later ops.
  void pass(int op) { machine_.run_op(op); }

 private:
  void launch(const OpCall& call, const std::vector<ValueId>& ids) {
    const Plan plan = backend_->plan(call, specs_of(program_, ids), {});
    std::vector<Tensor> tensors;
    for (const ValueId id : ids) {
      const Value& value = program_.value(id);
      const Buffer& storage = device_.at(static_cast<std::size_t>(value.storage.index));
      backend_->write(storage.data(), std::span(machine_.data(value.storage), storage.bytes()));
      tensors.push_back({value.spec, storage.data() + value.offset_bytes});
    }
    const Buffer workspace = backend_->allocate_on(0, plan->workspace_bytes());
    backend_->run(backend_->bind(plan, tensors, {workspace.data(), plan->workspace_bytes()}));
  }
  TensorView on_host(ValueId id) {
    const Value& value = program_.value(id);
    const Buffer& storage = device_.at(static_cast<std::size_t>(value.storage.index));
    read_.resize(storage.bytes());
    backend_->read(read_, storage.data());
    return {value.spec, read_.data() + value.offset_bytes};
  }

  const Program& program_;
  TextbookMachine machine_;
  std::unique_ptr<Backend> backend_ = testing::open_emulated_backend();
  std::vector<Buffer> device_;
  std::vector<std::byte> read_;
};

class CudaVariants : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaVariants, EveryPairOfAttributesIsRight) {
  int judged = 0;
  std::set<std::string_view> refused;
  for (const variants::Variants& one : variants::all_variants()) {
    if (std::ranges::find(one.recipes, GetParam()) == one.recipes.end()) continue;
    const Program program = variants::program_of(one, 7, recipe(GetParam())).program;
    EmulatedOps ops(program);
    for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
      const OpCall& call = program.op(op);
      try {
        EXPECT_EQ(ops.judge(op), "") << call.label;
        ++judged;
      } catch (const Unsupported&) {
        refused.insert(call.kind.name);
      }
      ops.pass(op);
    }
  }
  EXPECT_GT(judged, 450);
  // The stand-in for cuBLASLt lacks some forms of gemm.
  EXPECT_EQ(refused,
            (std::set<std::string_view>{"conv2d_backward_data", "conv2d_backward_filter", "conv2d_forward", "gemm"}));
}

INSTANTIATE_TEST_SUITE_P(All, CudaVariants, ::testing::Values("f32", "bf16", "f16"),
                         [](const auto& test) { return test.param; });

}  // namespace cuda_variants_test
}  // namespace gpubench
