#include "harness/remote/remote_backend.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/row_view.h"
#include "harness/remote/requests.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

using Held = RemoteProcess::Held;

class RemotePlan final : public PlanImpl {
 public:
  RemotePlan(std::shared_ptr<RemoteProcess> process, MessageReader& from)
      : process_(std::move(process)),
        number_(from.get<std::uint64_t>()),
        implementation_(from.text()),
        workspace_bytes_(from.get<std::uint64_t>()),
        choice_(from.get<Choice>()),
        rejected_(from.list([&from] { return from.text(); })) {}
  RemotePlan(const RemotePlan&) = delete;
  RemotePlan& operator=(const RemotePlan&) = delete;
  ~RemotePlan() override { process_->release(Held::plan, number_); }

  [[nodiscard]] std::string implementation() const override { return implementation_; }
  [[nodiscard]] std::size_t workspace_bytes() const override { return workspace_bytes_; }
  [[nodiscard]] Choice choice() const override { return choice_; }
  [[nodiscard]] std::vector<std::string> rejected() const override { return rejected_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  std::shared_ptr<RemoteProcess> process_;
  std::uint64_t number_;
  std::string implementation_;
  std::size_t workspace_bytes_;
  Choice choice_;
  std::vector<std::string> rejected_;
};

class RemoteBackend final : public Backend {
 public:
  explicit RemoteBackend(RemoteRank rank) : rank_(std::move(rank)) {
    const std::vector<std::byte> answer = ask(RemoteProcess::request(Request::describe));
    MessageReader reader(answer);
    device_ = get_device(reader);
    fused_ = reader.list([&reader] {
      const std::string name = reader.text();
      const OpDefinition* const definition = find_definition(name);
      if (definition == nullptr) throw MessageError(fmt::format("device description names an unknown op '{}'", name));
      return FusionClaim{definition->kind(), reader.get_bool()};
    });
  }

  [[nodiscard]] const DeviceInfo& device() const override { return device_; }
  [[nodiscard]] std::span<const FusionClaim> fused_ops() const override { return fused_; }

  [[nodiscard]] Buffer allocate(std::size_t bytes) override {
    MessageWriter request = RemoteProcess::request(Request::allocate);
    request.put(static_cast<std::uint64_t>(bytes));
    const std::vector<std::byte> answer = ask(request);
    const auto number = MessageReader(answer).get<std::uint64_t>();
    std::shared_ptr<void> owner = ReservedMemory::reserve(
        rank_.memory, number, bytes, [process = rank_.process, number] { process->release(Held::buffer, number); });
    auto* const data = static_cast<std::byte*>(owner.get());
    return {data, bytes, std::move(owner)};
  }

  void write(std::byte* device, std::span<const std::byte> host) override {
    for (std::size_t done = 0; done < host.size(); done += max_piece_bytes) {
      MessageWriter request = about(Request::write, device + done);
      request.put(host.subspan(done, std::min(max_piece_bytes, host.size() - done)));
      (void)ask(request);
    }
  }
  void read(std::span<std::byte> host, const std::byte* device) override {
    for (std::size_t done = 0; done < host.size(); done += max_piece_bytes) {
      const std::span<std::byte> piece = host.subspan(done, std::min(max_piece_bytes, host.size() - done));
      MessageWriter request = about(Request::read, device + done);
      request.put(static_cast<std::uint64_t>(piece.size()));
      take(piece, ask(request));
    }
  }
  void read_runs(std::span<std::byte> host, std::span<const std::byte* const> from) override {
    if (from.empty() || host.empty()) return;
    const std::size_t run = host.size() / from.size();
    const std::size_t at_once = std::max<std::size_t>(1, std::min(max_piece_bytes / run, max_piece_bytes / 16));
    for (std::size_t done = 0; done < from.size(); done += at_once) {
      const std::span<const std::byte* const> some = from.subspan(done, std::min(at_once, from.size() - done));
      MessageWriter request = RemoteProcess::request(Request::runs);
      request.put(static_cast<std::uint64_t>(run));
      request.put_list(some, [&](const std::byte* place) { put_place(request, rank_.memory->at(place)); });
      take(host.subspan(done * run, some.size() * run), ask(request));
    }
  }
  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) override {
    if (pattern.empty() || bytes == 0) return;
    MessageWriter request = about(Request::fill, device);
    request.put(pattern);
    request.put(static_cast<std::uint64_t>(bytes));
    (void)ask(request);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes == 0) return;
    MessageWriter request = about(Request::copy, to);
    put_place(request, rank_.memory->at(from));
    request.put(static_cast<std::uint64_t>(bytes));
    (void)ask(request);
  }
  [[nodiscard]] bool host_visible() const override { return false; }

  [[nodiscard]] bool examines_memory() const override { return true; }
  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) override {
    if (offsets.empty() || host.empty()) return;
    const std::size_t run = host.size() / offsets.size();
    const std::size_t at_once = std::max<std::size_t>(1, std::min(max_piece_bytes / run, max_piece_bytes / 8));
    for (std::size_t done = 0; done < offsets.size(); done += at_once) {
      const std::span<const std::int64_t> some = offsets.subspan(done, std::min(at_once, offsets.size() - done));
      MessageWriter request = about(Request::gather, device);
      request.put(static_cast<std::uint64_t>(run));
      request.put_list(some);
      take(host.subspan(done * run, some.size() * run), ask(request));
    }
  }
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) override {
    if (chunks.empty()) return;
    MessageWriter request = about(Request::scan, device);
    request.put(type);
    for (const std::int64_t number : {rows.rows, rows.columns, rows.stride}) request.put(number);
    take(std::as_writable_bytes(chunks), ask(request));
  }
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes) override {
    MessageWriter request = about(Request::print, device);
    request.put(static_cast<std::uint64_t>(bytes));
    const std::vector<std::byte> answer = ask(request);
    return MessageReader(answer).get<std::uint64_t>();
  }

  [[nodiscard]] bool keeps(const OpCall& call, std::span<const TensorSpec> tensors) override {
    MessageWriter request = RemoteProcess::request(Request::keeps);
    put_call(request, call);
    put_specs(request, tensors);
    const std::vector<std::byte> answer = ask(request);
    return MessageReader(answer).get_bool();
  }

  // options.judge is not sent: the serving process makes it (ServerSetup::judge).
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    MessageWriter request = RemoteProcess::request(Request::plan);
    put_call(request, call);
    put_specs(request, tensors);
    request.put(options.pinned);
    request.put(options.remembered);
    request.put(options.deterministic);
    const std::vector<std::byte> answer = ask(request);
    MessageReader reader(answer);
    return std::make_shared<RemotePlan>(rank_.process, reader);
  }

  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    const auto* own = dynamic_cast<const RemotePlan*>(plan.get());
    if (own == nullptr) throw BackendError("the plan is empty or of another backend; expected one of this rank");
    MessageWriter request = RemoteProcess::request(Request::bind);
    request.put(own->number());
    request.put_list(tensors, [&](const Tensor& tensor) { put_tensor(request, tensor, *rank_.memory); });
    put_place(request, workspace.bytes == 0 ? Place{} : rank_.memory->at(workspace.data));
    request.put(static_cast<std::uint64_t>(workspace.bytes));
    const std::vector<std::byte> answer = ask(request);
    return std::make_shared<RemoteLaunch>(rank_.process, MessageReader(answer).get<std::uint64_t>());
  }

  [[nodiscard]] Launch sequence(std::span<const Launch>, const Schedule&) override { return refuse_sequence(); }
  [[nodiscard]] RoundTimes time(std::span<const Launch>, const RoundPlan&) override { refuse_sequence(); }

  void run(const Launch& launch) override {
    const auto* own = dynamic_cast<const RemoteLaunch*>(launch.get());
    if (own == nullptr) throw BackendError("the launch is empty or of another backend; expected one of this rank");
    run_remote(rank_, *own);
  }

 private:
  [[noreturn]] static Launch refuse_sequence() {
    throw Unsupported("a rank in another process cannot run a sequence alone; run it with all ranks of its set");
  }
  [[nodiscard]] std::vector<std::byte> ask(const MessageWriter& request) { return rank_.process->ask(request); }
  [[nodiscard]] MessageWriter about(Request kind, const std::byte* address) const {
    MessageWriter request = RemoteProcess::request(kind);
    put_place(request, rank_.memory->at(address));
    return request;
  }
  static void take(std::span<std::byte> to, const std::vector<std::byte>& answer) {
    const std::span<const std::byte> bytes = MessageReader(answer).bytes();
    if (bytes.size() != to.size())
      throw MessageError(fmt::format("answer has {} bytes; expected {}", bytes.size(), to.size()));
    std::memcpy(to.data(), bytes.data(), bytes.size());
  }

  RemoteRank rank_;
  DeviceInfo device_;
  std::vector<FusionClaim> fused_;
};

}  // namespace

const RemoteLaunch& RemoteCollective::of(int rank) const {
  const std::optional<int> place = members_.position(rank);
  if (!place)
    throw BackendError(
        fmt::format("rank {} is not a member of the collective's group: {}", rank, members_.to_string()));
  return *parts_[static_cast<std::size_t>(*place)];
}

std::unique_ptr<Backend> open_remote_backend(RemoteRank rank) {
  return std::make_unique<RemoteBackend>(std::move(rank));
}

void run_remote(const RemoteRank& rank, const RemoteLaunch& launch) {
  MessageWriter request = RemoteProcess::request(Request::run);
  request.put(rank.set);
  request.put(launch.number());
  (void)rank.process->ask(request);
}

void put_tensor(MessageWriter& to, const Tensor& tensor, const ReservedMemory& memory) {
  put_spec(to, tensor.spec);
  put_place(to, tensor.data == nullptr ? Place{} : memory.at(tensor.data));
}

std::shared_ptr<void> ReservedMemory::reserve(const std::shared_ptr<ReservedMemory>& in, std::uint64_t buffer,
                                              std::size_t bytes, std::function<void()> done) {
  // One more byte, so that the end of a buffer differs from the beginning of the next.
  const std::size_t length = bytes + 1;
  void* const data = ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    throw BackendError(
        fmt::format("cannot reserve addresses for {} bytes of another process: {}", bytes, std::strerror(errno)));
  {
    const std::lock_guard lock(in->mutex_);
    in->reserved_[static_cast<const std::byte*>(data)] = {buffer, bytes};
  }
  return {data, [in, length, done = std::move(done)](void* reserved) {
            {
              const std::lock_guard lock(in->mutex_);
              in->reserved_.erase(static_cast<const std::byte*>(reserved));
            }
            ::munmap(reserved, length);
            done();
          }};
}

std::optional<Place> ReservedMemory::find(const std::byte* address) const {
  const std::lock_guard lock(mutex_);
  const auto after = reserved_.upper_bound(address);
  if (after == reserved_.begin()) return std::nullopt;
  const auto& [first, reserved] = *std::prev(after);
  const auto offset = static_cast<std::uint64_t>(address - first);
  return offset > reserved.bytes ? std::nullopt : std::optional(Place{reserved.buffer, offset});
}

Place ReservedMemory::at(const std::byte* address) const {
  const std::optional<Place> place = find(address);
  if (!place) throw BackendError("address is in no buffer of the rank's process");
  return *place;
}

}  // namespace gpubench
