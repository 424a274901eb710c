#include "tests/reference/cuda/emulation/memory_watch.h"

#include <algorithm>
#include <cstdint>

#include "tests/reference/cuda/emulation/machine.h"

namespace gpubench::cuda::emulation {
namespace {

// Beyond this many granules only bounds are checked: logs would take longer than the test.
constexpr std::size_t max_granules = std::size_t{4} << 20;

struct Visit {
  std::uint32_t launch = 0, block_run = 0;
  std::int16_t thread = 0;
  std::int16_t epoch = 0;
};

/// Overlapping regions joined to one range.
struct Span {
  std::uintptr_t begin = 0, end = 0;
  std::size_t granule = 4;
  std::size_t first_log = 0;
};

struct Watch {
  bool active = false;
  std::vector<Region> regions;
  std::vector<Span> spans;  // sorted by address
  std::vector<Visit> writers, readers;
};

Watch& watch() {
  static Watch instance;
  return instance;
}

std::int64_t& all_bytes_read() {
  static std::int64_t bytes = 0;
  return bytes;
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

bool contains(const Region& region, std::uintptr_t begin, std::size_t bytes) {
  return begin >= number(region.begin) && begin + bytes <= number(region.begin) + region.bytes;
}

std::string distance_text(std::uintptr_t at) {
  const Region* nearest = nullptr;
  for (const Region& region : watch().regions) {
    if (number(region.begin) <= at && (nearest == nullptr || region.begin > nearest->begin)) nearest = &region;
  }
  if (nearest == nullptr) return "before everything that the launch was given";
  return std::to_string(at - number(nearest->begin)) + " bytes from the start of " + nearest->name + ", which has " +
         std::to_string(nearest->bytes);
}

void expect_aligned(std::uintptr_t at, int bytes, int alignment) {
  if (at % static_cast<std::uintptr_t>(alignment) == 0) return;
  fail("an access of " + std::to_string(bytes) + " bytes isn't aligned to " + std::to_string(alignment) + ": " +
       distance_text(at));
}

void expect_allowed(std::uintptr_t at, int bytes, bool writes) {
  const auto size = static_cast<std::size_t>(bytes);
  bool readable = false;
  for (const Region& region : watch().regions) {
    if (!contains(region, at, size)) continue;
    if (!writes || region.writable) return;
    readable = true;
  }
  fail(std::string(writes ? "writes " : "reads ") + std::to_string(bytes) + " bytes " +
       (readable ? "of an input" : "that the launch was not given") + ": " + distance_text(at));
}

bool apart(const Visit& visit, const Position& now) {
  if (visit.launch != now.launch) return true;
  if (visit.block_run != now.block_run) return false;
  return visit.thread == now.thread || visit.epoch < now.epoch;
}

void log_access(std::uintptr_t at, int bytes, bool writes) {
  Watch& w = watch();
  const Position now = position();
  if (w.writers.empty() || now.launch == 0) return;
  const auto after = std::upper_bound(w.spans.begin(), w.spans.end(), at,
                                      [](std::uintptr_t address, const Span& span) { return address < span.begin; });
  const Span& span = *(after - 1);
  const Visit visit{now.launch, now.block_run, static_cast<std::int16_t>(now.thread),
                    static_cast<std::int16_t>(now.epoch)};
  const std::size_t first = span.first_log + (at - span.begin) / span.granule;
  const std::size_t last = span.first_log + (at + static_cast<std::size_t>(bytes) - 1 - span.begin) / span.granule;
  for (std::size_t i = first; i <= last; ++i) {
    if (!apart(w.writers[i], now)) {
      fail(std::string(writes ? "writes" : "reads") + " what thread " + std::to_string(w.writers[i].thread) +
           (w.writers[i].block_run == now.block_run ? "" : " of another block") +
           " wrote in the same launch: " + distance_text(at));
    }
    if (writes && !apart(w.readers[i], now)) {
      fail("writes what thread " + std::to_string(w.readers[i].thread) +
           (w.readers[i].block_run == now.block_run ? "" : " of another block") +
           " read in the same launch: " + distance_text(at));
    }
    (writes ? w.writers : w.readers)[i] = visit;
  }
}

void observe(const void* address, int bytes, int alignment, bool writes) {
  memory_point();
  expect_aligned(number(address), bytes, alignment);
  if (!watch().active) return;
  expect_allowed(number(address), bytes, writes);
  log_access(number(address), bytes, writes);
}

}  // namespace

MemoryWatch::MemoryWatch(std::vector<Region> regions) {
  Watch& w = watch();
  w = Watch{};
  w.active = true;
  std::erase_if(regions, [](const Region& region) { return region.bytes == 0; });
  w.regions = std::move(regions);
  std::vector<Span> parts;
  for (const Region& region : w.regions)
    parts.push_back({number(region.begin), number(region.begin) + region.bytes, region.granule});
  std::sort(parts.begin(), parts.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::size_t granules = 0;
  for (const Span& part : parts) {
    if (!w.spans.empty() && part.begin <= w.spans.back().end) {
      w.spans.back().end = std::max(w.spans.back().end, part.end);
      w.spans.back().granule = std::min(w.spans.back().granule, part.granule);
    } else {
      w.spans.push_back(part);
    }
  }
  for (Span& span : w.spans) {
    span.first_log = granules;
    granules += (span.end - span.begin) / span.granule + 1;
  }
  if (granules > max_granules) return;
  w.writers.resize(granules);
  w.readers.resize(granules);
}

MemoryWatch::~MemoryWatch() { watch() = Watch{}; }

std::int64_t bytes_read() { return all_bytes_read(); }

void observe_read(const void* from, int bytes, int alignment) {
  all_bytes_read() += bytes;
  observe(from, bytes, alignment, false);
}
void observe_write(const void* to, int bytes, int alignment) { observe(to, bytes, alignment, true); }

void observe_atomic(const void* cell, int bytes) {
  memory_point();
  expect_aligned(number(cell), bytes, bytes);
  if (watch().active) expect_allowed(number(cell), bytes, true);
}

}  // namespace gpubench::cuda::emulation
