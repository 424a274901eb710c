#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace gpubench {

/// Calls work(0) ... work(count - 1) on up to `threads` threads; rethrows the first exception.
template <class Work>
void on_threads(int threads, std::int64_t count, const Work& work) {
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  const auto drain = [&] {
    try {
      for (std::int64_t i = next++; i < count && !failed; i = next++) work(i);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, count); ++i) helpers.emplace_back(drain);
    } catch (const std::system_error&) {  // no more threads: the running ones do the rest
    }
    drain();
  }
  if (failure) std::rethrow_exception(failure);
}

/// Calls work(first, end) for parts of `lines` lines of `elements` each: at most one part per processor, each worth a
/// thread. One part where elements have less than 8 `bits`: two would share a byte.
template <class Work>
void in_parts(std::int64_t lines, std::int64_t elements, int bits, const Work& work) {
  constexpr std::int64_t min_elements_per_thread = std::int64_t{1} << 16;
  const auto processors = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::int64_t most = std::min(processors, lines * elements / min_elements_per_thread);
  const std::int64_t parts = bits < 8 ? 1 : std::max<std::int64_t>(most, 1);
  on_threads(static_cast<int>(parts), parts,
             [&](std::int64_t part) { work(lines * part / parts, lines * (part + 1) / parts); });
}

}  // namespace gpubench
