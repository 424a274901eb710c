#include "harness/core/backend.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>

#include "harness/core/error.h"

namespace gpubench {
namespace {

constexpr std::size_t piece_bytes = std::size_t{4} << 20U;

template <class Work>
void in_pieces(std::size_t bytes, const Work& work) {
  for (std::size_t first = 0; first < bytes; first += piece_bytes) work(first, std::min(piece_bytes, bytes - first));
}

}  // namespace

std::string property(const DeviceInfo& device, std::string_view name) {
  for (const auto& [key, value] : device.properties) {
    if (key == name) return value;
  }
  return "";
}

std::string RankPlace::to_string() const { return gpu.empty() ? host : host + ", GPU " + gpu; }

std::vector<RankPlace> rank_places(const DeviceInfo& device) {
  std::vector<RankPlace> places;
  std::istringstream text(property(device, device_property::rank_places));
  for (std::string word; std::getline(text, word, ',');) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    places.push_back({word.substr(0, colon), word.substr(std::min(colon + 1, word.size()))});
  }
  return places;
}

std::string rank_places_text(std::span<const RankPlace> places) {
  std::string text;
  for (const RankPlace& place : places) {
    if (!text.empty()) text += ',';
    for (const char c : place.host) text += c == ',' || c == ':' ? '_' : c;  // host names contain neither
    if (!place.gpu.empty()) text += ':' + place.gpu;
  }
  return text;
}

std::optional<double> property_number(const DeviceInfo& device, std::string_view name) {
  const std::string text = property(device, name);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0.0 && value < 1e300 ? std::optional(value) : std::nullopt;
}

std::string cpu_isa_text(const DeviceInfo& device) {
  const std::string isa = property(device, device_property::cpu_isa);
  return isa.empty() ? "" : "cpu isa " + isa + ": " + property(device, device_property::cpu_isa_reason);
}

Buffer Backend::allocate_in(Memory memory, std::size_t /*bytes*/) {
  throw Unsupported("the " + device().kind + " backend can't place tensors in " + std::string(name(memory)));
}

Buffer Backend::allocate_on(int rank, std::size_t bytes) {
  if (rank != 0)
    throw BackendError("the " + device().kind + " backend has rank 0 only, not rank " + std::to_string(rank));
  return allocate(bytes);
}

void Backend::read_runs(std::span<std::byte> host, std::span<const std::byte* const> from) {
  if (from.empty()) return;
  const std::size_t bytes = host.size() / from.size();
  for (std::size_t i = 0; i < from.size(); ++i) read(host.subspan(i * bytes, bytes), from[i]);
}

void Backend::fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) {
  if (pattern.empty() || bytes == 0) return;
  constexpr std::size_t about = std::size_t{64} << 10U;
  const std::size_t repeats = std::max<std::size_t>(1, std::min(about, bytes) / pattern.size());
  std::vector<std::byte> block(repeats * pattern.size());
  for (std::size_t i = 0; i < block.size(); i += pattern.size())
    std::memcpy(block.data() + i, pattern.data(), pattern.size());
  for (std::size_t done = 0; done < bytes; done += block.size()) {
    write(device + done, std::span(block).first(std::min(block.size(), bytes - done)));
  }
}

void Backend::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (host_visible()) return write(to, {from, bytes});
  std::vector<std::byte> piece(std::min(bytes, piece_bytes));
  in_pieces(bytes, [&](std::size_t first, std::size_t count) {
    read(std::span(piece).first(count), from + first);
    write(to + first, std::span(piece).first(count));
  });
}

void Backend::gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) {
  if (offsets.empty()) return;
  const std::size_t bytes = host.size() / offsets.size();
  for (std::size_t i = 0; i < offsets.size(); ++i) read(host.subspan(i * bytes, bytes), device + offsets[i]);
}

void Backend::scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) {
  const auto size = static_cast<std::int64_t>(size_of(type));
  const std::int64_t elements = rows.elements();
  const bool dense = rows.rows == 1 || rows.stride == rows.columns;
  const std::int64_t columns = dense ? elements : rows.columns;
  constexpr std::int64_t chunks_at_once = 64;
  std::vector<std::byte> piece(
      static_cast<std::size_t>(size * std::min(elements, chunks_at_once * scan_chunk_elements)));
  for (std::int64_t first = 0; first < elements;) {
    const std::int64_t count = std::min(elements - first, chunks_at_once * scan_chunk_elements);
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t row = (first + done) / columns;
      const std::int64_t column = (first + done) % columns;
      const std::int64_t run = std::min(count - done, columns - column);
      read(std::span(piece).subspan(static_cast<std::size_t>(size * done), static_cast<std::size_t>(size * run)),
           device + size * (row * rows.stride + column));
      done += run;
    }
    for (std::int64_t at = 0; at < count; at += scan_chunk_elements) {
      chunks[static_cast<std::size_t>((first + at) / scan_chunk_elements)] =
          scan_chunk(type, piece.data() + size * at, std::min(scan_chunk_elements, count - at));
    }
    first += count;
  }
}

std::uint64_t Backend::fingerprint(const std::byte* device, std::size_t bytes) {
  if (host_visible()) return gpubench::fingerprint({device, bytes});
  std::vector<std::byte> piece(std::min(bytes, piece_bytes));
  std::uint64_t terms = 0;
  in_pieces(bytes, [&](std::size_t first, std::size_t count) {
    read(std::span(piece).first(count), device + first);
    terms += fingerprint_terms(std::span(piece).first(count), first / fingerprint_term_bytes);
  });
  return fingerprint_of(terms, bytes);
}

Launch Backend::launch_of(std::function<void(void* stream)>) {
  throw Unsupported("the " + device().kind + " backend can't run external work");
}

}  // namespace gpubench
