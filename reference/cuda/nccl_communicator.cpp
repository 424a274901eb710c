// While a communicator answers "in progress" nothing else may be asked of it, and nothing put on the stream that it was
// given; so each call is followed until it has been enqueued. That does not wait for the device.
//
// Moves are of bytes, so that no type is lacking. A rank that has given up aborts its communicator, which ends what its
// device still waits for; no other can be made in its place in this process.
#include "reference/cuda/nccl_communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <thread>

#include "harness/core/error.h"
#include "reference/cuda/kernel.h"
#include "reference/ops/collective.h"

namespace gpubench::cuda {
namespace {

using Clock = std::chrono::steady_clock;

/// A call of a rank, within a group.
using Step = std::function<ncclResult_t(ncclComm_t communicator, cudaStream_t stream)>;
using Steps = std::vector<Step>;

ncclDataType_t type_of(const OpCall& call, const TensorSpec& tensor) {
  switch (tensor.dtype) {
    case DType::f64: return ncclFloat64;
    case DType::f32: return ncclFloat32;
    case DType::f16: return ncclFloat16;
    case DType::bf16: return ncclBfloat16;
    default:
      refuse(call, fmt::format("reductions of {}; NCCL is asked for f64, f32, f16 and bf16", name(tensor.dtype)));
  }
}

ncclRedOp_t op_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return ncclSum;
    case Reduction::average: return ncclAvg;
    case Reduction::maximum: return ncclMax;
  }
  throw BackendError("cuda: a reduction that is not known");
}

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

/// The tensors of a bound collective.
struct Operands {
  const NcclCalls& nccl;
  const OpCall& call;
  std::span<const Tensor> x, y;
  int ranks;
};

Steps all_reduce_steps(const Operands& o, int rank) {
  Steps steps;
  const std::size_t each = o.x.size() / size(o.ranks);
  for (std::size_t i = size(rank) * each; i < size(rank + 1) * each; ++i) {
    steps.emplace_back([&nccl = o.nccl, x = o.x[i], y = o.y[i], type = type_of(o.call, o.x[i].spec),
                        op = op_of(o.call.attributes.as<AllReduce>().reduction)](ncclComm_t comm, cudaStream_t stream) {
      return nccl.all_reduce(x.data, y.data, size(x.spec.shape.elements()), type, op, comm, stream);
    });
  }
  return steps;
}

Steps reduce_scatter_steps(const Operands& o, int rank) {
  return {[&nccl = o.nccl, x = o.x[size(rank)], y = o.y[size(rank)], type = type_of(o.call, o.x[0].spec),
           op = op_of(o.call.attributes.as<ReduceScatter>().reduction)](ncclComm_t comm, cudaStream_t stream) {
    return nccl.reduce_scatter(x.data, y.data, size(y.spec.shape.elements()), type, op, comm, stream);
  }};
}

Steps all_gather_steps(const Operands& o, int rank) {
  return {[&nccl = o.nccl, x = o.x[size(rank)], y = o.y[size(rank)]](ncclComm_t comm, cudaStream_t stream) {
    return nccl.all_gather(x.data, y.data, size(x.spec.bytes()), ncclUint8, comm, stream);
  }};
}

Steps broadcast_steps(const Operands& o, int rank) {
  const int root = o.call.attributes.as<Broadcast>().root;
  const Tensor& y = o.y[size(rank)];
  const std::byte* x = rank == root ? o.x[0].data : y.data;  // looked at on the root only
  return {[&nccl = o.nccl, x, y, root](ncclComm_t comm, cudaStream_t stream) {
    return nccl.broadcast(x, y.data, size(y.spec.bytes()), ncclUint8, root, comm, stream);
  }};
}

Step send_step(const NcclCalls& nccl, const std::byte* from, std::int64_t bytes, int peer) {
  return [&nccl, from, bytes, peer](ncclComm_t comm, cudaStream_t stream) {
    return nccl.send(from, size(bytes), ncclUint8, peer, comm, stream);
  };
}
Step recv_step(const NcclCalls& nccl, std::byte* to, std::int64_t bytes, int peer) {
  return [&nccl, to, bytes, peer](ncclComm_t comm, cudaStream_t stream) {
    return nccl.recv(to, size(bytes), ncclUint8, peer, comm, stream);
  };
}

Steps all_to_all_steps(const Operands& o, int rank) {
  const auto& attributes = o.call.attributes.as<AllToAll>();
  const auto element = static_cast<std::int64_t>(size_of(o.x[0].spec.dtype));
  const std::byte* from = o.x[size(rank)].data;
  std::byte* to = o.y[size(rank)].data;
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
  const int shift = o.call.attributes.as<SendRecv>().shift;
  const auto around = [&](int at) { return (at % o.ranks + o.ranks) % o.ranks; };
  const Tensor& x = o.x[size(rank)];
  const Tensor& y = o.y[size(rank)];
  return {send_step(o.nccl, x.data, x.spec.bytes(), around(rank + shift)),
          recv_step(o.nccl, y.data, y.spec.bytes(), around(rank - shift))};
}

Steps steps_of(const Operands& o, int rank) {
  if (o.call.kind == all_reduce_kind) return all_reduce_steps(o, rank);
  if (o.call.kind == reduce_scatter_kind) return reduce_scatter_steps(o, rank);
  if (o.call.kind == all_gather_kind) return all_gather_steps(o, rank);
  if (o.call.kind == broadcast_kind) return broadcast_steps(o, rank);
  if (o.call.kind == all_to_all_kind) return all_to_all_steps(o, rank);
  return send_recv_steps(o, rank);
}

class NcclPlan final : public PlanImpl {
 public:
  NcclPlan(OpCall call, std::string implementation)
      : call_(std::move(call)), implementation_(std::move(implementation)) {}
  [[nodiscard]] std::string implementation() const override { return implementation_; }
  [[nodiscard]] const OpCall& call() const { return call_; }

 private:
  OpCall call_;
  std::string implementation_;
};

class NcclLaunch final : public LaunchImpl {
 public:
  explicit NcclLaunch(std::vector<Steps> ranks) : ranks_(std::move(ranks)) {}
  [[nodiscard]] const Steps& of(int rank) const { return ranks_.at(size(rank)); }

 private:
  std::vector<Steps> ranks_;
};

class NcclCommunicator final : public CudaCommunicator {
 public:
  NcclCommunicator(const NcclCalls& calls, std::vector<int> devices, double deadline_s)
      : CudaCommunicator(std::move(devices)), nccl_(calls), ranks_(size(ranks())) {
    for (int rank = 0; rank < ranks(); ++rank) {
      use_device_of(rank);
      ranks_[size(rank)].token = allocate(sizeof(float));
      check(cudaMemset(ranks_[size(rank)].token.get(), 0, sizeof(float)), "clearing a token");
    }
    try {
      set_up(deadline_s);
    } catch (...) {
      for (int rank = 0; rank < ranks(); ++rank) give_up(rank);
      throw;
    }
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override { tear_down(); }

  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors) override {
    expect_collective(call, tensors);
    if (call.kind == all_reduce_kind || call.kind == reduce_scatter_kind) {
      for (const TensorSpec& tensor : tensors) (void)type_of(call, tensor);
    }
    return std::make_shared<NcclPlan>(call, "nccl:" + nccl_version(nccl_));
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors) override {
    const auto* own = dynamic_cast<const NcclPlan*>(plan.get());
    if (own == nullptr) throw BackendError("cuda: the plan is empty or of another backend; expected a collective's");
    const std::size_t inputs = own->call().inputs.size();
    const Operands operands{nccl_, own->call(), tensors.first(inputs), tensors.subspan(inputs), ranks()};
    std::vector<Steps> steps;
    for (int rank = 0; rank < ranks(); ++rank) steps.push_back(steps_of(operands, rank));
    return std::make_shared<NcclLaunch>(std::move(steps));
  }

  void enqueue(const Launch& launch, int rank, cudaStream_t stream) override {
    grouped(dynamic_cast<const NcclLaunch&>(*launch).of(rank), rank, stream);
  }

  void align(int rank, cudaStream_t stream) override {
    std::byte* token = ranks_[size(rank)].token.get();
    grouped({[this, token](ncclComm_t comm, cudaStream_t on) {
              return nccl_.all_reduce(token, token, 1, ncclFloat32, ncclSum, comm, on);
            }},
            rank, stream);
  }

  [[nodiscard]] bool restart() override {
    for (const Rank& rank : ranks_) {
      if (rank.aborted) return false;
    }
    return CudaCommunicator::restart();
  }

 protected:
  void poll(int rank) override { (void)state_of(rank, "a collective"); }

  void give_up(int rank) override {
    Rank& own = ranks_[size(rank)];
    if (!own.aborted.exchange(true) && own.communicator != nullptr) (void)nccl_.comm_abort(own.communicator);
  }

 private:
  struct Rank {
    ncclComm_t communicator = nullptr;
    std::shared_ptr<std::byte> token;  // one number, summed up when ranks line up
    std::atomic<bool> aborted{false};
  };

  void set_up(double deadline_s) {
    ncclUniqueId id{};
    expect(nccl_.get_unique_id(&id), nullptr, "making an id");
    expect(nccl_.group_start(), nullptr, "beginning a group");
    for (int rank = 0; rank < ranks(); ++rank) {
      use_device_of(rank);
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      expect(nccl_.comm_init_rank_config(&ranks_[size(rank)].communicator, ranks(), id, rank, &config), nullptr,
             "setting up a communicator");
    }
    expect(nccl_.group_end(), nullptr, "setting up communicators");
    const Clock::time_point begin = Clock::now();
    for (int rank = 0; rank < ranks(); ++rank) {
      while (state_of(rank, "setting up a communicator") == ncclInProgress) {
        if (std::chrono::duration<double>(Clock::now() - begin).count() > deadline_s) {
          throw BackendError(
              fmt::format("cuda: NCCL has not set up rank {} of {} within {:g} s", rank, ranks(), deadline_s));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  // Ending is something that ranks do together, so all begin before any is waited for.
  void tear_down() {
    for (Rank& rank : ranks_) {
      if (rank.communicator != nullptr && !rank.aborted) (void)nccl_.comm_finalize(rank.communicator);
    }
    for (Rank& rank : ranks_) {
      if (rank.communicator == nullptr || rank.aborted) continue;
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress && nccl_.comm_get_async_error(rank.communicator, &state) == ncclSuccess)
        std::this_thread::yield();
      (void)(state == ncclSuccess ? nccl_.comm_destroy(rank.communicator) : nccl_.comm_abort(rank.communicator));
    }
  }

  void grouped(const Steps& steps, int rank, cudaStream_t stream) {
    if (steps.empty()) return;
    ncclComm_t communicator = ranks_[size(rank)].communicator;
    expect(nccl_.group_start(), communicator, "beginning a group");
    ncclResult_t result = ncclSuccess;
    for (const Step& step : steps) {
      if (result == ncclSuccess || result == ncclInProgress) result = step(communicator, stream);
    }
    const ncclResult_t ended = nccl_.group_end();  // also after an error: the thread must not stay within the group
    expect(result, communicator, "enqueueing a collective");
    expect(ended, communicator, "enqueueing a collective");
    while (state_of(rank, "enqueueing a collective") == ncclInProgress) {
      expect_going(rank);
      std::this_thread::yield();
    }
  }

  /// ncclSuccess or ncclInProgress. Throws DeviceLost for anything else: such a communicator is beyond repair.
  [[nodiscard]] ncclResult_t state_of(int rank, const char* what) {
    ncclComm_t communicator = ranks_[size(rank)].communicator;
    ncclResult_t state = ncclSuccess;
    expect(nccl_.comm_get_async_error(communicator, &state), communicator, "asking for a communicator's state");
    if (state != ncclSuccess && state != ncclInProgress) {
      const std::string text = words(state, communicator, what);
      give_up(rank);
      throw DeviceLost(text);
    }
    return state;
  }

  void expect(ncclResult_t result, ncclComm_t communicator, const char* what) const {
    if (result != ncclSuccess && result != ncclInProgress) throw BackendError(words(result, communicator, what));
  }

  [[nodiscard]] std::string words(ncclResult_t result, ncclComm_t communicator, const char* what) const {
    return fmt::format("cuda: NCCL: {} failed: {} ({}): {}", what, nccl_.get_error_string(result),
                       static_cast<int>(result), nccl_.get_last_error(communicator));
  }

  const NcclCalls& nccl_;
  std::vector<Rank> ranks_;
};

}  // namespace

std::unique_ptr<CudaCommunicator> open_nccl_communicator(const NcclCalls& calls, std::vector<int> devices,
                                                         double deadline_s) {
  return std::make_unique<NcclCommunicator>(calls, std::move(devices), deadline_s);
}

}  // namespace gpubench::cuda
