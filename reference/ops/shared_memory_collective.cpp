#include "reference/ops/collective.h"

#include <algorithm>
#include <cstring>

#include "reference/ops/token_exchange.h"

namespace gpubench {
namespace {

constexpr std::int64_t line_bytes = 64;  // no two ranks write to the same line

std::int64_t element_bytes(const Tensor& tensor) { return static_cast<std::int64_t>(size_of(tensor.spec.dtype)); }

std::int64_t part_begin(std::int64_t total, std::int64_t grain, int parts, int index) {
  const std::int64_t grains = (total + grain - 1) / grain;
  return std::min(grains * index / parts * grain, total);
}

struct Operands {
  std::span<const Tensor> x, y;
  int ranks;
};

// Rank r reduces the r-th part of every tensor and writes it to all: each byte is read and written once per rank.
void all_reduce_tasks(const OpCall& call, const Operands& o, std::vector<RankTasks>& tasks) {
  const std::size_t tensors = o.x.size() / static_cast<std::size_t>(o.ranks);
  for (std::size_t t = 0; t < tensors; ++t) {
    const std::int64_t elements = o.x[t].spec.shape.elements();
    const std::int64_t size = element_bytes(o.x[t]);
    for (int rank = 0; rank < o.ranks; ++rank) {
      const std::int64_t begin = part_begin(elements, line_bytes / size, o.ranks, rank);
      const std::int64_t end = part_begin(elements, line_bytes / size, o.ranks, rank + 1);
      if (begin == end) continue;
      ReduceTask task{o.x[t].spec.dtype, call.attributes.as<AllReduce>().reduction, {}, {}, end - begin};
      for (int peer = 0; peer < o.ranks; ++peer) {
        const std::size_t index = static_cast<std::size_t>(peer) * tensors + t;
        task.from.push_back(o.x[index].data + begin * size);
        task.to.push_back(o.y[index].data + begin * size);
      }
      tasks[static_cast<std::size_t>(rank)].reductions.push_back(std::move(task));
    }
  }
}

void reduce_scatter_tasks(const OpCall& call, const Operands& o, std::vector<RankTasks>& tasks) {
  const std::int64_t part = o.y[0].spec.shape.elements();
  for (int rank = 0; rank < o.ranks; ++rank) {
    const Tensor& y = o.y[static_cast<std::size_t>(rank)];
    ReduceTask task{y.spec.dtype, call.attributes.as<ReduceScatter>().reduction, {}, {y.data}, part};
    for (const Tensor& x : o.x) task.from.push_back(x.data + rank * part * element_bytes(x));
    tasks[static_cast<std::size_t>(rank)].reductions.push_back(std::move(task));
  }
}

void add_copy(RankTasks& tasks, const std::byte* from, std::byte* to, std::int64_t bytes) {
  if (bytes > 0 && from != to) tasks.copies.push_back({from, to, bytes});
}

void all_gather_tasks(const Operands& o, std::vector<RankTasks>& tasks) {
  const std::int64_t part = o.x[0].spec.bytes();
  for (int rank = 0; rank < o.ranks; ++rank) {
    for (int step = 0; step < o.ranks;
         ++step) {  // ranks start with different peers, so that not all read from the same one
      const int peer = (rank + step) % o.ranks;
      add_copy(tasks[static_cast<std::size_t>(rank)], o.x[static_cast<std::size_t>(peer)].data,
               o.y[static_cast<std::size_t>(rank)].data + peer * part, part);
    }
  }
}

void broadcast_tasks(const Operands& o, std::vector<RankTasks>& tasks) {
  for (int rank = 0; rank < o.ranks; ++rank)
    add_copy(tasks[static_cast<std::size_t>(rank)], o.x[0].data, o.y[static_cast<std::size_t>(rank)].data,
             o.x[0].spec.bytes());
}

void all_to_all_tasks(const OpCall& call, const Operands& o, std::vector<RankTasks>& tasks) {
  const auto& attributes = call.attributes.as<AllToAll>();
  const std::int64_t size = element_bytes(o.x[0]);
  for (int rank = 0; rank < o.ranks; ++rank) {
    std::int64_t to = 0;
    for (int peer = 0; peer < o.ranks; ++peer) {
      std::int64_t from = 0;
      for (int before = 0; before < rank; ++before) from += attributes.count(peer, before);
      const std::int64_t count = attributes.count(peer, rank);
      add_copy(tasks[static_cast<std::size_t>(rank)], o.x[static_cast<std::size_t>(peer)].data + from * size,
               o.y[static_cast<std::size_t>(rank)].data + to * size, count * size);
      to += count;
    }
  }
}

void send_recv_tasks(const OpCall& call, const Operands& o, std::vector<RankTasks>& tasks) {
  for (int rank = 0; rank < o.ranks; ++rank) {
    const Tensor& x = o.x[static_cast<std::size_t>(call.attributes.as<SendRecv>().sender(rank))];
    add_copy(tasks[static_cast<std::size_t>(rank)], x.data, o.y[static_cast<std::size_t>(rank)].data, x.spec.bytes());
  }
}

}  // namespace

std::vector<RankTasks> tasks_of(const OpCall& call, std::span<const Tensor> tensors) {
  const std::size_t inputs = call.inputs.size();
  const Operands o{tensors.first(inputs), tensors.subspan(inputs), ranks_of(call)};
  std::vector<RankTasks> tasks(static_cast<std::size_t>(o.ranks));
  if (call.kind == all_reduce_kind) all_reduce_tasks(call, o, tasks);
  if (call.kind == reduce_scatter_kind) reduce_scatter_tasks(call, o, tasks);
  if (call.kind == all_gather_kind) all_gather_tasks(o, tasks);
  if (call.kind == broadcast_kind) broadcast_tasks(o, tasks);
  if (call.kind == all_to_all_kind) all_to_all_tasks(call, o, tasks);
  if (call.kind == send_recv_kind) send_recv_tasks(call, o, tasks);
  return tasks;
}

ExchangeTasks exchange_tasks(const OpCall& call, std::span<const Tensor> tensors, int member) {
  const int ranks = ranks_of(call);
  const std::span<const Tensor> inputs = tensors.first(call.inputs.size());
  const ExchangeOperands own = exchange_operands(call, inputs, tensors.subspan(call.inputs.size()), member);
  std::vector<std::int32_t> sizes;
  for (std::size_t input = 1; input < inputs.size(); input += 2) {
    const auto* const first = reinterpret_cast<const std::int32_t*>(inputs[input].data);
    sizes.insert(sizes.end(), first, first + inputs[input].spec.shape[0]);
  }
  const TokenRoutes routes(sizes, ranks, own.own_rows);
  ExchangeTasks tasks;
  for (const RowRun& run : own.dispatches ? routes.received(member) : routes.sent(member)) {
    const std::int64_t from = own.dispatches ? run.own : run.there, to = own.dispatches ? run.there : run.own;
    tasks.copies.push_back({inputs[2 * static_cast<std::size_t>(run.member)].data + from * own.row_bytes,
                            own.result.data + to * own.row_bytes, run.rows * own.row_bytes});
  }
  tasks.cleared = {own.result.data + routes.result_rows(own.dispatches, member) * own.row_bytes,
                   own.result.data + own.result.spec.bytes()};
  if (own.dispatches) {
    const std::vector<std::int32_t> of_experts = routes.own_sizes(member);
    std::memcpy(own.own_sizes.data, of_experts.data(), of_experts.size() * sizeof of_experts[0]);
  }
  return tasks;
}

}  // namespace gpubench
