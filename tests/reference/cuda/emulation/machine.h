// An emulated GPU: runs the blocks of a grid one after another, and the threads of a block on fibers.
//
// A thread runs until it waits (barrier, shuffle) or, in random order, at some memory accesses too. Undefined behaviour
// in CUDA is a Fault that names block and thread, whatever the order: a barrier that only some threads reach, a shuffle
// with a missing lane, an access outside the launch's memory, or data passed between threads without a barrier.
#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>

namespace gpubench::cuda::emulation {

class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Schedule {
  enum class Order { forward, reverse, random };
  Order order = Order::forward;
  std::uint64_t seed = 1;  ///< of the random order
  /// Limit of a grid: with few blocks, kernels must loop over the rest.
  std::int64_t max_blocks = 0x7FFFFFFF;
};

/// For all later launches.
void set_schedule(Schedule schedule);
[[nodiscard]] std::int64_t max_blocks();

/// Calls `kernel` once per thread of the grid. Throws Fault and drops the running threads.
void run_grid(std::int64_t blocks, int threads, const std::function<void()>& kernel);

/// Position of the running thread; all zero outside a kernel.
struct Position {
  std::uint32_t launch = 0;     ///< counts from 1
  std::uint32_t block_run = 0;  ///< counts blocks of all launches, from 1
  int block = 0, thread = 0;
  int epoch = 0;       ///< barriers of the block so far
  int warp_epoch = 0;  ///< __syncwarp of the warp so far
};
[[nodiscard]] Position position();

[[noreturn]] void fail(const std::string& what);

/// A memory access: in random order, it may switch threads.
void memory_point();

void wait_for_block(std::source_location where);
void wait_for_warp(unsigned mask, std::source_location where);
/// `value` of lane `source`. `mask` must contain source and caller; all its lanes must call this.
[[nodiscard]] std::uint64_t shuffle(unsigned mask, std::uint64_t value, int source, std::source_location where);
/// One bit per lane of the mask whose value is true.
[[nodiscard]] unsigned ballot(unsigned mask, bool value, std::source_location where);

/// The block's object for `key`, of `bytes` bytes; `construct` makes it at the first call.
[[nodiscard]] void* shared_object(const void* key, std::size_t bytes, void (*construct)(void*));

/// Latest accesses to a cell of shared memory.
struct CellLog {
  struct Visit {
    std::uint32_t block_run = 0;
    int thread = 0, epoch = 0, warp_epoch = 0;
  };
  Visit writer, reader;
};
/// Throw Fault for data that another thread wrote (a write: also read) since the last barrier, and for reading data
/// that the block has not written.
void read_cell(CellLog& log);
void write_cell(CellLog& log);

}  // namespace gpubench::cuda::emulation
