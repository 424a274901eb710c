#include "reference/cpu/collective_work.h"

#include <algorithm>
#include <cstring>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/stream_store.h"
#include "reference/cpu/vector_clones.h"

namespace gpubench::cpu {
namespace {

/// Large enough to be worth a thread, and whole cache lines of every type.
constexpr std::int64_t copy_grain_bytes = 64 << 10;
constexpr std::int64_t reduce_grain = 16 << 10;

bool reduces(OpKind kind) { return kind == all_reduce_kind || kind == reduce_scatter_kind; }

std::int64_t element_bytes(const Tensor& tensor) { return static_cast<std::int64_t>(size_of(tensor.spec.dtype)); }

/// The tensors of a bound collective.
struct Operands {
  std::span<const Tensor> x, y;
  int ranks;
};

// Rank r adds up the r-th part of every tensor and hands it to all: each byte is read and written once per rank.
void all_reduce_work(const OpCall& call, const Operands& o, std::vector<RankWork>& work) {
  const std::size_t tensors = o.x.size() / static_cast<std::size_t>(o.ranks);
  for (std::size_t t = 0; t < tensors; ++t) {
    const std::int64_t elements = o.x[t].spec.shape.elements();
    const std::int64_t size = element_bytes(o.x[t]);
    for (int rank = 0; rank < o.ranks; ++rank) {
      const Chunk part = chunk_of(elements, 64 / size, o.ranks, rank);  // at cache lines: no two ranks write one
      if (part.begin == part.end) continue;
      ReduceTask task{o.x[t].spec.dtype, call.attributes.as<AllReduce>().reduction, {}, {}, part.end - part.begin};
      for (int peer = 0; peer < o.ranks; ++peer) {
        const std::size_t index = static_cast<std::size_t>(peer) * tensors + t;
        task.from.push_back(o.x[index].data + part.begin * size);
        task.to.push_back(o.y[index].data + part.begin * size);
      }
      work[static_cast<std::size_t>(rank)].reductions.push_back(std::move(task));
    }
  }
}

void reduce_scatter_work(const OpCall& call, const Operands& o, std::vector<RankWork>& work) {
  const std::int64_t part = o.y[0].spec.shape.elements();
  for (int rank = 0; rank < o.ranks; ++rank) {
    const Tensor& y = o.y[static_cast<std::size_t>(rank)];
    ReduceTask task{y.spec.dtype, call.attributes.as<ReduceScatter>().reduction, {}, {y.data}, part};
    for (const Tensor& x : o.x) task.from.push_back(x.data + rank * part * element_bytes(x));
    work[static_cast<std::size_t>(rank)].reductions.push_back(std::move(task));
  }
}

void add_copy(RankWork& work, const std::byte* from, std::byte* to, std::int64_t bytes) {
  if (bytes > 0 && from != to) work.copies.push_back({from, to, bytes});
}

void all_gather_work(const Operands& o, std::vector<RankWork>& work) {
  const std::int64_t part = o.x[0].spec.bytes();
  for (int rank = 0; rank < o.ranks; ++rank) {
    for (int step = 0; step < o.ranks; ++step) {  // each begins with another peer, so that not all read the same one
      const int peer = (rank + step) % o.ranks;
      add_copy(work[static_cast<std::size_t>(rank)], o.x[static_cast<std::size_t>(peer)].data,
               o.y[static_cast<std::size_t>(rank)].data + peer * part, part);
    }
  }
}

void broadcast_work(const Operands& o, std::vector<RankWork>& work) {
  for (int rank = 0; rank < o.ranks; ++rank)
    add_copy(work[static_cast<std::size_t>(rank)], o.x[0].data, o.y[static_cast<std::size_t>(rank)].data,
             o.x[0].spec.bytes());
}

void all_to_all_work(const OpCall& call, const Operands& o, std::vector<RankWork>& work) {
  const auto& attributes = call.attributes.as<AllToAll>();
  const std::int64_t size = element_bytes(o.x[0]);
  for (int rank = 0; rank < o.ranks; ++rank) {
    std::int64_t to = 0;
    for (int peer = 0; peer < o.ranks; ++peer) {
      std::int64_t from = 0;
      for (int before = 0; before < rank; ++before) from += attributes.count(peer, before);
      const std::int64_t count = attributes.count(peer, rank);
      add_copy(work[static_cast<std::size_t>(rank)], o.x[static_cast<std::size_t>(peer)].data + from * size,
               o.y[static_cast<std::size_t>(rank)].data + to * size, count * size);
      to += count;
    }
  }
}

void send_recv_work(const OpCall& call, const Operands& o, std::vector<RankWork>& work) {
  const int shift = call.attributes.as<SendRecv>().shift;
  for (int rank = 0; rank < o.ranks; ++rank) {
    const int sender = ((rank - shift) % o.ranks + o.ranks) % o.ranks;
    const Tensor& x = o.x[static_cast<std::size_t>(sender)];
    add_copy(work[static_cast<std::size_t>(rank)], x.data, o.y[static_cast<std::size_t>(rank)].data, x.spec.bytes());
  }
}

GPUBENCH_VECTOR_CLONES
void add_run(const float* x, std::int64_t count, float* sum) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

GPUBENCH_VECTOR_CLONES
void maximum_run(const float* x, std::int64_t count, float* largest) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) largest[i] = x[i] <= largest[i] ? largest[i] : x[i];  // NaN comes through
}

GPUBENCH_VECTOR_CLONES
void divide_run(float divisor, std::int64_t count, float* values) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) values[i] /= divisor;
}

// One block of at most block_elements: adds up in f32 and rounds once, to every target the same bits.
void reduce_block(const ReduceTask& task, std::int64_t first, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(size_of(task.type));
  BlockBuffer sum;
  BlockBuffer widened;
  const auto read = [&](std::size_t peer, float* to) {
    const std::byte* from = task.from[peer] + first * size;
    if (task.type == DType::bf16) {
      widen_run(reinterpret_cast<const bf16*>(from), count, to);
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(count * size));
    }
  };
  read(0, sum.values.data());
  for (std::size_t peer = 1; peer < task.from.size(); ++peer) {
    const float* x = reinterpret_cast<const float*>(task.from[peer] + first * size);
    if (task.type == DType::bf16) {
      read(peer, widened.values.data());
      x = widened.values.data();
    }
    (task.reduction == Reduction::maximum ? maximum_run : add_run)(x, count, sum.values.data());
  }
  if (task.reduction == Reduction::average) divide_run(static_cast<float>(task.from.size()), count, sum.values.data());
  alignas(64) bf16 narrowed[block_elements];
  const auto* result = reinterpret_cast<const std::byte*>(sum.values.data());
  if (task.type == DType::bf16) {
    narrow_run(sum.values.data(), count, narrowed);
    result = reinterpret_cast<const std::byte*>(narrowed);
  }
  for (std::byte* target : task.to) {
    if (task.streaming) {
      stream_store(target + first * size, result, static_cast<std::size_t>(count * size));
    } else {
      std::memcpy(target + first * size, result, static_cast<std::size_t>(count * size));
    }
  }
}

void run_reduction(const ReduceTask& task, int threads) {
  parallel_chunks(threads, task.count, reduce_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += block_elements)
      reduce_block(task, first, std::min<std::int64_t>(block_elements, end - first));
    stream_fence();
  });
}

void run_copy(const CopyTask& task, int threads) {
  parallel_chunks(threads, task.bytes, copy_grain_bytes, [&](std::int64_t begin, std::int64_t end) {
    if (task.streaming) {
      stream_store(task.to + begin, task.from + begin, static_cast<std::size_t>(end - begin));
      stream_fence();
    } else {
      std::memcpy(task.to + begin, task.from + begin, static_cast<std::size_t>(end - begin));
    }
  });
}

}  // namespace

void expect_supported(const OpCall& call, std::span<const TensorSpec> tensors) {
  if (!is_collective(call.kind)) refuse(call, "its tensors lie on several ranks; expected one rank, or a collective");
  for (const TensorSpec& tensor : tensors) {
    expect_row_major(call, tensor);
    if (reduces(call.kind) && tensor.dtype != DType::f32 && tensor.dtype != DType::bf16)
      refuse(call, "reductions of " + std::string(name(tensor.dtype)) + "; this backend has f32 and bf16");
  }
}

std::vector<RankWork> work_of(const OpCall& call, std::span<const Tensor> tensors) {
  const std::size_t inputs = call.inputs.size();
  const Operands o{tensors.first(inputs), tensors.subspan(inputs), ranks_of(call)};
  std::vector<RankWork> work(static_cast<std::size_t>(o.ranks));
  if (call.kind == all_reduce_kind) all_reduce_work(call, o, work);
  if (call.kind == reduce_scatter_kind) reduce_scatter_work(call, o, work);
  if (call.kind == all_gather_kind) all_gather_work(o, work);
  if (call.kind == broadcast_kind) broadcast_work(o, work);
  if (call.kind == all_to_all_kind) all_to_all_work(call, o, work);
  if (call.kind == send_recv_kind) send_recv_work(call, o, work);
  std::int64_t written = 0;
  for (const Tensor& y : o.y) written += y.spec.bytes();
  const bool streaming = worth_streaming(written);
  for (RankWork& of_rank : work) {
    for (CopyTask& task : of_rank.copies) task.streaming = streaming;
    for (ReduceTask& task : of_rank.reductions) task.streaming = streaming;
  }
  return work;
}

void run_work(const RankWork& work, int threads) {
  for (const ReduceTask& task : work.reductions) run_reduction(task, threads);
  for (const CopyTask& task : work.copies) run_copy(task, threads);
}

}  // namespace gpubench::cpu
