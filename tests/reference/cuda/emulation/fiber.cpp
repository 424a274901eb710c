// A stack switch takes ten instructions in assembly (x86-64), and two system calls with ucontext (elsewhere). A kernel
// of a thousand threads switches millions of times.
#include "tests/reference/cuda/emulation/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Saves the callee-saved registers on the old stack and restores them from the new one.
asm(R"(
.text
.globl gpubench_switch_stack
.type gpubench_switch_stack, @function
gpubench_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gpubench_switch_stack, .-gpubench_switch_stack
)");
extern "C" void gpubench_switch_stack(void** left, void* entered);
#endif

namespace gpubench::cuda::emulation {
namespace {

constexpr std::size_t stack_bytes = std::size_t{128} << 10;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

thread_local Fiber* starting = nullptr;

}  // namespace

struct Fiber::Context {
#if defined(__x86_64__)
  void* inside = nullptr;  // stack pointers of the inactive side
  void* outside = nullptr;
#else
  ucontext_t inside;
  ucontext_t outside;
#endif
};

Fiber::Fiber() : context_(new Context) {
  void* memory = mmap(nullptr, page_bytes() + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    delete context_;
    throw std::bad_alloc();
  }
  memory_ = static_cast<std::byte*>(memory);
  mprotect(memory_, page_bytes(), PROT_NONE);
}

Fiber::~Fiber() {
  munmap(memory_, page_bytes() + stack_bytes);
  delete context_;
}

void Fiber::start(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  ended_ = false;
  fake_stack_ = nullptr;
  std::byte* bottom = memory_ + page_bytes();
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bottom, stack_bytes);  // a dropped call did not unpoison its stack
#endif
#if defined(__x86_64__)
  // Six registers, the entry point, and an unused return address: the stack as after a call.
  auto* words = reinterpret_cast<void**>(bottom + stack_bytes) - 8;
  for (int i = 0; i < 8; ++i) words[i] = nullptr;
  words[6] = reinterpret_cast<void*>(&Fiber::entered);
  context_->inside = words;
#else
  getcontext(&context_->inside);
  context_->inside.uc_stack.ss_sp = bottom;
  context_->inside.uc_stack.ss_size = stack_bytes;
  context_->inside.uc_link = nullptr;
  makecontext(&context_->inside, &Fiber::entered, 0);
#endif
}

void Fiber::entered() { main_of(*starting); }

void Fiber::main_of(Fiber& fiber) {
  fiber.enter_stack();
  fiber.entry_(fiber.argument_);
  fiber.ended_ = true;
  fiber.suspend();
  // Unreachable: an ended fiber is not resumed, and start() sets up a new call.
}

void Fiber::resume() {
  starting = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&outer_fake_stack_, memory_ + page_bytes(), stack_bytes);
#endif
#if defined(__x86_64__)
  gpubench_switch_stack(&context_->outside, context_->inside);
#else
  swapcontext(&context_->outside, &context_->inside);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(outer_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
  leave_stack();
#if defined(__x86_64__)
  gpubench_switch_stack(&context_->inside, context_->outside);
#else
  swapcontext(&context_->inside, &context_->outside);
#endif
  enter_stack();
}

void Fiber::enter_stack() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &outer_bottom_, &outer_bytes_);
#endif
}

void Fiber::leave_stack() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(ended_ ? nullptr : &fake_stack_, outer_bottom_, outer_bytes_);
#endif
}

}  // namespace gpubench::cuda::emulation
