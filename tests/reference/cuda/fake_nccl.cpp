#include "tests/reference/cuda/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/core/dtype.h"
#include "tests/reference/cuda/emulation/streams.h"

namespace {

using gpubench::DType;
using gpubench::testing::NcclTrouble;
using Kind = NcclTrouble::Kind;

struct Op {
  enum class Kind { all_reduce, all_gather, reduce_scatter, broadcast, send, recv } kind;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t reduction = ncclSum;
  int peer = 0;  // or root
};

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64: return DType::f64;
    case ncclFloat32: return DType::f32;
    case ncclFloat16: return DType::f16;
    case ncclBfloat16: return DType::bf16;
    default: return DType::u8;
  }
}

std::size_t bytes_of(ncclDataType_t type) { return gpubench::size_of(dtype_of(type)); }

struct Clique;

/// A split: keys and ranks by colour, and the resulting communicators.
struct Split {
  int present = 0;
  std::map<int, std::set<std::pair<int, int>>> by_color;
  std::map<int, std::shared_ptr<Clique>> made;
};

/// Ranks of one communicator, and the groups in which they meet.
struct Clique {
  std::mutex mutex;
  int ranks = 0;
  int present = 0;                  // ranks in set-up
  std::map<int, int> enqueued;      // groups by rank
  std::map<int, int> min_enqueued;  // by group number: minimum over ranks when a device begins the group
  std::set<int> aborted;            // by rank; as in NCCL, the peers of an aborted rank wait
  std::map<int, std::vector<std::vector<Op>>> meetings;  // by group number: each rank's ops
  std::map<int, int> arrived;
  std::map<int, bool> done;
  std::map<int, Split> splits;  // by number
};

double reduced(const std::vector<const Op*>& of_ranks, std::size_t element) {
  const DType type = dtype_of(of_ranks[0]->type);
  double total = 0.0;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const double x = gpubench::load(type, of_ranks[rank]->from + element * gpubench::size_of(type));
    if (rank == 0) {
      total = x;
    } else {
      total = of_ranks[0]->reduction == ncclMax ? std::max(total, x) : total + x;
    }
  }
  return of_ranks[0]->reduction == ncclAvg ? total / static_cast<double>(of_ranks.size()) : total;
}

void reduce(const std::vector<const Op*>& of_ranks) {
  const Op& first = *of_ranks[0];
  const DType type = dtype_of(first.type);
  const bool scatters = first.kind == Op::Kind::reduce_scatter;
  const std::size_t total = scatters ? first.count * of_ranks.size() : first.count;
  std::vector<std::byte> result(total * gpubench::size_of(type));
  for (std::size_t i = 0; i < total; ++i)
    gpubench::store(type, result.data() + i * gpubench::size_of(type), reduced(of_ranks, i));
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const std::size_t bytes = first.count * gpubench::size_of(type);
    std::memcpy(of_ranks[rank]->to, result.data() + (scatters ? rank * bytes : 0), bytes);
  }
}

void gather(const std::vector<const Op*>& of_ranks) {
  const std::size_t bytes = of_ranks[0]->count * bytes_of(of_ranks[0]->type);
  std::vector<std::byte> all(bytes * of_ranks.size());
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
    std::memcpy(all.data() + rank * bytes, of_ranks[rank]->from, bytes);
  for (const Op* one : of_ranks) std::memcpy(one->to, all.data(), all.size());
}

void spread(const std::vector<const Op*>& of_ranks) {
  const Op& root = *of_ranks[static_cast<std::size_t>(of_ranks[0]->peer)];
  const std::vector<std::byte> all(root.from, root.from + root.count * bytes_of(root.type));
  for (const Op* one : of_ranks) std::memcpy(one->to, all.data(), all.size());
}

// The k-th send between two ranks matches the k-th receive.
bool exchange(const std::vector<std::vector<Op>>& ranks) {
  std::map<std::pair<int, int>, std::vector<const Op*>> sends;
  std::map<std::pair<int, int>, std::vector<const Op*>> recvs;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    for (const Op& op : ranks[static_cast<std::size_t>(rank)]) {
      if (op.kind == Op::Kind::send) sends[{rank, op.peer}].push_back(&op);
      if (op.kind == Op::Kind::recv) recvs[{op.peer, rank}].push_back(&op);
    }
  }
  for (const auto& [pair, sent] : sends) {
    const std::vector<const Op*>& received = recvs[pair];
    if (received.size() != sent.size()) return false;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (sent[i]->count != received[i]->count) return false;
      std::memcpy(received[i]->to, sent[i]->from, sent[i]->count * bytes_of(sent[i]->type));
    }
  }
  return true;
}

bool perform(const std::vector<std::vector<Op>>& ranks) {
  for (std::size_t i = 0; i < ranks[0].size(); ++i) {
    if (ranks[0][i].kind == Op::Kind::send || ranks[0][i].kind == Op::Kind::recv) return exchange(ranks);
    std::vector<const Op*> of_ranks;
    for (const std::vector<Op>& ops : ranks) {
      if (ops.size() != ranks[0].size() || ops[i].kind != ranks[0][i].kind || ops[i].count != ranks[0][i].count)
        return false;
      of_ranks.push_back(&ops[i]);
    }
    switch (ranks[0][i].kind) {
      case Op::Kind::all_gather: gather(of_ranks); break;
      case Op::Kind::broadcast: spread(of_ranks); break;
      default: reduce(of_ranks); break;
    }
  }
  return true;
}

}  // namespace

// NCCL's header declares this type without a definition.
struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int groups = 0;
  int splits = 0;
  ncclResult_t error = ncclSuccess;
  NcclTrouble trouble;
};

namespace {

std::mutex global_mutex;
std::map<std::string, std::shared_ptr<Clique>> cliques;  // by id
int next_id = 1;
int alive = 0;
int aborted = 0;
NcclTrouble next_trouble;
std::atomic<int> era{0};  // hanging calls of an earlier era may end
std::atomic<int> group_us{0};
std::shared_ptr<Clique> last_clique;

// Hangs until an abort, or until the next era.
template <class Ended>
void hang_until(const Ended& ended) {
  for (const int now = era; !ended() && era == now;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

struct Group {
  bool open = false;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Op> ops;
};
thread_local Group group;

ncclResult_t add(const Op& op, ncclComm_t communicator, cudaStream_t stream) {
  if (!group.open) return ncclInvalidUsage;
  if (group.communicator != nullptr && (group.communicator != communicator || group.stream != stream))
    return ncclInvalidUsage;
  group.communicator = communicator;
  group.stream = stream;
  group.ops.push_back(op);
  return ncclSuccess;
}

// The device's part: ranks arrive with their ops, and the last one performs all of them.
void arrive(const std::shared_ptr<Clique>& clique, int number, int rank, std::vector<Op> ops) {
  const std::lock_guard lock(clique->mutex);
  std::vector<std::vector<Op>>& meeting = clique->meetings[number];
  meeting.resize(static_cast<std::size_t>(clique->ranks));
  meeting[static_cast<std::size_t>(rank)] = std::move(ops);
  int least = clique->enqueued[rank];
  for (int peer = 0; peer < clique->ranks; ++peer) least = std::min(least, clique->enqueued[peer]);
  const auto [at, fresh] = clique->min_enqueued.try_emplace(number, least);
  if (!fresh) at->second = std::min(at->second, least);
  if (++clique->arrived[number] == clique->ranks) {
    if (!perform(meeting)) throw std::runtime_error("the ranks of a group ask for different things");
    clique->done[number] = true;
  }
}

bool has_ended(const std::shared_ptr<Clique>& clique, int number, int rank) {
  const std::lock_guard lock(clique->mutex);
  return clique->done[number] || clique->aborted.contains(rank);
}

ncclResult_t get_version(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* get_error_string(ncclResult_t result) { return result == ncclRemoteError ? "remote error" : "fault"; }
const char* get_last_error(ncclComm_t /*communicator*/) { return "told by the fake"; }

ncclResult_t get_unique_id(ncclUniqueId* id) {
  const std::lock_guard lock(global_mutex);
  std::memset(id, 0, sizeof *id);
  const std::string name = std::to_string(next_id++);
  std::memcpy(id->internal, name.data(), name.size());
  cliques[name] = std::make_shared<Clique>();
  return ncclSuccess;
}

ncclResult_t comm_init_rank_config(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  // Groups on one thread and non-blocking communicators are not emulated.
  if (group.open || config->blocking != 1) return ncclInvalidUsage;
  std::shared_ptr<Clique> clique;
  NcclTrouble trouble;
  {
    const std::lock_guard lock(global_mutex);
    clique = cliques.at(id.internal);
    last_clique = clique;
    if (next_trouble.rank == rank) trouble = next_trouble;
  }
  if (trouble.kind == Kind::init_error) return ncclRemoteError;
  {
    const std::lock_guard lock(clique->mutex);
    clique->ranks = ranks;
    if (trouble.kind != Kind::never_set_up) ++clique->present;
  }
  const auto all_there = [&] {
    const std::lock_guard lock(clique->mutex);
    return clique->present == ranks;
  };
  hang_until(all_there);
  if (!all_there()) return ncclRemoteError;
  *made = new ncclComm{clique, rank, 0, 0, ncclSuccess, trouble};
  const std::lock_guard lock(global_mutex);
  ++alive;
  return ncclSuccess;
}

// All ranks of the parent must call it, including those without a colour.
ncclResult_t comm_split(ncclComm_t parent, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  if (group.open || config->blocking != 1) return ncclInvalidUsage;
  const std::shared_ptr<Clique> clique = parent->clique;
  const int number = parent->splits++;
  {
    const std::lock_guard lock(clique->mutex);
    Split& split = clique->splits[number];
    ++split.present;
    if (color != NCCL_SPLIT_NOCOLOR) split.by_color[color].insert({key, parent->rank});
  }
  const auto all_there = [&] {
    const std::lock_guard lock(clique->mutex);
    return clique->splits[number].present == clique->ranks;
  };
  hang_until(all_there);
  if (!all_there()) return ncclRemoteError;
  *made = nullptr;
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  std::shared_ptr<Clique> part;
  int rank = 0;
  {
    const std::lock_guard lock(clique->mutex);
    Split& split = clique->splits[number];
    std::shared_ptr<Clique>& shared = split.made[color];
    if (shared == nullptr) shared = std::make_shared<Clique>();
    part = shared;
    const auto& members = split.by_color[color];
    part->ranks = static_cast<int>(members.size());
    rank = static_cast<int>(std::distance(members.begin(), members.find({key, parent->rank})));
  }
  *made = new ncclComm{part, rank, 0, 0, ncclSuccess, {}};
  const std::lock_guard lock(global_mutex);
  ++alive;
  return ncclSuccess;
}

ncclResult_t comm_get_async_error(ncclComm_t communicator, ncclResult_t* state) {
  *state = communicator->error;
  return ncclSuccess;
}

ncclResult_t comm_finalize(ncclComm_t /*communicator*/) { return ncclSuccess; }

ncclResult_t comm_destroy(ncclComm_t communicator) {
  delete communicator;
  const std::lock_guard lock(global_mutex);
  --alive;
  return ncclSuccess;
}

ncclResult_t comm_abort(ncclComm_t communicator) {
  {
    const std::lock_guard lock(communicator->clique->mutex);
    communicator->clique->aborted.insert(communicator->rank);
  }
  delete communicator;
  const std::lock_guard lock(global_mutex);
  --alive;
  ++aborted;
  return ncclSuccess;
}

ncclResult_t group_start() {
  if (group.open) return ncclInvalidUsage;
  group = {true, nullptr, nullptr, {}};
  return ncclSuccess;
}

ncclResult_t group_end() {
  if (!group.open) return ncclInvalidUsage;
  const Group ended = std::exchange(group, {});
  ncclComm_t communicator = ended.communicator;
  if (communicator == nullptr) return ncclSuccess;
  const bool in_trouble = communicator->trouble.rank >= 0 && communicator->groups >= communicator->trouble.after_calls;
  const int number = communicator->groups++;
  const std::shared_ptr<Clique> clique = communicator->clique;  // an abort on another thread resets it
  const int rank = communicator->rank;
  if (in_trouble && communicator->trouble.kind == Kind::never_enqueued) {
    hang_until([&] {
      const std::lock_guard lock(clique->mutex);
      return clique->aborted.contains(rank);
    });
    return ncclInternalError;
  }
  if (in_trouble && communicator->trouble.kind == Kind::async_error) {
    communicator->error = ncclRemoteError;
    gpubench::cuda::emulation::hold_stream(ended.stream,
                                           [clique, number, rank] { return has_ended(clique, number, rank); });
    return ncclSuccess;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(group_us));
  {
    const std::lock_guard lock(clique->mutex);
    ++clique->enqueued[rank];
  }
  gpubench::cuda::emulation::on_stream(ended.stream,
                                       [clique, number, rank, ops = ended.ops] { arrive(clique, number, rank, ops); });
  gpubench::cuda::emulation::hold_stream(ended.stream,
                                         [clique, number, rank] { return has_ended(clique, number, rank); });
  return ncclSuccess;
}

const std::byte* bytes(const void* data) { return static_cast<const std::byte*>(data); }
std::byte* bytes(void* data) { return static_cast<std::byte*>(data); }

ncclResult_t all_reduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                        ncclComm_t communicator, cudaStream_t stream) {
  return add({Op::Kind::all_reduce, bytes(from), bytes(to), count, type, reduction}, communicator, stream);
}
ncclResult_t all_gather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                        cudaStream_t stream) {
  return add({Op::Kind::all_gather, bytes(from), bytes(to), count, type}, communicator, stream);
}
ncclResult_t reduce_scatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                            ncclComm_t communicator, cudaStream_t stream) {
  return add({Op::Kind::reduce_scatter, bytes(from), bytes(to), count, type, reduction}, communicator, stream);
}
ncclResult_t broadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                       ncclComm_t communicator, cudaStream_t stream) {
  return add({Op::Kind::broadcast, bytes(from), bytes(to), count, type, ncclSum, root}, communicator, stream);
}
ncclResult_t send(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                  cudaStream_t stream) {
  return add({Op::Kind::send, bytes(from), nullptr, count, type, ncclSum, peer}, communicator, stream);
}
ncclResult_t recv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                  cudaStream_t stream) {
  return add({Op::Kind::recv, nullptr, bytes(to), count, type, ncclSum, peer}, communicator, stream);
}

}  // namespace

namespace gpubench::testing {

const cuda::NcclCalls& fake_nccl(NcclTrouble trouble, bool splits) {
  static const cuda::NcclCalls calls{get_version,
                                     get_error_string,
                                     get_last_error,
                                     get_unique_id,
                                     comm_init_rank_config,
                                     comm_split,
                                     comm_get_async_error,
                                     comm_finalize,
                                     comm_destroy,
                                     comm_abort,
                                     group_start,
                                     group_end,
                                     ::all_reduce,
                                     ::all_gather,
                                     ::reduce_scatter,
                                     ::broadcast,
                                     send,
                                     recv};
  static const cuda::NcclCalls without_split = [] {
    cuda::NcclCalls older = calls;
    older.comm_split = nullptr;
    return older;
  }();
  const std::lock_guard lock(global_mutex);
  next_trouble = trouble;
  group_us = trouble.group_us;
  ++era;
  return splits ? calls : without_split;
}

int fake_nccl_least_enqueued(int group) {
  const std::lock_guard lock(global_mutex);
  const std::lock_guard clique_lock(last_clique->mutex);
  return last_clique->min_enqueued.at(group);
}

int fake_nccl_alive() {
  const std::lock_guard lock(global_mutex);
  return alive;
}

int fake_nccl_aborted() {
  const std::lock_guard lock(global_mutex);
  return aborted;
}

}  // namespace gpubench::testing
