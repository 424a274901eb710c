#include "reference/cuda/nccl_calls.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "harness/core/error.h"

namespace gpubench::cuda {
namespace {

constexpr const char* file_name = "libnccl.so.2";

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw Unsupported(fmt::format("{} has no function {}", file_name, name));
}

std::string text_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);  // since 2.9
}

NcclCalls load() {
  void* library = ::dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* words = ::dlerror();
    throw Unsupported(
        fmt::format("several GPUs need NCCL, which cannot be loaded: {}; install it with the CUDA toolkit, "
                    "or NVIDIA's Python wheel of it",
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
  // A communicator is configured by a struct that grows from version to version.
  if (version < NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, 0)) {
    throw Unsupported(fmt::format("{} is version {}; this build needs {}.{} or newer", file_name, text_of(version),
                                  NCCL_MAJOR, NCCL_MINOR));
  }
  return calls;
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

}  // namespace gpubench::cuda
