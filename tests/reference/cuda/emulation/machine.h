// An emulated GPU: runs the blocks of a grid one after another, and the threads of a block on fibers.
//
// A thread runs until it waits (barrier, shuffle) or, in random order, at some accesses to memory as well; then another
// one does. What CUDA leaves undefined is a Fault that names block and thread: a barrier that only some threads reach,
// a shuffle with a lane that isn't there, an access outside of what the launch was given, and data that passes between
// threads without a barrier in between, whatever the order was.
#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>

namespace gpubench::cuda::emulation {

/// What a kernel did that it must not.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The order in which blocks, and the threads of a block, get to run.
struct Schedule {
  enum class Order { forward, reverse, random };
  Order order = Order::forward;
  std::uint64_t seed = 1;  ///< of random order
  /// That a grid may have: with few, kernels walk on to what other blocks would have.
  std::int64_t max_blocks = 0x7FFFFFFF;
};

/// For all launches from now on.
void set_schedule(Schedule schedule);
[[nodiscard]] std::int64_t max_blocks();

/// Calls `kernel` once per thread of the grid. Throws Fault; what was running is dropped.
void run_grid(std::int64_t blocks, int threads, const std::function<void()>& kernel);

/// Where the thread that runs now is. Not within a kernel: all zero.
struct Position {
  std::uint32_t launch = 0;     ///< counts from 1
  std::uint32_t block_run = 0;  ///< counts blocks of all launches, from 1
  int block = 0, thread = 0;
  int epoch = 0;       ///< barriers of the block so far
  int warp_epoch = 0;  ///< __syncwarp of the warp so far
};
[[nodiscard]] Position position();

/// Throws Fault: "block 2, thread 31: <what>".
[[noreturn]] void fail(const std::string& what);

/// An access to memory: in random order, sometimes another thread goes on.
void memory_point();

// --- what a thread waits at ---

void wait_for_block(std::source_location where);
void wait_for_warp(unsigned mask, std::source_location where);
/// `value` of the lane `source`, which must be in `mask` as the caller is; all lanes of the mask must come here.
[[nodiscard]] std::uint64_t shuffle(unsigned mask, std::uint64_t value, int source, std::source_location where);
/// One bit per lane of the mask whose value is not 0.
[[nodiscard]] unsigned ballot(unsigned mask, bool value, std::source_location where);

/// The block's object of the type that `key` stands for, of `bytes` bytes; `construct` makes it at the first call.
[[nodiscard]] void* shared_object(const void* key, std::size_t bytes, void (*construct)(void*));

/// Who touched a cell of shared memory last.
struct CellLog {
  struct Visit {
    std::uint32_t block_run = 0;
    int thread = 0, epoch = 0, warp_epoch = 0;
  };
  Visit writer, reader;
};
/// Throws Fault for what another thread wrote (or, when writing, read) with no barrier since, and for reading what no
/// thread of this block has written.
void read_cell(CellLog& log);
void write_cell(CellLog& log);

}  // namespace gpubench::cuda::emulation
