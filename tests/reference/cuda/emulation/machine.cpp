#include "tests/reference/cuda/emulation/machine.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/reference/cuda/emulation/emulated_device.h"
#include "tests/reference/cuda/emulation/fiber.h"

namespace gpubench::cuda::emulation {
namespace {

constexpr int lanes = 32;

enum class State { ready, at_barrier, in_warp, done };
enum class Gathering { barrier, shuffle, ballot };

struct Thread {
  std::unique_ptr<Fiber> fiber = std::make_unique<Fiber>();
  State state = State::done;
  std::source_location where;
  unsigned mask = 0;
  Gathering gathering = Gathering::barrier;
  std::uint64_t value = 0;
  int source = 0;
  std::uint64_t received = 0;
};

std::string text_of(const std::source_location& where) {
  const std::string file = where.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line());
}

struct Machine {
  Schedule schedule;
  std::uint64_t random = 1;
  std::vector<Thread> threads;  // kept, to reuse stacks
  int count = 0;
  int current = -1;
  int block = 0;
  std::uint32_t launch = 0, block_run = 0;
  int arrived = 0;
  int epoch = 0;
  std::vector<int> warp_epochs;
  const std::function<void()>* kernel = nullptr;
  std::exception_ptr fault;

  // xorshift64*: Marsaglia 2003, Vigna 2016.
  std::uint64_t next_random() {
    random ^= random >> 12U;
    random ^= random << 25U;
    random ^= random >> 27U;
    return random * 0x2545F4914F6CDD1DULL;
  }

  std::vector<int> order_of(int size) {
    std::vector<int> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    if (schedule.order == Schedule::Order::reverse) std::reverse(order.begin(), order.end());
    if (schedule.order == Schedule::Order::random) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next_random() % i]);
    }
    return order;
  }

  Thread& self() { return threads[static_cast<std::size_t>(current)]; }

  void run_block(int index) {
    block = index;
    blockIdx.x = static_cast<unsigned>(index);
    ++block_run;
    epoch = 0;
    arrived = 0;
    warp_epochs.assign(static_cast<std::size_t>(count + lanes - 1) / lanes, 0);
    for (int i = 0; i < count; ++i) {
      Thread& thread = threads[static_cast<std::size_t>(i)];
      thread.state = State::ready;
      thread.fiber->start(&Machine::run_thread, this);
    }
    const std::vector<int> order = order_of(count);
    bool any_ran = true;
    while (any_ran) {
      any_ran = false;
      for (const int i : order) {
        if (threads[static_cast<std::size_t>(i)].state != State::ready) continue;
        any_ran = true;
        run_until_it_waits(i);
        if (fault) std::rethrow_exception(fault);
      }
    }
    diagnose();
  }

  void run_until_it_waits(int index) {
    current = index;
    threadIdx.x = static_cast<unsigned>(index);
    Thread& thread = threads[static_cast<std::size_t>(index)];
    thread.fiber->resume();
    if (thread.fiber->ended()) thread.state = State::done;
    current = -1;
  }

  static void run_thread(void* machine) {
    auto& self = *static_cast<Machine*>(machine);
    try {
      (*self.kernel)();
    } catch (...) {
      self.fault = std::current_exception();
    }
  }

  void wait(State state) {
    Thread& thread = self();
    thread.state = state;
    thread.fiber->suspend();
  }

  void arrive_at_barrier(std::source_location where) {
    self().where = where;
    self().state = State::at_barrier;
    if (++arrived < count) return wait(State::at_barrier);
    expect_one_barrier();
    arrived = 0;
    for (int i = 0; i < count; ++i) threads[static_cast<std::size_t>(i)].state = State::ready;
    ++epoch;
  }

  void expect_one_barrier() {
    const Thread& first = threads[0];
    for (int i = 1; i < count; ++i) {
      const Thread& thread = threads[static_cast<std::size_t>(i)];
      if (thread.where.line() == first.where.line() && thread.where.column() == first.where.column()) continue;
      current = i;
      fail("waits at the barrier in " + text_of(thread.where) + ", but thread 0 at the one in " + text_of(first.where));
    }
  }

  void arrive_in_warp(unsigned mask, Gathering gathering, std::source_location where) {
    const int lane = current % lanes;
    const int warp_first = current - lane;
    Thread& thread = self();
    if ((mask >> static_cast<unsigned>(lane) & 1U) == 0) {
      fail("is lane " + std::to_string(lane) + " but isn't in the mask at " + text_of(where));
    }
    thread.where = where;
    thread.mask = mask;
    thread.gathering = gathering;
    thread.state = State::in_warp;
    for (int other = 0; other < lanes; ++other) {
      if ((mask >> static_cast<unsigned>(other) & 1U) == 0) continue;
      if (warp_first + other >= count) {
        fail("names lane " + std::to_string(other) + " at " + text_of(where) + ", but its warp has only " +
             std::to_string(count - warp_first) + " lanes");
      }
      const Thread& peer = threads[static_cast<std::size_t>(warp_first + other)];
      if (peer.state != State::in_warp) return wait(State::in_warp);
      if (peer.mask != mask || peer.gathering != gathering || peer.where.line() != where.line()) {
        fail("meets lane " + std::to_string(other) + " at " + text_of(peer.where) +
             " with another mask or purpose than at " + text_of(where));
      }
    }
    complete(warp_first, mask, gathering);
  }

  // All lanes of the mask have arrived.
  void complete(int warp_first, unsigned mask, Gathering gathering) {
    if (gathering == Gathering::barrier) ++warp_epochs[static_cast<std::size_t>(warp_first / lanes)];
    std::uint64_t votes = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      if ((mask >> static_cast<unsigned>(lane) & 1U) == 0) continue;
      if (threads[static_cast<std::size_t>(warp_first + lane)].value != 0) votes |= std::uint64_t{1} << lane;
    }
    for (int lane = 0; lane < lanes; ++lane) {
      if ((mask >> static_cast<unsigned>(lane) & 1U) == 0) continue;
      Thread& thread = threads[static_cast<std::size_t>(warp_first + lane)];
      thread.state = State::ready;
      if (gathering == Gathering::ballot) thread.received = votes;
      if (gathering != Gathering::shuffle) continue;
      if ((mask >> static_cast<unsigned>(thread.source) & 1U) == 0) {
        current = warp_first + lane;
        fail("reads lane " + std::to_string(thread.source) + ", which isn't in the mask, at " + text_of(thread.where));
      }
      thread.received = threads[static_cast<std::size_t>(warp_first + thread.source)].value;
    }
  }

  // No thread can continue: all have ended or wait forever.
  void diagnose() {
    int ended = -1;
    for (int i = 0; i < count; ++i) {
      if (threads[static_cast<std::size_t>(i)].state == State::done) ended = i;
    }
    for (int i = 0; i < count; ++i) {
      const Thread& thread = threads[static_cast<std::size_t>(i)];
      if (thread.state == State::done) continue;
      current = i;
      if (thread.state == State::in_warp) explain_warp(i);
      for (int j = 0; j < count; ++j) {
        if (threads[static_cast<std::size_t>(j)].state == State::in_warp) explain_warp(j);
      }
      fail("waits at the barrier in " + text_of(thread.where) + ", but thread " + std::to_string(ended) + " has ended");
    }
    current = -1;
  }

  void explain_warp(int index) {
    const Thread& thread = threads[static_cast<std::size_t>(index)];
    const int warp_first = index / lanes * lanes;
    current = index;
    for (int lane = 0; lane < lanes && warp_first + lane < count; ++lane) {
      const Thread& peer = threads[static_cast<std::size_t>(warp_first + lane)];
      if ((thread.mask >> static_cast<unsigned>(lane) & 1U) == 0 || peer.state == State::in_warp) continue;
      fail("waits for lane " + std::to_string(lane) + " at " + text_of(thread.where) + ", but that " +
           (peer.state == State::done ? "has ended" : "waits at the barrier in " + text_of(peer.where)));
    }
    fail("waits for its warp at " + text_of(thread.where) + " for ever");
  }
};

Machine& machine() {
  static Machine instance;
  return instance;
}

}  // namespace

void set_schedule(Schedule schedule) { machine().schedule = schedule; }
std::int64_t max_blocks() { return machine().schedule.max_blocks; }

void run_grid(std::int64_t blocks, int threads, const std::function<void()>& kernel) {
  Machine& m = machine();
  if (m.current >= 0) throw Fault("a kernel was launched from within a kernel");
  if (threads < 1 || threads > 1024 || blocks < 1 || blocks > 0x7FFFFFFF) {
    throw Fault("launched " + std::to_string(blocks) + " blocks of " + std::to_string(threads) +
                " threads; expected 1 to 2^31 - 1 blocks of 1 to 1024");
  }
  m.random = m.schedule.seed * 2 + 1;
  while (static_cast<int>(m.threads.size()) < threads) m.threads.emplace_back();
  m.count = threads;
  m.kernel = &kernel;
  m.fault = nullptr;
  ++m.launch;
  blockDim.x = static_cast<unsigned>(threads);
  gridDim.x = static_cast<unsigned>(blocks);
  try {
    for (const int block : m.order_of(static_cast<int>(blocks))) m.run_block(block);
  } catch (...) {
    m.current = -1;
    throw;
  }
}

Position position() {
  const Machine& m = machine();
  if (m.current < 0) return {};
  return {m.launch,  m.block_run, m.block,
          m.current, m.epoch,     m.warp_epochs[static_cast<std::size_t>(m.current) / lanes]};
}

void fail(const std::string& what) {
  const Machine& m = machine();
  throw Fault("block " + std::to_string(m.block) + ", thread " + std::to_string(m.current) + ": " + what);
}

void memory_point() {
  Machine& m = machine();
  if (m.schedule.order != Schedule::Order::random || m.current < 0) return;
  if (m.next_random() % 8 == 0) m.wait(State::ready);
}

void wait_for_block(std::source_location where) { machine().arrive_at_barrier(where); }

void wait_for_warp(unsigned mask, std::source_location where) {
  machine().arrive_in_warp(mask, Gathering::barrier, where);
}

std::uint64_t shuffle(unsigned mask, std::uint64_t value, int source, std::source_location where) {
  Machine& m = machine();
  m.self().value = value;
  m.self().source = source;
  m.arrive_in_warp(mask, Gathering::shuffle, where);
  return m.self().received;
}

unsigned ballot(unsigned mask, bool value, std::source_location where) {
  Machine& m = machine();
  m.self().value = value ? 1 : 0;
  m.arrive_in_warp(mask, Gathering::ballot, where);
  return static_cast<unsigned>(m.self().received);
}

}  // namespace gpubench::cuda::emulation
