// A call that can be suspended and resumed: runs a CUDA thread under emulation.
#pragma once

#include <cstddef>

namespace gpubench::cuda::emulation {

/// A separate stack, with a guard page below it. Not movable while it runs.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Prepares a call of entry(argument), which must not throw. An unfinished earlier call is dropped without unwinding.
  void start(void (*entry)(void*), void* argument);
  /// Runs until suspend() or the end. Not to be called from a fiber.
  void resume();
  /// Returns to resume(). Only from this fiber.
  void suspend();

  [[nodiscard]] bool ended() const { return ended_; }

 private:
  struct Context;
  static void main_of(Fiber& fiber);
  static void entered();
  void enter_stack();
  void leave_stack();
  void* fake_stack_ = nullptr;          // AddressSanitizer's, while suspended
  void* outer_fake_stack_ = nullptr;    // likewise for the stack of resume()
  const void* outer_bottom_ = nullptr;  // the stack of resume()
  std::size_t outer_bytes_ = 0;

  std::byte* memory_ = nullptr;
  Context* context_ = nullptr;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace gpubench::cuda::emulation
