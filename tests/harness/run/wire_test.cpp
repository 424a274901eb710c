#include "harness/run/wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "harness/core/file/descriptor.h"
#include "harness/core/hash.h"

namespace gpubench {
namespace {

TEST(Wire, TheChecksumIsTheUsualOne) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926U);  // the check value of CRC-32/ISO-HDLC
  EXPECT_EQ(crc32(""), 0U);
}

TEST(Wire, FramesSurviveBeingCutAnywhere) {
  const std::string bytes = encode_frame({FrameKind::phase, "3 check"}) + encode_frame({FrameKind::done, ""});
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (const std::string& piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
      reader.feed(piece);
      while (auto frame = reader.next()) frames.push_back(*frame);
    }
    ASSERT_EQ(frames.size(), 2U) << cut;
    EXPECT_EQ(frames[0].kind, FrameKind::phase);
    EXPECT_EQ(frames[0].body, "3 check");
    EXPECT_EQ(frames[1].kind, FrameKind::done);
  }
}

TEST(Wire, AnyFlippedBitIsNoticedOrLeavesTheFrameIncomplete) {
  const std::string bytes = encode_frame({FrameKind::record, "1\nabc"});
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    FrameReader reader;
    reader.feed(damaged);
    try {
      EXPECT_FALSE(reader.next().has_value()) << "bit " << bit;  // a longer length: waits for bytes that do not come
      EXPECT_GE(bit / 8, 4U);
      EXPECT_LT(bit / 8, 8U);
    } catch (const WireError&) {
    }
  }
}

TEST(Wire, TextInThePipeIsRefusedAtItsFirstByte) {
  FrameReader reader;
  reader.feed("S");
  EXPECT_THROW((void)reader.next(), WireError);
}

TEST(Wire, AHugeLengthIsRefusedBeforeAnythingIsAwaited) {
  FrameReader reader;
  std::string header = encode_frame({FrameKind::done, ""}).substr(0, 12);
  header[7] = '\x7f';  // length about 2 GiB
  reader.feed(header);
  EXPECT_THROW((void)reader.next(), WireError);
}

TEST(Wire, AMessageBeyondTheCapIsNotSent) {
  EXPECT_THROW((void)encode_frame({FrameKind::record, std::string(largest_frame_bytes, 'x')}), WireError);
}

TEST(Wire, AReaderThatIsGoneIsAnErrorAndNoSignal) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Descriptor writer(ends[0]);
  ::close(ends[1]);

  EXPECT_THROW(write_frame(writer.get(), {FrameKind::done, ""}), WireError);
}

TEST(Wire, TheEndOfTheStreamIsToldApartFromData) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  write_frame(to.get(), {FrameKind::phase, "0 time"});
  to.close();

  FrameReader reader;
  EXPECT_TRUE(read_some(from.get(), reader));
  EXPECT_EQ(reader.next()->body, "0 time");
  EXPECT_FALSE(read_some(from.get(), reader));
}

TEST(Wire, GroupsComeBackAsTheyWere) {
  const GroupList group{{0, "gemm/a/x1"}, {41, "conv/b/x1"}};
  EXPECT_EQ(decode_group(encode_group(group)), group);
  EXPECT_THROW((void)decode_group("1 a"), WireError);
  EXPECT_THROW((void)decode_group("x a\n"), WireError);
}

}  // namespace
}  // namespace gpubench
