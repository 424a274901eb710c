// Orders of addition of this machine's libraries, read by a probe: replayed on random data, they must give the
// library's bits.
#include <gtest/gtest.h>

#include "harness/core/hash.h"
#include "harness/parity/precision_probe.h"
#include "reference/ops/gemm.h"
#include "tests/harness/parity/replayed_sum.h"
#include "tests/reference/cpu/program_run.h"
#include "tests/trials.h"
#ifdef GPUBENCH_TEST_OPENBLAS
#include <cblas.h>
#endif

namespace gpubench::testing {
namespace library_order_test {

void set_random(HostTensor& tensor, std::uint64_t seed) {
  for (std::int64_t e = 0; e < tensor.elements(); ++e) {
    const auto random = static_cast<double>(hash_at(mix(seed), static_cast<std::uint64_t>(e)) >> 11U);
    tensor.set(e, std::ldexp(random, -52) - 1.0);
  }
}

std::pair<std::vector<float>, std::vector<float>> factors(const std::vector<HostTensor>& inputs, std::int64_t i,
                                                          std::int64_t j) {
  const std::int64_t k = inputs[0].spec.shape[1], n = inputs[1].spec.shape[1];
  std::pair<std::vector<float>, std::vector<float>> both;
  for (std::int64_t l = 0; l < k; ++l) {
    both.first.push_back(static_cast<float>(inputs[0].get(i * k + l)));
    both.second.push_back(static_cast<float>(inputs[1].get(l * n + j)));
  }
  return both;
}

class CpuGemm {
 public:
  CpuGemm(DType type, std::int64_t k) : lines_(std::max<std::int64_t>(k, 64)) {
    const auto add = [&](const char* name, Shape shape) {
      return program_.add(tensor(name, type, std::move(shape), Role::input));
    };
    const ValueId a = add("a", {lines_, k}), b = add("b", {k, lines_});
    c_ = gemm(program_, {}, {}, "c", a, b, {},
              program_.reserve(tensor("c", DType::f32, {lines_, lines_}, Role::activation)))
             .c;
    inputs_ = specs_of(program_, program_.op(0).inputs);
    outputs_ = specs_of(program_, program_.op(0).outputs);
    specs_.emplace(CallSpecs{program_.op(0), inputs_, outputs_});
    product_ = *definition(gemm_kind).product(*specs_);
    run_.emplace(shared_backend(), program_);
    probe_.emplace(*specs_, product_, 42);
    while (const std::optional<ProbeLaunch> launch = probe_->next()) {
      std::vector<HostTensor> inputs;
      for (const SparseTensor& input : launch->inputs) inputs.push_back(input.dense());
      const std::vector<double> all = results(inputs);
      std::vector<double> wanted;
      for (const std::int64_t element : launch->wanted) wanted.push_back(all[static_cast<std::size_t>(element)]);
      probe_->take(wanted);
    }
  }
  [[nodiscard]] const PrecisionProbe& probe() const { return *probe_; }
  [[nodiscard]] std::string what() const { return run_->implementation(0) + ": " + probe_->arithmetic().order; }

  /// The number of results on random data that differ from a replay of the tree.
  int wrong_replays(const SummationTree& tree) {
    std::vector<HostTensor> inputs(inputs_.begin(), inputs_.end());
    for (std::size_t i = 0; i < inputs.size(); ++i) set_random(inputs[i], i + 1);
    const std::vector<double> all = results(inputs);
    int wrong = 0;
    for (std::int64_t i = 0; i < lines_; ++i) {
      for (const std::int64_t j : {(i * 7 + 3) % lines_, (i * 5 + 1) % lines_}) {
        const auto [a, b] = factors(inputs, i, j);
        const float replayed = ReplayedSum(tree, a, b, probe_->values().fused.value_or(true)).value();
        wrong += static_cast<double>(replayed) == all[static_cast<std::size_t>(i * lines_ + j)] ? 0 : 1;
      }
    }
    return wrong;
  }

 private:
  std::vector<double> results(const std::vector<HostTensor>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<double> values(static_cast<std::size_t>(inputs[i].elements()));
      inputs[i].view().read(0, values);
      run_->set(program_.op(0).inputs[i], values);
    }
    std::exchange(planned_, true) ? run_->run_again() : run_->run();
    return run_->get(c_);
  }

  std::int64_t lines_;
  Program program_;
  ValueId c_;
  std::vector<TensorSpec> inputs_, outputs_;
  std::optional<CallSpecs> specs_;
  OpProduct product_;
  std::optional<ProgramRun> run_;
  bool planned_ = false;
  std::optional<PrecisionProbe> probe_;
};

// `GPUBENCH_TRIAL_ORDERS=1`: all lengths.
std::vector<std::int64_t> lengths() {
  if (trial_count("GPUBENCH_TRIAL_ORDERS", 0) == 0)
    return {3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 100, 128, 255, 256, 320, 384, 385, 448, 511, 512};
  std::vector<std::int64_t> all;
  for (std::int64_t k = 3; k <= 512; ++k) all.push_back(k);
  return all;
}

TEST(LibraryOrder, TheCpuBackendsProductsAreReplayedInTheOrderThatWasRead) {
  int read = 0;
  for (const DType type : {DType::f32, DType::bf16}) {
    int untold = 0;
    for (const std::int64_t k : lengths()) {
      CpuGemm gemm(type, k);
      SCOPED_TRACE(std::string(name(type)) + ", k " + std::to_string(k) + ", " + gemm.what());
      EXPECT_TRUE(gemm.probe().sums().plain);
      EXPECT_EQ(gemm.probe().sums().kept.value_or(24), 24);
      untold += gemm.probe().sums().kept ? 0 : 1;
      EXPECT_EQ(gemm.probe().arithmetic().verdict, Verdict::pass) << gemm.probe().arithmetic().reason;
      ASSERT_EQ(gemm.probe().order().size(), 1U);
      const std::optional<SummationTree>& tree = gemm.probe().order().front().tree;
      if (!tree) {
        EXPECT_EQ(gemm.probe().arithmetic().order, "no single order: outputs differ");
        continue;
      }
      ++read;
      EXPECT_EQ(gemm.wrong_replays(*tree), 0);
    }
    // AMX sums of 17 bf16 products leave the order open.
    EXPECT_LE(10 * untold, static_cast<int>(lengths().size())) << name(type);
  }
  tell_count("orders of the CPU backend's products that were read and replayed", read);
  EXPECT_GT(read, 0);
}

#ifdef GPUBENCH_TEST_OPENBLAS
// OpenBLAS's order differs between elements of a tile, so one launch can't show the order of one element. Each pair of
// places of the huge numbers has a launch with equal rows and columns, except for where a column begins.
class OpenBlas {
 public:
  static constexpr int tile = 48;
  static constexpr std::array<int, 4> rows{0, 7, 18, 47}, columns{0, 9, 30, 47};

  explicit OpenBlas(int k) : k_(k), a_(size(tile, k), 1.0F), b_(size(k, tile), 1.0F), c_(size(tile, tile)) {}

  [[nodiscard]] std::vector<std::optional<SummationTree>> trees() {
    std::vector<std::vector<int>> sizes(rows.size() * columns.size(), std::vector<int>(size(k_, k_), 0));
    for (int i = 0; i < k_; ++i) {
      for (int row = 0; row < tile; ++row) a_[size(row, k_) + static_cast<std::size_t>(i)] = 0x1p64F;
      for (int shift = 0; shift < k_; ++shift) {
        mark(shift, -0x1p64F);
        multiply();
        mark(shift, 1.0F);
        std::size_t element = 0;
        for (const int row : rows) {
          for (const int column : columns) {
            const int j = (column + shift) % k_;
            if (i != j)
              sizes[element][size(i, k_) + static_cast<std::size_t>(j)] = k_ - static_cast<int>(at(row, column));
            ++element;
          }
        }
      }
      for (int row = 0; row < tile; ++row) a_[size(row, k_) + static_cast<std::size_t>(i)] = 1.0F;
    }
    std::vector<std::optional<SummationTree>> all;
    for (const std::vector<int>& one : sizes) all.push_back(SummationTree::of_sizes(one, k_));
    return all;
  }

  /// Whether products are added unrounded: not by OpenBLAS's kernels for unknown processors.
  static bool fuses() {
    OpenBlas two(2);
    const float x = 1.0F + 0x1p-12F, rounded = x * x;
    for (const int first : {0, 1}) {  // whichever product comes last
      for (int row = 0; row < tile; ++row) {
        two.a_[size(2 * row, 1) + static_cast<std::size_t>(first)] = x;
        two.a_[size(2 * row, 1) + static_cast<std::size_t>(1 - first)] = -rounded;
      }
      for (int column = 0; column < tile; ++column) {
        two.b_[size(first, tile) + static_cast<std::size_t>(column)] = x;
        two.b_[size(1 - first, tile) + static_cast<std::size_t>(column)] = 1.0F;
      }
      two.multiply();
      if (two.at(0, 0) != 0.0F) return true;
    }
    return false;
  }

  int wrong_replays(const std::vector<std::optional<SummationTree>>& trees, std::uint64_t seed, bool fused) {
    HostTensor a(tensor("a", DType::f32, {tile, k_}, Role::input)), b(tensor("b", DType::f32, {k_, tile}, Role::input));
    set_random(a, seed);
    set_random(b, seed + 1);
    for (std::size_t e = 0; e < a_.size(); ++e) a_[e] = static_cast<float>(a.get(static_cast<std::int64_t>(e)));
    for (std::size_t e = 0; e < b_.size(); ++e) b_[e] = static_cast<float>(b.get(static_cast<std::int64_t>(e)));
    multiply();
    int wrong = 0;
    std::size_t element = 0;
    for (const int row : rows) {
      for (const int column : columns) {
        const auto [left, right] = factors({a, b}, row, column);
        wrong += ReplayedSum(*trees[element++], left, right, fused).value() == at(row, column) ? 0 : 1;
      }
    }
    return wrong;
  }

 private:
  static std::size_t size(int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
  [[nodiscard]] float at(int row, int column) const { return c_[size(row, tile) + static_cast<std::size_t>(column)]; }
  void mark(int shift, float value) {
    for (int column = 0; column < tile; ++column)
      b_[size((column + shift) % k_, tile) + static_cast<std::size_t>(column)] = value;
  }
  void multiply() {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, tile, tile, k_, 1.0F, a_.data(), k_, b_.data(), tile, 0.0F,
                c_.data(), tile);
  }

  int k_;
  std::vector<float> a_, b_, c_;
};

TEST(LibraryOrder, OpenBlasProductsAreReplayedInTheOrderThatWasRead) {
  const bool all = trial_count("GPUBENCH_TRIAL_ORDERS", 0) != 0;
  const bool fused = OpenBlas::fuses();
  int read = 0;
  for (const std::int64_t k : lengths()) {
    if (!all && k > 100) continue;
    SCOPED_TRACE("k " + std::to_string(k));
    OpenBlas blas(static_cast<int>(k));
    const std::vector<std::optional<SummationTree>> trees = blas.trees();
    for (const auto& tree : trees) ASSERT_TRUE(tree);
    for (const std::uint64_t seed : {1, 11, 21}) EXPECT_EQ(blas.wrong_replays(trees, seed, fused), 0);
    read += static_cast<int>(trees.size());
  }
  tell_count("orders of elements of OpenBLAS products that were read and replayed", read);
}
#endif

}  // namespace library_order_test
}  // namespace gpubench::testing
