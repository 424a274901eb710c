// The part of NCCL that is used, as a table: the library is loaded when several GPUs work together, so that everything
// else runs without it.
#pragma once

#include <nccl.h>

#include <string>

namespace gpubench::cuda {

struct NcclCalls {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
  decltype(&ncclCommSplit) comm_split = nullptr;  ///< null: groups of some ranks are set up as all of them are
#endif
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
};

/// Those of libnccl.so.2, loaded at the first call and for good. Throws Unsupported where the loader does not find it,
/// where it lacks a function, and where it is older than the header that this was built with.
[[nodiscard]] const NcclCalls& nccl_calls();

/// "2.28.9", as the library says.
[[nodiscard]] std::string nccl_version(const NcclCalls& calls);

}  // namespace gpubench::cuda
