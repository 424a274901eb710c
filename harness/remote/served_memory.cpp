#include "harness/remote/served_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "harness/core/row_view.h"

namespace gpubench {
namespace {

std::uint64_t expect_piece(std::uint64_t bytes) {
  if (bytes > max_piece_bytes)
    throw MessageError(fmt::format("{} bytes requested; the limit per message is {}", bytes, max_piece_bytes));
  return bytes;
}

}  // namespace

std::byte* ServedMemory::at(const Place& place, std::uint64_t bytes) {
  if (place.buffer == 0) return nullptr;
  const Buffer& buffer = buffers_.at(place.buffer);
  if (place.offset > buffer.bytes() || bytes > buffer.bytes() - place.offset)
    throw MessageError(
        fmt::format("{} bytes requested at offset {} of a buffer of {} bytes", bytes, place.offset, buffer.bytes()));
  return buffer.data() + place.offset;
}

std::byte* ServedMemory::mapped_address(const Place& place, std::uint64_t bytes) {
  if (place.buffer == 0) throw MessageError("requested memory is in no buffer");
  return at(place, bytes);
}

void ServedMemory::act(Request request, Backend& device, MessageReader& message, MessageWriter& answer) {
  if (request == Request::runs) return runs(device, message, answer);
  const Place place = get_place(message);
  if (request == Request::write) {
    const std::span<const std::byte> bytes = message.bytes();
    device.write(mapped_address(place, bytes.size()), bytes);
  } else if (request == Request::read) {
    std::vector<std::byte> bytes(expect_piece(message.get<std::uint64_t>()));
    device.read(bytes, mapped_address(place, bytes.size()));
    answer.put(std::span<const std::byte>(bytes));
  } else if (request == Request::fill) {
    const std::span<const std::byte> pattern = message.bytes();
    const auto count = message.get<std::uint64_t>();
    device.fill(mapped_address(place, count), pattern, count);
  } else if (request == Request::copy) {
    const Place from = get_place(message);
    const auto count = message.get<std::uint64_t>();
    device.copy(mapped_address(place, count), mapped_address(from, count), count);
  } else if (request == Request::gather) {
    gather(device, place, message, answer);
  } else if (request == Request::scan) {
    scan(device, place, message, answer);
  } else {
    const auto count = message.get<std::uint64_t>();
    answer.put(device.fingerprint(mapped_address(place, count), count));
  }
}

void ServedMemory::runs(Backend& device, MessageReader& message, MessageWriter& answer) {
  const auto run = message.get<std::uint64_t>();
  if (run > max_piece_bytes) throw MessageError("run of bytes is longer than a message may be");
  const std::vector<const std::byte*> from =
      message.list([&]() -> const std::byte* { return mapped_address(get_place(message), run); });
  std::vector<std::byte> bytes(expect_piece(run * from.size()));
  device.read_runs(bytes, from);
  answer.put(std::span<const std::byte>(bytes));
}

void ServedMemory::gather(Backend& device, const Place& place, MessageReader& message, MessageWriter& answer) {
  const auto run = message.get<std::uint64_t>();
  const std::vector<std::int64_t> offsets = message.numbers<std::int64_t>();
  if (run > max_piece_bytes) throw MessageError("run of bytes is longer than a message may be");
  for (const std::int64_t offset : offsets) {
    const std::uint64_t from =
        place.offset + static_cast<std::uint64_t>(offset);  // a negative sum wraps and is rejected
    (void)mapped_address({place.buffer, from}, run);
  }
  std::vector<std::byte> bytes(expect_piece(run * offsets.size()));
  device.gather(bytes, mapped_address(place, 0), offsets);
  answer.put(std::span<const std::byte>(bytes));
}

void ServedMemory::scan(Backend& device, const Place& place, MessageReader& message, MessageWriter& answer) {
  const auto type = message.get<DType>();
  RowView rows;
  for (std::int64_t* number : {&rows.rows, &rows.columns, &rows.stride}) *number = message.get<std::int64_t>();
  for (const std::int64_t number : {rows.rows, rows.columns, rows.stride}) {
    if (number < 0 || number > max_tensor_bytes) throw MessageError("scan has invalid rows, columns or stride");
  }
  const double last = static_cast<double>(rows.rows) * static_cast<double>(std::max(rows.stride, rows.columns));
  if (last > static_cast<double>(max_tensor_bytes)) throw MessageError("scan covers more than the largest tensor");
  const std::int64_t span = rows.elements() == 0 ? 0 : (rows.rows - 1) * rows.stride + rows.columns;
  const std::byte* data = mapped_address(place, static_cast<std::uint64_t>(bytes_of(type, span)));
  const auto count = static_cast<std::size_t>(scan_chunks(rows.elements()));
  if (count * sizeof(ChunkScan) > max_message_bytes)
    throw MessageError("results of the scan do not fit in one message");
  std::vector<ChunkScan> chunks(count);
  device.scan(chunks, data, type, rows);
  answer.put(std::as_bytes(std::span(chunks)));
}

}  // namespace gpubench
