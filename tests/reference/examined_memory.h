// What a backend finds out about its memory itself, against the trusted way: everything read back.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <vector>

#include "harness/core/backend.h"

namespace gpubench::testing {

inline std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t key) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(hash_at(key, i));
  return bytes;
}

inline std::vector<std::byte> read_back(Backend& backend, const std::byte* device, std::size_t bytes) {
  std::vector<std::byte> host(bytes);
  backend.read(host, device);
  return host;
}

/// Odd sizes, at aligned and odd addresses; a bit flipped at both ends and in the middle, and swapped blocks.
inline void expect_fingerprints_of_the_host(Backend& backend, std::size_t max_bytes) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{4097},
                                  max_bytes - 5, max_bytes}) {
    for (const std::size_t start : {0U, 1U, 8U, 48U}) {
      const Buffer buffer = backend.allocate(bytes + start + 1);
      std::byte* const data = buffer.data() + start;
      std::vector<std::byte> content = random_bytes(bytes, bytes + start);
      const auto expect_as_the_host = [&](const std::string& what) {
        backend.write(data, content);
        const std::uint64_t found = backend.fingerprint(data, bytes);
        EXPECT_EQ(found, backend.Backend::fingerprint(data, bytes)) << bytes << " bytes from " << start << what;
        EXPECT_EQ(found, fingerprint(content)) << bytes << " bytes from " << start << what;
        return found;
      };
      const std::uint64_t before = expect_as_the_host("");
      for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
        if (bytes == 0) continue;
        content[at] ^= std::byte{16};
        EXPECT_NE(expect_as_the_host(", a flipped bit"), before) << bytes << " bytes from " << start << ", at " << at;
        content[at] ^= std::byte{16};
      }
      if (bytes < 64) continue;
      std::swap_ranges(content.begin(), content.begin() + 16, content.end() - 16);
      EXPECT_NE(expect_as_the_host(", swapped blocks"), before) << bytes << " bytes from " << start;
    }
  }
}

/// Runs of odd and even lengths, at addresses of every alignment, in any order.
inline void expect_gathered_runs(Backend& backend, std::size_t runs) {
  const Buffer buffer = backend.allocate(20'000);
  backend.write(buffer.data(), random_bytes(20'000, 1));
  const std::vector<std::byte> all = read_back(backend, buffer.data(), 20'000);
  for (const std::size_t run_bytes : {1U, 2U, 4U, 8U, 16U, 3U, 24U, 48U, 515U}) {
    for (const std::size_t alignment : {1U, 2U, 4U, 16U}) {
      std::vector<std::int64_t> offsets(runs);
      for (std::size_t i = 0; i < runs; ++i) {
        const std::size_t places = (all.size() - run_bytes) / alignment + 1;
        offsets[i] = static_cast<std::int64_t>(hash_at(run_bytes + alignment, i) % places * alignment);
      }
      std::vector<std::byte> found(runs * run_bytes, std::byte{0xEE});
      std::vector<std::byte> trusted(found.size());

      backend.gather(found, buffer.data(), offsets);
      backend.Backend::gather(trusted, buffer.data(), offsets);

      EXPECT_EQ(found, trusted) << run_bytes << " bytes, " << alignment;
      for (std::size_t i = 0; i < runs; ++i) {
        const std::span<const std::byte> run = std::span(all).subspan(static_cast<std::size_t>(offsets[i]), run_bytes);
        ASSERT_TRUE(std::equal(run.begin(), run.end(), found.begin() + static_cast<std::ptrdiff_t>(i * run_bytes)));
      }
    }
  }
  backend.gather({}, buffer.data(), {});
}

/// Every type; dense and as a part of wider rows; poison, NaN and infinities among random bits, and none of them.
inline void expect_scans_of_the_host(Backend& backend) {
  constexpr std::int64_t chunk = scan_chunk_elements;
  const std::vector<RowView> shapes{{1, 1, 1},     {1, chunk, chunk}, {1, 2 * chunk + 5, 0}, {3, 1000, 1000},
                                    {50, 96, 288}, {77, 65, 100},     {700, 3, 5},           {5000, 1, 7}};
  for (const DType type :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2, DType::i32, DType::u8}) {
    const std::size_t size = size_of(type);
    for (const RowView& rows : shapes) {
      const auto span = static_cast<std::size_t>((rows.rows - 1) * rows.stride + rows.columns);
      for (const bool harmless : {true, false}) {
        for (const std::size_t start : {std::size_t{0}, size}) {
          const Buffer buffer = backend.allocate(start + span * size);
          std::vector<std::byte> content = random_bytes(span * size, span + size);
          const std::vector<double> values{1.0, -0.5, 300.0, std::numeric_limits<double>::quiet_NaN(),
                                           -std::numeric_limits<double>::infinity()};
          for (std::size_t i = 0; i < span; ++i) {
            const std::uint64_t random = hash_at(3, i);
            if (harmless || random % 16 == 0)
              store(type, content.data() + i * size, values[random / 16 % (harmless ? 3 : 5)]);
            if (!harmless && random % 16 == 1) store_poison(type, content.data() + i * size);
          }
          backend.write(buffer.data() + start, content);
          std::vector<ChunkScan> found(static_cast<std::size_t>(scan_chunks(rows.elements())));
          std::vector<ChunkScan> trusted(found.size());

          backend.scan(found, buffer.data() + start, type, rows);
          backend.Backend::scan(trusted, buffer.data() + start, type, rows);

          EXPECT_EQ(found == trusted, true)
              << name(type) << ", " << rows.rows << " x " << rows.columns << ", " << rows.stride << " from " << start;
          std::int64_t elements = 0;
          for (const ChunkScan& one : found) elements += one.finite + one.suspects();
          EXPECT_EQ(elements, rows.elements());
          if (harmless && is_float(type) && size > 1) {
            EXPECT_EQ(found.front().suspects(), 0);
          }
        }
      }
    }
  }
}

/// Copies and fills, of odd sizes at odd addresses, and nothing beside them.
inline void expect_copies_and_fills(Backend& backend) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{100'003}}) {
    for (const std::size_t start : {0U, 3U, 8U}) {
      const Buffer from = backend.allocate(bytes + 16);
      const Buffer to = backend.allocate(bytes + 16);
      std::vector<std::byte> expected(bytes + 16, std::byte{0});
      backend.write(from.data(), random_bytes(bytes + 16, bytes));
      backend.write(to.data(), expected);
      const std::vector<std::byte> source = read_back(backend, from.data() + 1, bytes);

      backend.copy(to.data() + start, from.data() + 1, bytes);
      std::copy(source.begin(), source.end(), expected.begin() + static_cast<std::ptrdiff_t>(start));
      EXPECT_EQ(read_back(backend, to.data(), bytes + 16), expected) << bytes << " bytes to " << start;

      const std::vector<std::byte> pattern = random_bytes(4, 9);
      backend.fill(to.data() + start, pattern, bytes);
      for (std::size_t i = 0; i < bytes; ++i) expected[start + i] = pattern[i % 4];
      EXPECT_EQ(read_back(backend, to.data(), bytes + 16), expected) << bytes << " bytes from " << start;
    }
  }
}

/// All of them; `max_bytes` is the size of the largest storage that a fingerprint is made of.
inline void expect_memory_examined_as_on_the_host(Backend& backend, std::size_t max_bytes) {
  expect_fingerprints_of_the_host(backend, max_bytes);
  expect_gathered_runs(backend, 37);
  expect_scans_of_the_host(backend);
  expect_copies_and_fills(backend);
}

}  // namespace gpubench::testing
