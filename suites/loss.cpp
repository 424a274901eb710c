#include "reference/ops/cross_entropy.h"

#include "reference/ops/transform/differentiate.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

// Rows are tokens, n is the vocabulary.
Grid language_models() {
  return grid_of({row_point(16, 50257, "gpt2-124m, 16 tokens", Tier::smoke, {"f32"}),
                  row_point(128, 50257, "gpt2-124m, 128 tokens", Tier::quick),
                  row_point(48, 128256, "llama3-8b, 48 tokens", Tier::quick),
                  row_point(8192, 50257, "gpt2-124m", Tier::standard),
                  row_point(8192, 50304, "gpt2-124m, padded vocabulary", Tier::standard),
                  row_point(4096, 128256, "llama3-8b, half a sequence", Tier::standard),
                  row_point(8192, 128256, "llama3-8b", Tier::large)});
}
// Devlin et al., arXiv 1810.04805: 15% of the tokens are predicted.
Grid bert_head() {
  return grid_of({row_point(32, 30522, "bert-base, 32 tokens", Tier::smoke, {"f32"}),
                  row_point(256, 30522, "bert-base, half a sequence", Tier::quick),
                  row_point(8192, 30522, "bert-base, 16 sequences", Tier::standard),
                  row_point(65536, 30522, "bert-base, 128 sequences", Tier::large)});
}
Grid resnet_head() {
  return grid_of({row_point(64, 1000, "resnet50, 64 images", Tier::smoke, {"f32"}),
                  row_point(256, 1000, "resnet50, 256 images", Tier::quick),
                  row_point(3456, 1000, "resnet50, mlperf's batch on 8 gpus", Tier::standard)});
}
// Chowdhery et al., arXiv 2204.02311.
Grid palm_head() {
  return grid_of({row_point(8, 256000, "palm-540b, 8 tokens", Tier::smoke, {"f32"}),
                  row_point(24, 256000, "palm-540b, 24 tokens", Tier::quick),
                  row_point(2048, 256000, "palm-540b, a sequence", Tier::standard)});
}

constexpr CrossEntropy plain{};
constexpr CrossEntropy masked{.ignores = true};
constexpr CrossEntropy smoothed{.label_smoothing = 0.1};
constexpr CrossEntropy with_z_loss{.z_loss = 1e-4};

template <const CrossEntropy& terms>
Forward loss_of(Program& p, const Case& c, const Recipe& r) {
  const std::int64_t rows = c.dim("rows"), classes = c.dim("n");
  const ValueId logits = p.add(tensor("logits", r.tensor, {rows, classes}, Role::activation, Fill::normal(2.0)));
  const Fill labels = terms.ignores ? Fill::masked(0, classes - 1, terms.ignore_index) : Fill::integers(0, classes - 1);
  const ValueId label = p.add(tensor("labels", DType::i32, {rows}, Role::input, labels));
  return {cross_entropy_forward(p, r.math, "loss", logits, label, terms).loss, {logits}};
}

// The loss seeds its own gradient, as in a training step without loss scaling.
Program both(const Case& c, const Recipe& r) {
  Program p;
  const Forward loss = loss_of<plain>(p, c, r);
  (void)differentiate(p, std::vector<Seed>{{loss.y, {}}}, loss.wanted);
  return p;
}

}  // namespace

Suite loss() {
  return {
      "loss",
      "cross-entropy, forward and backward",
      {
          declare_rows("cross_entropy_forward", "mean of -log p of the labels, and log-sum-exp", language_models(),
                       forward<loss_of<plain>>),
          declare_rows("cross_entropy_backward", "dlogits, of a scaled loss", language_models(),
                       backward<loss_of<plain>>),
          declare_rows("cross_entropy_forward_backward", "loss and dlogits, in one op if the backend has it",
                       language_models(), both),
          declare_rows("masked_forward", "labels of -100 are ignored", bert_head(), forward<loss_of<masked>>),
          declare_rows("masked_backward", "its dlogits", bert_head(), backward<loss_of<masked>>),
          declare_rows("smoothed_forward", "labels smoothed by 0.1", resnet_head(), forward<loss_of<smoothed>>),
          declare_rows("smoothed_backward", "its dlogits", resnet_head(), backward<loss_of<smoothed>>),
          declare_rows("z_loss_forward", "cross-entropy plus 1e-4 lse^2", palm_head(), forward<loss_of<with_z_loss>>),
          declare_rows("z_loss_backward", "its dlogits", palm_head(), backward<loss_of<with_z_loss>>),
      }};
}

}  // namespace gpubench::suites
