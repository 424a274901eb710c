// Attention to two sets of keys, joined: a thread works on the heads of one token, whose weights are computed in f64.
#include "reference/cpu/kernel.h"

#include <algorithm>
#include <cmath>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/attention.h"

namespace gpubench::cpu {
namespace {

struct Merge {
  int threads = 1;
  std::int64_t batches = 1, tokens = 1, heads = 1, width = 1;
  Source o1, o2;
  Sink o;
  const float *lse1 = nullptr, *lse2 = nullptr;  ///< [batches, heads, tokens], as lse
  float* lse = nullptr;

  void operator()() const {
    parallel_chunks(threads, batches * tokens, row_grain(heads * width), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t token = begin; token < end; ++token) {
        for (std::int64_t head = 0; head < heads; ++head) run_head(token, head);
      }
      stream_fence();
    });
  }

  void run_head(std::int64_t token, std::int64_t head) const {
    const std::int64_t row = (token / tokens * heads + head) * tokens + token % tokens;
    const auto first = static_cast<double>(lse1[row]), second = static_cast<double>(lse2[row]);
    const double all = std::max(first, second) + std::log1p(std::exp(-std::fabs(first - second)));
    lse[row] = static_cast<float>(all);
    const auto of_first = static_cast<float>(std::exp(first - all)),
               of_second = static_cast<float>(std::exp(second - all));
    BlockBuffer a, b, y;
    for (std::int64_t i = 0; i < width; i += block_elements) {
      const std::int64_t size = std::min(block_elements, width - i), at = (token * heads + head) * width + i;
      float* block = o.place(at, y);
      runs().blend(o1.read(at, size, a), of_first, o2.read(at, size, b), of_second, size, block);
      o.commit(at, size, block);
    }
  }
};

}  // namespace

Plan plan_attention_merge(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"o1", "o2", "o"});
  expect_type(call, operand, {"lse1", "lse2", "lse"}, DType::f32);
  expect_row_major(call, operand, {"o1", "lse1", "o2", "lse2", "o", "lse"});
  const Shape& shape = operand["o"].shape;
  Merge work;
  work.threads = context.threads;
  work.batches = shape[0];
  work.tokens = shape[1];
  work.heads = shape[2];
  work.width = shape[3];
  return own_plan(call, work,
                  {{"o1", to<&Merge::o1>},
                   {"lse1", to<&Merge::lse1>},
                   {"o2", to<&Merge::o2>},
                   {"lse2", to<&Merge::lse2>},
                   {"o", to<&Merge::o>},
                   {"lse", to<&Merge::lse>}});
}

}  // namespace gpubench::cpu
