// Running faulty kernels: shared by the emulation's tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reference/cuda/kernels/device.cuh"

namespace gpubench::cuda::emulation {

inline constexpr Schedule every_order[] = {
    {Schedule::Order::forward}, {Schedule::Order::reverse}, {Schedule::Order::random, 1}, {Schedule::Order::random, 2}};

struct Args {
  const int* from = nullptr;
  int* to = nullptr;
  int count = 0;
};

/// The fault of the kernel in this order of threads; "" if none.
inline std::string fault_of(void (*kernel)(Args), Grid grid, const Args& args, Schedule schedule = {}) {
  std::string text;
  set_schedule(schedule);
  try {
    launch(kernel, grid, nullptr, args);
  } catch (const Fault& fault) {
    text = fault.what();
  }
  set_schedule({});
  return text;
}

/// Expects the fault's words in every order of threads.
inline void expect_fault(void (*kernel)(Args), Grid grid, const Args& args, const std::string& words) {
  for (const Schedule& schedule : every_order) {
    const std::string fault = fault_of(kernel, grid, args, schedule);
    EXPECT_NE(fault.find(words), std::string::npos) << "expected: " << words << "\ngot: " << fault;
    EXPECT_EQ(fault.rfind("block ", 0), 0U) << fault;
  }
}

struct Numbers {
  std::vector<int> from, to;
  Args args;
  explicit Numbers(int count = 64)
      : from(static_cast<std::size_t>(count)), to(from.size()), args{from.data(), to.data(), count} {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
  }
};

}  // namespace gpubench::cuda::emulation
