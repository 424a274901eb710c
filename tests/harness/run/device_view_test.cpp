// Views of tensors on a device give the results of views on the host, with few transfers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "harness/core/row_view.h"
#include "harness/parity/compare_elements.h"
#include "harness/parity/sample.h"
#include "tests/harness/run/run_fixture.h"
#include "tests/reference/examined_memory.h"

namespace gpubench::sim {
namespace device_view_test {

/// A random tensor on a device that examines its memory itself, and on the host.
struct Twice {
  Twice(DType type, Shape shape, Layout layout) : spec(tensor("x", type, std::move(shape), Role::activation)) {
    spec.layout = std::move(layout);
    bytes.resize(static_cast<std::size_t>(spec.bytes()));
    for (std::size_t i = 0; i < bytes.size() / size_of(type); ++i)
      store(type, bytes.data() + i * size_of(type), static_cast<double>(hash_at(7, i) % 2000) - 1000.0);
    buffer = backend.allocate(bytes.size());
    upload();
  }
  Twice(DType type, const Shape& shape) : Twice(type, shape, Layout::row_major(shape)) {}
  void upload() { backend.write(buffer.data(), bytes); }
  [[nodiscard]] std::byte* at(std::int64_t linear) {
    return bytes.data() + spec.layout.offset(spec.shape, linear) * static_cast<std::int64_t>(size_of(spec.dtype));
  }
  [[nodiscard]] TensorView host() const { return {spec, bytes.data()}; }
  [[nodiscard]] TensorView device() { return {spec, buffer.data(), backend, row_view(spec).value()}; }

  TensorSpec spec;
  std::vector<std::byte> bytes;
  SimBackend backend{parse_script("opaque;examines")};
  Buffer buffer;
};

TEST(DeviceView, SaysWhatAViewOfTheHostsMemorySays) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
    for (const Layout& layout : {Layout::row_major({6, 5, 8}), Layout{{120, 24, 1}, {}}}) {
      Twice x(type, {6, 5, 8}, layout);
      const TensorView host = x.host();
      const TensorView device = x.device();
      EXPECT_TRUE(device.is_on_device());
      for (const std::int64_t i : {0, 7, 8, 41, 239}) EXPECT_EQ(device[i], host[i]);
      EXPECT_EQ(device.at({3, 2, 1}), host.at({3, 2, 1}));
      std::array<double, 5> a{};
      std::array<double, 5> b{};
      host.read({1, 0, 3}, 1, a);
      device.read({1, 0, 3}, 1, b);
      EXPECT_EQ(a, b);
      for (const std::int64_t first : {0, 6, 235}) {
        host.read(first, a);
        device.read(first, b);
        EXPECT_EQ(a, b) << first;
      }
      for (const auto& [run, firsts] : std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>{
               {1, {0, 1, 2, 3}}, {1, {5}}, {1, {0, 239}}, {8, {0, 8, 200}}, {4, {4, 100, 236}}, {16, {16, 224}}}) {
        std::vector<double> from_host(firsts.size() * static_cast<std::size_t>(run));
        std::vector<double> from_device(from_host.size());
        host.gather(firsts, run, from_host);
        device.gather(firsts, run, from_device);
        EXPECT_EQ(from_device, from_host) << run;
      }
      std::vector<std::byte> bits(240 * size_of(type));
      std::vector<std::byte> expected(bits.size());
      host.read_bits(0, 240, expected.data());
      device.read_bits(0, 240, bits.data());
      EXPECT_EQ(bits, expected);
      EXPECT_EQ(device.scan(), host.scan());
    }
  }
}

TEST(DeviceView, IsSurelyEqualWhereEveryBitIs) {
  Twice x(DType::bf16, {3, 1000});
  Twice y(DType::bf16, {3, 1000});
  EXPECT_TRUE(TensorView::surely_equal(x.device(), y.device()));
  y.bytes[5999] ^= std::byte{1};
  y.upload();
  EXPECT_FALSE(TensorView::surely_equal(x.device(), y.device()));
  EXPECT_EQ(difference(x.device(), y.device(), 1).first, 2999);
}

// 100 elements of 2 bytes with offsets of 8 bytes, not 2,000,000 bytes.
TEST(DeviceView, AGatherMovesWhatIsAskedForAndItsPlaces) {
  Twice x(DType::bf16, {1000, 1000});
  std::vector<std::int64_t> firsts;
  for (std::int64_t i = 0; i < 100; ++i) firsts.push_back(9973 * i);
  std::vector<double> found(100);
  const SimTraffic before = x.backend.traffic();

  x.device().gather(firsts, 1, found);

  EXPECT_EQ(x.backend.traffic().read_bytes - before.read_bytes, 200);
  EXPECT_EQ(x.backend.traffic().written_bytes - before.written_bytes, 800);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], x.host()[firsts[i]]);
}

// 245 chunks with 32 bytes of scan each. At most 8 + 4 chunks of extremes are read, those with a NaN, the first of two
// with poison, and those of suspects up to the requested number.
TEST(DeviceView, AScanReadsOnlyTheChunksThatHoldWhatItNames) {
  Twice x(DType::bf16, {1000, 1000});
  store(DType::bf16, x.at(5), std::nan(""));
  store_poison(DType::bf16, x.at(500'000));
  store_poison(DType::bf16, x.at(999'999));
  x.upload();
  const SimTraffic before = x.backend.traffic();

  const Scan found = scan(x.device(), 1);

  const Scan expected = scan(x.host(), 1);
  EXPECT_EQ(found.unwritten, 2);
  EXPECT_EQ(found.first_unwritten, 500'000);
  EXPECT_THAT(found.suspects, ::testing::ElementsAre(5));
  EXPECT_EQ(found.extremes, expected.extremes);
  EXPECT_LE(x.backend.traffic().read_bytes - before.read_bytes, 245 * 32 + (8 + 4 + 2) * 4096 * 2);
}

TEST(DeviceView, AllFormsOfExaminingEqualTheTrustedOnes) {
  for (const std::string script : {"", "opaque", "opaque;examines"}) {
    SimBackend backend(parse_script(script));
    testing::expect_memory_examined_as_on_the_host(backend, 50'000);
  }
}

// Every record of the sim suite with each fault.
TEST(DeviceView, EveryVerdictAndItsReasonAreThoseOfMemoryThatIsReadBack) {
  for (const std::string fault :
       {"", "wrong_element@first.gemm", "unwritten@last.add", "nan@chain.up", "inf@packed.gemm", "guard@clip.dw",
        "changes_input@last.add", "drop@chain.down", "stale@chain.down", "wrong_element/sequence@update.gemm"}) {
    const InProcess there("opaque;examines;" + fault);
    const InProcess here("opaque;" + fault);
    ASSERT_EQ(there.seen.records.size(), here.seen.records.size());
    for (const auto& [id, record] : there.seen.records) {
      const CaseRecord& other = here.seen.records.at(id);
      EXPECT_EQ(record.verdict, other.verdict) << id << ", " << fault;
      EXPECT_EQ(record.reason, other.reason) << id << ", " << fault;
      ASSERT_EQ(record.parity.ops.size(), other.parity.ops.size()) << id << ", " << fault;
      for (std::size_t i = 0; i < record.parity.ops.size(); ++i) {
        EXPECT_EQ(record.parity.ops[i].judged, other.parity.ops[i].judged) << id << ", " << fault;
        EXPECT_EQ(record.parity.ops[i].error_over_bound, other.parity.ops[i].error_over_bound) << id << ", " << fault;
      }
    }
    EXPECT_EQ(there.seen.count(Verdict::pass) == 6, fault.empty());
  }
}

}  // namespace device_view_test
}  // namespace gpubench::sim
