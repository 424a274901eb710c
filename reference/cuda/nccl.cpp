#include "reference/cuda/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/runtime.h"
#include "reference/ops/collective.h"

namespace gpubench::cuda {
namespace {

constexpr const char* file_name = "libnccl.so.2";

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw Unsupported(fmt::format("{} has no function {}", file_name, name));
}

std::string text_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);  // format since 2.9
}

NcclCalls load() {
  void* library = ::dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* words = ::dlerror();
    throw Unsupported(
        fmt::format("several GPUs need NCCL, which cannot be loaded: {}; install it with the CUDA toolkit "
                    "or from NVIDIA's Python wheel",
                    words == nullptr ? "no reason given" : words));
  }
  NcclCalls calls;
  find(library, "ncclGetVersion", calls.get_version);
  find(library, "ncclGetErrorString", calls.get_error_string);
  find(library, "ncclGetLastError", calls.get_last_error);
  find(library, "ncclGetUniqueId", calls.get_unique_id);
  find(library, "ncclCommInitRankConfig", calls.comm_init_rank_config);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
  find(library, "ncclCommSplit", calls.comm_split);
#endif
  find(library, "ncclCommGetAsyncError", calls.comm_get_async_error);
  find(library, "ncclCommFinalize", calls.comm_finalize);
  find(library, "ncclCommDestroy", calls.comm_destroy);
  find(library, "ncclCommAbort", calls.comm_abort);
  find(library, "ncclGroupStart", calls.group_start);
  find(library, "ncclGroupEnd", calls.group_end);
  find(library, "ncclAllReduce", calls.all_reduce);
  find(library, "ncclAllGather", calls.all_gather);
  find(library, "ncclReduceScatter", calls.reduce_scatter);
  find(library, "ncclBroadcast", calls.broadcast);
  find(library, "ncclSend", calls.send);
  find(library, "ncclRecv", calls.recv);
  int version = 0;
  (void)calls.get_version(&version);
  // ncclConfig_t grows from version to version.
  if (version < NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, 0)) {
    throw Unsupported(fmt::format("{} is version {}; this build needs {}.{} or newer", file_name, text_of(version),
                                  NCCL_MAJOR, NCCL_MINOR));
  }
  return calls;
}

using Step = NcclStep;
using Steps = NcclSteps;
using Operands = NcclOperands;

std::size_t as_size(std::int64_t count) { return static_cast<std::size_t>(count); }

ncclRedOp_t op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return ncclSum;
    case Reduction::average: return ncclAvg;
    case Reduction::maximum: return ncclMax;
  }
  throw BackendError("cuda: unknown reduction");
}

Steps all_reduce_steps(const Operands& o, int rank) {
  Steps steps;
  const std::size_t each = o.x.size() / as_size(o.ranks);
  for (std::size_t i = as_size(rank) * each; i < as_size(rank + 1) * each; ++i) {
    steps.emplace_back([&nccl = o.nccl, x = o.x[i], y = o.y[i], type = nccl_reduced_type(o.call, o.x[i].spec),
                        op = op_of(o.call.attributes.as<AllReduce>().reduction)](ncclComm_t comm, cudaStream_t stream) {
      return nccl.all_reduce(x.data, y.data, as_size(x.spec.shape.elements()), type, op, comm, stream);
    });
  }
  return steps;
}

Steps reduce_scatter_steps(const Operands& o, int rank) {
  return {[&nccl = o.nccl, x = o.x[as_size(rank)], y = o.y[as_size(rank)],
           type = nccl_reduced_type(o.call, o.x[0].spec),
           op = op_of(o.call.attributes.as<ReduceScatter>().reduction)](ncclComm_t comm, cudaStream_t stream) {
    return nccl.reduce_scatter(x.data, y.data, as_size(y.spec.shape.elements()), type, op, comm, stream);
  }};
}

Steps all_gather_steps(const Operands& o, int rank) {
  return {[&nccl = o.nccl, x = o.x[as_size(rank)], y = o.y[as_size(rank)]](ncclComm_t comm, cudaStream_t stream) {
    return nccl.all_gather(x.data, y.data, as_size(x.spec.bytes()), ncclUint8, comm, stream);
  }};
}

Steps broadcast_steps(const Operands& o, int rank) {
  const int root = o.call.attributes.as<Broadcast>().root;
  const Tensor& y = o.y[as_size(rank)];
  const std::byte* x = rank == root ? o.x[0].data : y.data;  // read on the root only
  return {[&nccl = o.nccl, x, y, root](ncclComm_t comm, cudaStream_t stream) {
    return nccl.broadcast(x, y.data, as_size(y.spec.bytes()), ncclUint8, root, comm, stream);
  }};
}

Step send_step(const NcclCalls& nccl, const std::byte* from, std::int64_t bytes, int peer) {
  return [&nccl, from, bytes, peer](ncclComm_t comm, cudaStream_t stream) {
    return nccl.send(from, as_size(bytes), ncclUint8, peer, comm, stream);
  };
}
Step recv_step(const NcclCalls& nccl, std::byte* to, std::int64_t bytes, int peer) {
  return [&nccl, to, bytes, peer](ncclComm_t comm, cudaStream_t stream) {
    return nccl.recv(to, as_size(bytes), ncclUint8, peer, comm, stream);
  };
}

Steps all_to_all_steps(const Operands& o, int rank) {
  const auto& attributes = o.call.attributes.as<AllToAll>();
  const auto element = static_cast<std::int64_t>(size_of(o.x[0].spec.dtype));
  const std::byte* from = o.x[as_size(rank)].data;
  std::byte* to = o.y[as_size(rank)].data;
  Steps steps;
  for (int peer = 0; peer < o.ranks; ++peer) {
    const std::int64_t sent = attributes.count(rank, peer) * element;
    const std::int64_t received = attributes.count(peer, rank) * element;
    if (sent > 0) steps.push_back(send_step(o.nccl, from, sent, peer));
    if (received > 0) steps.push_back(recv_step(o.nccl, to, received, peer));
    from += sent;
    to += received;
  }
  return steps;
}

Steps send_recv_steps(const Operands& o, int rank) {
  const auto& attributes = o.call.attributes.as<SendRecv>();
  const Tensor& x = o.x[as_size(rank)];
  const Tensor& y = o.y[as_size(rank)];
  return {send_step(o.nccl, x.data, x.spec.bytes(), attributes.receiver(rank)),
          recv_step(o.nccl, y.data, y.spec.bytes(), attributes.sender(rank))};
}

}  // namespace

const NcclCalls& nccl_calls() {
  static const NcclCalls calls = load();
  return calls;
}

std::string nccl_version(const NcclCalls& calls) {
  int version = 0;
  (void)calls.get_version(&version);
  return text_of(version);
}

ncclDataType_t nccl_reduced_type(const OpCall& call, const TensorSpec& tensor) {
  switch (tensor.dtype) {
    case DType::f64: return ncclFloat64;
    case DType::f32: return ncclFloat32;
    case DType::f16: return ncclFloat16;
    case DType::bf16: return ncclBfloat16;
    default: refuse(call, fmt::format("reductions of {}; expected f64, f32, f16 or bf16", name(tensor.dtype)));
  }
}

NcclSteps nccl_steps(const NcclOperands& o, int rank) {
  if (o.call.kind == all_reduce_kind) return all_reduce_steps(o, rank);
  if (o.call.kind == reduce_scatter_kind) return reduce_scatter_steps(o, rank);
  if (o.call.kind == all_gather_kind) return all_gather_steps(o, rank);
  if (o.call.kind == broadcast_kind) return broadcast_steps(o, rank);
  if (o.call.kind == all_to_all_kind) return all_to_all_steps(o, rank);
  return send_recv_steps(o, rank);
}

NcclTokenExchange nccl_token_exchange(const NcclOperands& o, int rank) {
  NcclTokenExchange exchange{o.nccl, exchange_operands(o.call, o.x, o.y, rank), rank, o.ranks};
  const std::int64_t experts = exchange.operands.sizes.spec.shape[0];
  exchange.sizes = as_size(experts * o.ranks);
  exchange.table = allocate(exchange.sizes * sizeof(std::int32_t));
  exchange.host = allocate_pinned(as_size(experts * (o.ranks + 1)) * sizeof(std::int32_t));
  return exchange;
}

NcclStep NcclTokenExchange::gather() const {
  return [this](ncclComm_t comm, cudaStream_t stream) {
    const Tensor& sizes = operands.sizes;
    return nccl.all_gather(sizes.data, table.get(), as_size(sizes.spec.bytes()), ncclUint8, comm, stream);
  };
}

// In expert order on both sides: between two ranks NCCL matches the k-th send with the k-th receive.
NcclSteps NcclTokenExchange::moves(const TokenRoutes& routes) const {
  const auto& [dispatches, rows, sizes, result, own_sizes, own_rows, row] = operands;
  NcclSteps steps;
  for (const RowRun& run : routes.sent(rank)) {
    steps.push_back(dispatches ? send_step(nccl, rows.data + run.own * row, run.rows * row, run.member)
                               : recv_step(nccl, result.data + run.own * row, run.rows * row, run.member));
  }
  for (const RowRun& run : routes.received(rank)) {
    steps.push_back(dispatches ? recv_step(nccl, result.data + run.there * row, run.rows * row, run.member)
                               : send_step(nccl, rows.data + run.there * row, run.rows * row, run.member));
  }
  return steps;
}

void NcclTokenExchange::fetch(cudaStream_t stream) const {
  check(cudaMemcpyAsync(host.get(), table.get(), sizes * sizeof(std::int32_t), cudaMemcpyDeviceToHost, stream),
        "copying sizes");
}

void NcclTokenExchange::finish(const TokenRoutes& routes, cudaStream_t stream) const {
  const Tensor& result = operands.result;
  const std::int64_t filled = routes.result_rows(operands.dispatches, rank) * operands.row_bytes;
  check(cudaMemsetAsync(result.data + filled, 0, as_size(result.spec.bytes() - filled), stream), "clearing rows");
  if (!operands.dispatches) return;
  std::int32_t* own = numbers() + sizes;
  const auto end = std::ranges::copy(routes.own_sizes(rank), own).out;
  check(cudaMemcpyAsync(operands.own_sizes.data, own, as_size(end - own) * sizeof *own, cudaMemcpyHostToDevice, stream),
        "copying sizes");
}

}  // namespace gpubench::cuda
