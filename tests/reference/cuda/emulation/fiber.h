// A call that can be left in the middle and continued: what a CUDA thread runs on under emulation.
#pragma once

#include <cstddef>

namespace gpubench::cuda::emulation {

/// A stack of its own. Not movable while it runs; owns its memory, with a page below it that faults.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Prepares a call of entry(argument); what ran here before and did not end is dropped, not unwound. `entry` must
  /// not throw.
  void start(void (*entry)(void*), void* argument);
  /// Runs it until it suspends or ends. From outside of any fiber only.
  void resume();
  /// Back to resume(). From within this fiber only.
  void suspend();

  [[nodiscard]] bool ended() const { return ended_; }

 private:
  struct Context;
  static void main_of(Fiber& fiber);
  static void entered();
  void enter_stack();
  void leave_stack();
  void* fake_stack_ = nullptr;          // AddressSanitizer's, while suspended
  void* outer_fake_stack_ = nullptr;    // the same for the stack of resume()
  const void* outer_bottom_ = nullptr;  // the stack of resume()
  std::size_t outer_bytes_ = 0;

  std::byte* memory_ = nullptr;
  Context* context_ = nullptr;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace gpubench::cuda::emulation
