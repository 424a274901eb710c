// Collectives by MPI's own calls where they exist. MPI lacks bf16: each rank sums its part of all inputs, or, if they
// are small, all of them.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "reference/mpi/mpi_processes.h"
#include "reference/ops/collective.h"
#include "reference/ops/token_exchange.h"

namespace gpubench::mpi {
namespace {

constexpr std::int64_t small_bytes = 64 << 10;  // of all ranks: copying takes less than two messages' latency

/// MPI's counts are int; `implementation` refuses larger ones.
int as_count(std::int64_t count) { return static_cast<int>(count); }

void larger_f32(void* from, void* largest, int* count, MPI_Datatype*) {
  keep_larger(static_cast<const float*>(from), static_cast<float*>(largest), *count);
}

/// Maximum of f32 that keeps NaN, as MPI_MAX need not.
class MaximumOp {
 public:
  MaximumOp() { check(MPI_Op_create(larger_f32, 1, &op_), "creating an operation"); }
  MaximumOp(const MaximumOp&) = delete;
  MaximumOp& operator=(const MaximumOp&) = delete;
  ~MaximumOp() { (void)MPI_Op_free(&op_); }
  [[nodiscard]] MPI_Op get() const { return op_; }

 private:
  MPI_Op op_ = MPI_OP_NULL;
};

struct MpiLaunch final : LaunchImpl {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<std::function<void()>> steps;
};

/// Waits for the other members without occupying the core. MPI's busy wait would take half of a core's time from other
/// ops; after this barrier it lasts only as long as the collective.
void meet(MPI_Comm comm) {
  MPI_Request barrier = MPI_REQUEST_NULL;
  run_check(MPI_Ibarrier(comm, &barrier), "MPI_Ibarrier");
  for (int done = 0; done == 0;) {
    run_check(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) std::this_thread::yield();
  }
}

/// Start of a member's part of `count` elements, at whole cache lines of bf16.
std::int64_t part_begin(std::int64_t count, int members, int member) {
  constexpr std::int64_t line = 32;
  const std::int64_t lines = (count + line - 1) / line;
  return std::min(lines * member / members * line, count);
}

/// A group as seen by one member.
struct Group {
  MPI_Comm comm = MPI_COMM_NULL;
  int members = 1;
  int member = 0;
};

/// Counts and offsets per member, for MPI's v-collectives.
struct Parts {
  std::vector<int> counts, offsets;
  void add(std::int64_t count, std::int64_t offset) {
    counts.push_back(as_count(count));
    offsets.push_back(as_count(offset));
  }
};

std::function<void()> all_reduce_f32(const Group& group, Reduction reduction, const Tensor& x, const Tensor& y,
                                     MPI_Op larger) {
  const int count = as_count(x.spec.shape.elements());
  const void* from = x.data == y.data ? MPI_IN_PLACE : x.data;
  return [=, to = reinterpret_cast<float*>(y.data), op = reduction == Reduction::maximum ? larger : MPI_SUM] {
    run_check(MPI_Allreduce(from, to, count, MPI_FLOAT, op, group.comm), "MPI_Allreduce");
    if (reduction == Reduction::average) divide(to, count, static_cast<float>(group.members));
  };
}

// Small inputs are sent to all ranks, and each sums all of them.
std::function<void()> small_all_reduce_bf16(const Group& group, Reduction reduction, const Tensor& x, const Tensor& y) {
  const std::int64_t count = x.spec.shape.elements(), bytes = x.spec.bytes();
  auto all = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes * group.members));
  std::vector<const std::byte*> from;
  for (int member = 0; member < group.members; ++member) from.push_back(all->data() + member * bytes);
  return [=, own = x.data, to = y.data] {
    run_check(MPI_Allgather(own, as_count(bytes), MPI_BYTE, all->data(), as_count(bytes), MPI_BYTE, group.comm),
              "MPI_Allgather");
    reduce(DType::bf16, reduction, from, to, count);
  };
}

std::function<void()> all_reduce_bf16(const Group& group, Reduction reduction, const Tensor& x, const Tensor& y) {
  const std::int64_t count = x.spec.shape.elements();
  if (x.spec.bytes() * group.members <= small_bytes) return small_all_reduce_bf16(group, reduction, x, y);
  constexpr std::int64_t size = 2;
  const std::int64_t begin = part_begin(count, group.members, group.member);
  const std::int64_t own = part_begin(count, group.members, group.member + 1) - begin;
  Parts parts, received;
  auto all = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(own * size * group.members));
  std::vector<const std::byte*> from;
  for (int member = 0; member < group.members; ++member) {
    const std::int64_t first = part_begin(count, group.members, member);
    parts.add((part_begin(count, group.members, member + 1) - first) * size, first * size);
    received.add(own * size, member * own * size);
    from.push_back(all->data() + member * own * size);
  }
  return [=, data = x.data, to = y.data] {
    run_check(MPI_Alltoallv(data, parts.counts.data(), parts.offsets.data(), MPI_BYTE, all->data(),
                            received.counts.data(), received.offsets.data(), MPI_BYTE, group.comm),
              "MPI_Alltoallv");
    reduce(DType::bf16, reduction, from, to + begin * size, own);
    run_check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, parts.counts.data(), parts.offsets.data(),
                             MPI_BYTE, group.comm),
              "MPI_Allgatherv");
  };
}

// MPI's in-place result would overwrite the beginning of the input instead of the rank's part.
std::function<void()> reduce_scatter_f32(const Group& group, Reduction reduction, const Tensor& x, const Tensor& y,
                                         MPI_Op larger) {
  const int part = as_count(y.spec.shape.elements());
  const bool in_place = y.data >= x.data && y.data < x.data + x.spec.bytes();
  auto apart = std::make_shared<std::vector<float>>(in_place ? static_cast<std::size_t>(part) : 0);
  auto* const to = reinterpret_cast<float*>(y.data);
  return [=, from = x.data, op = reduction == Reduction::maximum ? larger : MPI_SUM] {
    float* const result = in_place ? apart->data() : to;
    run_check(MPI_Reduce_scatter_block(from, result, part, MPI_FLOAT, op, group.comm), "MPI_Reduce_scatter_block");
    if (in_place) std::memcpy(to, result, static_cast<std::size_t>(part) * sizeof(float));
    if (reduction == Reduction::average) divide(to, part, static_cast<float>(group.members));
  };
}

std::function<void()> reduce_scatter_bf16(const Group& group, Reduction reduction, const Tensor& x, const Tensor& y) {
  const std::int64_t bytes = y.spec.bytes();
  auto all = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes * group.members));
  std::vector<const std::byte*> from;
  for (int member = 0; member < group.members; ++member) from.push_back(all->data() + member * bytes);
  return [=, data = x.data, to = y.data, part = y.spec.shape.elements()] {
    run_check(MPI_Alltoall(data, as_count(bytes), MPI_BYTE, all->data(), as_count(bytes), MPI_BYTE, group.comm),
              "MPI_Alltoall");
    reduce(DType::bf16, reduction, from, to, part);
  };
}

std::function<void()> all_gather_of(const Group& group, const Tensor& x, const Tensor& y) {
  const std::int64_t bytes = x.spec.bytes();
  const bool in_place = x.data == y.data + group.member * bytes;
  return [=, from = in_place ? MPI_IN_PLACE : static_cast<const void*>(x.data), to = y.data] {
    run_check(MPI_Allgather(from, as_count(bytes), MPI_BYTE, to, as_count(bytes), MPI_BYTE, group.comm),
              "MPI_Allgather");
  };
}

std::function<void()> broadcast_of(const Group& group, int root, const std::byte* x, const Tensor& y) {
  return [=, to = y.data, bytes = y.spec.bytes()] {
    if (group.member == root && x != to) std::memcpy(to, x, static_cast<std::size_t>(bytes));
    run_check(MPI_Bcast(to, as_count(bytes), MPI_BYTE, root, group.comm), "MPI_Bcast");
  };
}

std::function<void()> all_to_all_of(const Group& group, const AllToAll& blocks, const Tensor& x, const Tensor& y) {
  const auto size = static_cast<std::int64_t>(size_of(x.spec.dtype));
  Parts sent, received;
  std::int64_t from = 0, to = 0;
  for (int peer = 0; peer < group.members; ++peer) {
    const std::int64_t there = blocks.count(group.member, peer) * size, back = blocks.count(peer, group.member) * size;
    sent.add(there, from);
    received.add(back, to);
    from += there;
    to += back;
  }
  if (blocks.is_even()) {
    return [=, data = x.data, result = y.data, bytes = sent.counts.front()] {
      run_check(MPI_Alltoall(data, bytes, MPI_BYTE, result, bytes, MPI_BYTE, group.comm), "MPI_Alltoall");
    };
  }
  return [=, data = x.data, result = y.data] {
    run_check(MPI_Alltoallv(data, sent.counts.data(), sent.offsets.data(), MPI_BYTE, result, received.counts.data(),
                            received.offsets.data(), MPI_BYTE, group.comm),
              "MPI_Alltoallv");
  };
}

std::function<void()> send_recv_of(const Group& group, const SendRecv& attributes, const Tensor& x, const Tensor& y) {
  return [=, to = attributes.receiver(group.member), from = attributes.sender(group.member),
          bytes = as_count(x.spec.bytes()), data = x.data, result = y.data] {
    run_check(
        MPI_Sendrecv(data, bytes, MPI_BYTE, to, 0, result, bytes, MPI_BYTE, from, 0, group.comm, MPI_STATUS_IGNORE),
        "MPI_Sendrecv");
  };
}

class MpiCollectives final : public RankCollectives {
 public:
  MpiCollectives(MPI_Comm world, int ranks, std::string library) : library_(std::move(library)) {
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank) members.push_back(rank);
    all_ = communicator_of(world, members, 0);
    check(MPI_Comm_rank(all_->get(), &rank_), "querying the rank");
  }

  [[nodiscard]] std::string implementation(const OpCall& call, std::span<const TensorSpec> tensors) override {
    if (!is_collective(call.kind))
      throw Unsupported(
          fmt::format("mpi: {} '{}': its tensors are on several ranks; expected one rank, or a collective",
                      call.kind.name, call.label));
    bool any_bf16 = false;
    std::int64_t largest = 0;
    for (const TensorSpec& tensor : tensors) {
      const auto refuse = [&](const std::string& why) {
        throw Unsupported(fmt::format("mpi: {} '{}': '{}': {}", call.kind.name, call.label, tensor.name, why));
      };
      if (!tensor.layout.is_row_major(tensor.shape)) refuse("it is not row-major; expected dense");
      if (reduces(call.kind) && tensor.dtype != DType::f32 && tensor.dtype != DType::bf16)
        refuse(fmt::format("reductions of {}; expected f32 or bf16", name(tensor.dtype)));
      largest = std::max(largest, tensor.bytes());
      if (largest > INT_MAX) refuse(fmt::format("{} bytes; expected at most {}, MPI's limit", largest, INT_MAX));
      any_bf16 = any_bf16 || tensor.dtype == DType::bf16;
    }
    return fmt::format("{}:{}", library_, function(call, any_bf16));
  }

  [[nodiscard]] Launch bind(const OpCall& call, std::span<const Tensor> tensors) override {
    const Group group = group_of(call.group);
    const std::span<const Tensor> inputs = tensors.first(call.inputs.size());
    const std::span<const Tensor> outputs = tensors.subspan(call.inputs.size());
    auto launch = std::make_shared<MpiLaunch>();
    launch->comm = group.comm;
    if (exchanges_tokens(call.kind)) {
      launch->steps.push_back(exchange_of(group.comm, group.member, call, tensors));
      return launch;
    }
    const bool has_input = call.kind != broadcast_kind || group.member == call.attributes.as<Broadcast>().root;
    const auto members = static_cast<std::size_t>(group.members);
    const std::size_t each = outputs.size() / members;  // an all_reduce may have several tensors
    if (outputs.size() != each * members || (call.kind != broadcast_kind && inputs.size() != outputs.size()))
      throw BackendError(
          fmt::format("mpi: {} '{}' has tensors of ranks outside its group", call.kind.name, call.label));
    for (std::size_t t = 0; t < each; ++t) {
      const std::size_t at = static_cast<std::size_t>(group.member) * each + t;
      const Tensor& y = outputs[at];
      const Tensor& x = call.kind == broadcast_kind ? inputs[0] : inputs[at];
      if (y.data == nullptr || (has_input && x.data == nullptr))
        throw BackendError(fmt::format("mpi: {} '{}': a tensor of rank {} is not in its process", call.kind.name,
                                       call.label, call.group[group.member]));
      launch->steps.push_back(step(call, group, x, y));
    }
    return launch;
  }

  void run(const Launch& launch, bool overlaps_compute) override {
    const auto& own = static_cast<const MpiLaunch&>(*launch);  // bind() returns no other type; short runs are timed
    if (overlaps_compute) meet(own.comm);
    for (const std::function<void()>& step : own.steps) step();
  }

  void align() override { run_check(MPI_Barrier(all_->get()), "MPI_Barrier"); }

 private:
  static std::string function(const OpCall& call, bool any_bf16) {
    if (call.kind == all_reduce_kind) return any_bf16 ? "alltoallv,allgatherv" : "allreduce";
    if (call.kind == reduce_scatter_kind) return any_bf16 ? "alltoall" : "reduce_scatter_block";
    if (call.kind == all_gather_kind) return "allgather";
    if (call.kind == broadcast_kind) return "bcast";
    if (call.kind == all_to_all_kind) return call.attributes.as<AllToAll>().is_even() ? "alltoall" : "alltoallv";
    if (exchanges_tokens(call.kind)) return "allgather,alltoallw";
    return "sendrecv";
  }

  [[nodiscard]] std::function<void()> step(const OpCall& call, const Group& group, const Tensor& x,
                                           const Tensor& y) const {
    const bool is_bf16 = y.spec.dtype == DType::bf16;
    if (call.kind == all_reduce_kind) {
      const Reduction reduction = call.attributes.as<AllReduce>().reduction;
      return is_bf16 ? all_reduce_bf16(group, reduction, x, y) : all_reduce_f32(group, reduction, x, y, larger_.get());
    }
    if (call.kind == reduce_scatter_kind) {
      const Reduction reduction = call.attributes.as<ReduceScatter>().reduction;
      return is_bf16 ? reduce_scatter_bf16(group, reduction, x, y)
                     : reduce_scatter_f32(group, reduction, x, y, larger_.get());
    }
    if (call.kind == all_gather_kind) return all_gather_of(group, x, y);
    if (call.kind == broadcast_kind) return broadcast_of(group, call.attributes.as<Broadcast>().root, x.data, y);
    if (call.kind == all_to_all_kind) return all_to_all_of(group, call.attributes.as<AllToAll>(), x, y);
    return send_recv_of(group, call.attributes.as<SendRecv>(), x, y);
  }

  /// Makes the group's communicator when its first collective is bound.
  [[nodiscard]] Group group_of(const RankGroup& members) {
    const std::vector<int> ranks(members.members().begin(), members.members().end());
    for (const int rank : ranks) {
      if (rank < 0 || rank >= size()) throw BackendError(fmt::format("mpi: no rank {} among {}", rank, size()));
    }
    std::unique_ptr<HeldComm>& comm = groups_[ranks];
    if (comm == nullptr) comm = communicator_of(all_->get(), ranks, 0);
    return {comm->get(), members.size(), members.position(rank_).value()};
  }
  [[nodiscard]] int size() const {
    int size = 0;
    check(MPI_Comm_size(all_->get(), &size), "querying the number of ranks");
    return size;
  }

  std::string library_;
  std::unique_ptr<HeldComm> all_;
  int rank_ = 0;
  MaximumOp larger_;
  std::map<std::vector<int>, std::unique_ptr<HeldComm>> groups_;
};

}  // namespace

std::unique_ptr<RankCollectives> open_collectives(MPI_Comm world, int ranks, std::string library) {
  return std::make_unique<MpiCollectives>(world, ranks, std::move(library));
}

}  // namespace gpubench::mpi
