#include "reference/ops/transform/batches.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>

#include "reference/ops/cross_entropy.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace weigh_losses_test {

constexpr std::int64_t classes = 3;
constexpr double ignored = -100.0;

/// The loss of some rows and its gradient, on one of `ranks` ranks of axis "dp".
struct Part {
  ValueId logits, labels, loss, dlogits;
};

Part add_part(Program& p, std::int64_t rows, int rank, int ranks, const std::string& name,
              std::optional<ValueId> labels = {}) {
  const auto add = [&](const char* what, DType type, const Shape& shape) {
    TensorSpec spec = tensor(name_on_rank(name + what, rank, ranks), type, shape, Role::input);
    spec.placement = ranks == 1 ? Placement{} : Placement::shard(0, rank, ranks);
    return p.add(std::move(spec));
  };
  Part part{add("logits", DType::f32, {rows, classes}), {}, {}, {}};
  part.labels = labels ? *labels : add("labels", DType::i32, {rows});
  const CrossEntropy masked{.ignores = true};
  const std::string label = name_on_rank(name + "loss", rank, ranks);
  const CrossEntropyForward made = cross_entropy_forward(p, f32_math, label, part.logits, part.labels, masked);
  part.loss = made.loss;
  part.dlogits =
      cross_entropy_backward(p, f32_math, label + ".backward", part.logits, part.labels, made.lse, false, masked);
  return part;
}

std::vector<double> slice(const std::vector<double>& all, std::size_t part, std::size_t parts) {
  const auto each = static_cast<std::ptrdiff_t>(all.size() / parts);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(part) * each;
  return {begin, begin + each};
}

/// The parts' losses and gradients, averaged, are those of all rows at once.
void expect_those_of_the_batch(const Program& weighed, const std::vector<Part>& parts,
                               const std::vector<double>& labels) {
  Program whole;
  const Part all = add_part(whole, static_cast<std::int64_t>(labels.size()), 0, 1, "");
  const std::vector<double> logits = spread(static_cast<std::int64_t>(labels.size()) * classes, 7);
  TextbookRun together(whole), apart(weighed);
  together.set(all.logits, logits);
  together.set(all.labels, labels);
  together.run();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    apart.set(parts[i].logits, slice(logits, i, parts.size()));
    apart.set(parts[i].labels, slice(labels, i, parts.size()));
  }
  apart.run();
  double mean = 0.0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    mean += apart.get(parts[i].loss)[0] / static_cast<double>(parts.size());
    const std::vector<double> want = slice(together.get(all.dlogits), i, parts.size()),
                              got = apart.get(parts[i].dlogits);
    for (std::size_t at = 0; at < got.size(); ++at)
      EXPECT_NEAR(got[at] / static_cast<double>(parts.size()), want[at], 1e-6) << i << " " << at;
  }
  EXPECT_NEAR(mean, together.get(all.loss)[0], 1e-6);
}

TEST(WeighLosses, PartsOnRanksMakeUpTheMeanOfTheBatch) {
  Program p(Mesh::line(3));
  std::vector<Part> parts;
  for (int rank = 0; rank < 3; ++rank) parts.push_back(add_part(p, 4, rank, 3, ""));
  // Three, one and no labels that count.
  expect_those_of_the_batch(weigh_losses(p, f32_math, DType::f32), parts,
                            {0, 2, ignored, 1, ignored, ignored, ignored, 2, ignored, ignored, ignored, ignored});
}

TEST(WeighLosses, SoDoMicroBatchesOfOneRankAndOfTwo) {
  for (const int ranks : {1, 2}) {
    Program p = ranks == 1 ? Program() : Program(Mesh::line(ranks));
    std::vector<Part> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      TensorSpec batch = tensor(name_on_rank("labels", rank, ranks), DType::i32, {6}, Role::input);
      batch.placement = ranks == 1 ? Placement{} : Placement::shard(0, rank, ranks);
      const ValueId labels = p.add(std::move(batch));
      for (int micro = 0; micro < 3; ++micro) {
        const std::string name = "micro" + std::to_string(micro) + ".";
        TensorSpec part = tensor(name_on_rank(name + "labels", rank, ranks), DType::i32, {2}, Role::input);
        part.placement = Placement::on(rank, ranks);
        parts.push_back(add_part(p, 2, rank, ranks, name, p.part(labels, std::move(part), 2 * micro)));
      }
    }
    std::vector<double> labels{0, 2, ignored, 1, ignored, ignored};
    if (ranks == 2) labels.insert(labels.end(), {ignored, ignored, ignored, ignored, ignored, 2});
    const Program weighed = weigh_losses(p, f32_math, DType::f32);
    expect_those_of_the_batch(weighed, parts, labels);
    EXPECT_EQ(weighed.op(0).kind, count_labels_kind);
  }
}

// Two ranks with the same labels, as in tensor parallelism, have one part.
TEST(WeighLosses, LeavesABatchInOnePartAlone) {
  Program p(Mesh({{"tp", 2}}));
  for (int rank = 0; rank < 2; ++rank) {
    const auto add = [&](const char* what, DType type, const Shape& shape) {
      TensorSpec spec = tensor(name_on_rank(what, rank, 2), type, shape, Role::input);
      spec.placement = Placement::on(rank, 2);
      return p.add(std::move(spec));
    };
    (void)cross_entropy_forward(p, f32_math, name_on_rank("loss", rank, 2), add("logits", DType::f32, {4, classes}),
                                add("labels", DType::i32, {4}), {.ignores = true});
  }
  EXPECT_EQ(weigh_losses(p, f32_math, DType::f32).ops().size(), 2U);
}

TEST(WeighLosses, LeavesLossesOfAllRowsAlone) {
  Program p(Mesh::line(2));
  for (int rank = 0; rank < 2; ++rank) {
    const auto add = [&](const char* what, DType type, const Shape& shape) {
      TensorSpec spec = tensor(name_on_rank(what, rank, 2), type, shape, Role::input);
      spec.placement = Placement::shard(0, rank, 2);
      return p.add(std::move(spec));
    };
    (void)cross_entropy_forward(p, f32_math, name_on_rank("loss", rank, 2), add("logits", DType::f32, {4, classes}),
                                add("labels", DType::i32, {4}));
  }
  EXPECT_EQ(weigh_losses(p, f32_math, DType::f32).ops().size(), 2U);
}

TEST(CountLabels, CountsThoseThatAreNotIgnored) {
  Program p;
  const ValueId labels = source(p, "labels", DType::i32, {5});
  const ValueId all = count_labels(p, {.ignore_index = 7}, f32_math, "all", labels);
  const ValueId each = count_labels(p, {.ignore_index = 7, .parts = 4}, f32_math, "each", labels);
  TextbookRun run(p);
  run.set(labels, {1, 7, 0, 7, -100});
  run.run();
  EXPECT_EQ(run.get(all), (std::vector<double>{3}));
  EXPECT_EQ(run.get(each), (std::vector<double>{0.75}));
}

TEST(CountLabels, RefusesWhatAreNoLabelsAndNoParts) {
  Program p;
  const ValueId labels = source(p, "labels", DType::i32, {5}), numbers = source(p, "numbers", DType::f32, {2});
  EXPECT_THROW((void)count_labels(p, {}, f32_math, "y", numbers), ProgramError);
  EXPECT_THROW((void)count_labels(p, {.parts = 0}, f32_math, "y", labels), ProgramError);
}

TEST(WeighLosses, RefusesLabelsThatAreNotPartsOfOneSource) {
  Program p;
  (void)add_part(p, 2, 0, 1, "first.");
  (void)add_part(p, 2, 0, 1, "second.");
  EXPECT_THROW((void)weigh_losses(p, f32_math, DType::f32), ProgramError);
}

// Two equal classes, so each row loses ln 2; two rows count, and the count given is four.
TEST(CrossEntropyOfAGivenCount, DividesByItInsteadOfItsOwnRows) {
  Program p;
  const ValueId logits = source(p, "logits", DType::f32, {3, 2}), labels = source(p, "labels", DType::i32, {3}),
                count = source(p, "count", DType::f32, {1});
  const CrossEntropy masked{.ignores = true};
  const CrossEntropyForwardBackward made =
      cross_entropy_forward_backward(p, f32_math, "y", logits, labels, false, masked, {}, count);
  TextbookRun run(p);
  run.set(logits, {0, 0, 0, 0, 0, 0});
  run.set(labels, {0, ignored, 1});
  run.set(count, {4});
  run.run();
  EXPECT_NEAR(run.get(made.loss)[0], std::log(2.0) / 2.0, 1e-7);
  EXPECT_EQ(run.get(made.dlogits), (std::vector<double>{-0.125, 0.125, 0, 0, 0.125, -0.125}));
  EXPECT_THROW((void)cross_entropy_forward(p, f32_math, "z", logits, labels, {}, count), ProgramError);
}

}  // namespace weigh_losses_test
}  // namespace gpubench::testing
