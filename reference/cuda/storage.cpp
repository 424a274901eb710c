#include "reference/cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <vector>

#include "reference/cuda/kernels/runtime.h"
#include "reference/cuda/runtime.h"

namespace gpubench::cuda {
namespace {

constexpr std::size_t scratch_bytes = std::size_t{4} << 20U;  // per direction
constexpr std::size_t word_bytes = sizeof(std::uint64_t);

static_assert(sizeof(ScannedChunk) == sizeof(ChunkScan));

bool is_aligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace

StorageKernels::StorageKernels(Backend& backend, cudaStream_t stream)
    : backend_(backend), stream_(stream), questions_(allocate(scratch_bytes)), answers_(allocate(scratch_bytes)) {}

void StorageKernels::fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) {
  if (pattern.empty() || word_bytes % pattern.size() != 0 || !is_aligned(device, word_bytes))
    return backend_.Backend::fill(device, pattern, bytes);
  std::array<std::byte, word_bytes> repeated{};
  for (std::size_t i = 0; i < word_bytes; ++i) repeated[i] = pattern[i % pattern.size()];
  const std::size_t words = bytes / word_bytes;
  launch_fill({reinterpret_cast<std::uint64_t*>(device), std::bit_cast<std::uint64_t>(repeated),
               static_cast<std::int64_t>(words)},
              stream_);
  check_launch("the fill kernel");
  backend_.write(device + words * word_bytes, std::span(repeated).first(bytes % word_bytes));
}

// In batches that fit in the scratch memory.
void StorageKernels::gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) {
  if (offsets.empty() || host.empty()) return;
  const std::size_t run_bytes = host.size() / offsets.size();
  const std::size_t at_once = std::min(scratch_bytes / sizeof(std::int64_t), scratch_bytes / run_bytes);
  if (at_once == 0) return backend_.Backend::gather(host, device, offsets);
  for (std::size_t first = 0; first < offsets.size(); first += at_once) {
    const std::span<const std::int64_t> some = offsets.subspan(first, std::min(at_once, offsets.size() - first));
    const std::uint64_t places = std::accumulate(
        some.begin(), some.end(), std::uint64_t{reinterpret_cast<std::uintptr_t>(device) | run_bytes},
        [](std::uint64_t all, std::int64_t offset) { return all | static_cast<std::uint64_t>(offset); });
    backend_.write(questions_.get(), std::as_bytes(some));
    launch_gather({device, reinterpret_cast<const std::int64_t*>(questions_.get()), answers_.get(),
                   static_cast<std::int64_t>(some.size()), static_cast<std::int64_t>(run_bytes),
                   1 << std::min(4, std::countr_zero(places))},
                  stream_);
    check_launch("the gather kernel");
    backend_.read(host.subspan(first * run_bytes, some.size() * run_bytes), answers_.get());
  }
}

void StorageKernels::scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) {
  if (!is_aligned(device, size_of(type))) return backend_.Backend::scan(chunks, device, type, rows);
  const bool dense = rows.rows == 1 || rows.stride == rows.columns;
  const ScanPattern look = scan_pattern(type);
  ScanArgs args{device, static_cast<int>(size_of(type))};
  args.rows = dense ? 1 : rows.rows;
  args.columns = dense ? rows.elements() : rows.columns;
  args.stride = rows.stride;
  args.mask = look.mask;
  args.pattern = look.pattern;
  args.poison = look.poison;
  args.infinity = look.infinity;
  args.magnitude = look.magnitude;
  args.chunk_elements = scan_chunk_elements;
  args.found = reinterpret_cast<ScannedChunk*>(answers_.get());
  constexpr std::size_t at_once = scratch_bytes / sizeof(ScannedChunk);
  std::vector<ScannedChunk> found(std::min(at_once, chunks.size()));
  for (std::size_t first = 0; first < chunks.size(); first += at_once) {
    const std::size_t count = std::min(at_once, chunks.size() - first);
    args.first_chunk = static_cast<std::int64_t>(first);
    args.chunk_count = static_cast<std::int64_t>(count);
    launch_scan(args, stream_);
    check_launch("the scan kernel");
    backend_.read(std::as_writable_bytes(std::span(found).first(count)), answers_.get());
    std::transform(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count),
                   chunks.begin() + static_cast<std::ptrdiff_t>(first), [](const ScannedChunk& one) {
                     return ChunkScan{one.unwritten, one.nan, one.infinite, one.finite, one.largest, one.smallest};
                   });
  }
}

std::uint64_t StorageKernels::fingerprint(const std::byte* device, std::size_t bytes) {
  if (!is_aligned(device, fingerprint_term_bytes)) return backend_.Backend::fingerprint(device, bytes);
  const FingerprintArgs args{reinterpret_cast<const std::uint64_t*>(device), static_cast<std::int64_t>(bytes),
                             reinterpret_cast<std::uint64_t*>(answers_.get())};
  launch_fingerprint(args, stream_);
  check_launch("the fingerprint kernel");
  std::vector<std::uint64_t> parts(static_cast<std::size_t>(fingerprint_parts(args.bytes)));
  backend_.read(std::as_writable_bytes(std::span(parts)), answers_.get());
  return fingerprint_of(std::accumulate(parts.begin(), parts.end(), std::uint64_t{0}), bytes);
}

}  // namespace gpubench::cuda
