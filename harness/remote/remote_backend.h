// A rank's device in another process, as a backend: what is asked of it is asked of that process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/communicator.h"
#include "harness/remote/remote_process.h"
#include "harness/remote/requests.h"

namespace gpubench {

/// Addresses in this process that stand for memory of another one: nobody can read or write there, and no two buffers
/// of any processes have the same.
class ReservedMemory {
 public:
  /// `bytes` addresses for the buffer of this number. `done` is called when they are given back: with the last copy of
  /// what is returned. Throws BackendError where no addresses are left.
  [[nodiscard]] static std::shared_ptr<void> reserve(const std::shared_ptr<ReservedMemory>& in, std::uint64_t buffer,
                                                     std::size_t bytes, std::function<void()> done);

  /// Where an address is; none: in no buffer. The end of a buffer is a place in it.
  [[nodiscard]] std::optional<Place> find(const std::byte* address) const;
  /// The same for what must be somewhere. Throws BackendError.
  [[nodiscard]] Place at(const std::byte* address) const;

 private:
  struct Reserved {
    std::uint64_t buffer = 0;
    std::size_t bytes = 0;
  };
  mutable std::mutex mutex_;
  std::map<const std::byte*, Reserved> reserved_;
};

/// What one rank of a set needs to be asked: its process and its memory.
struct RemoteRank {
  std::shared_ptr<RemoteProcess> process;
  std::uint64_t set = 0;  ///< number of the ranks that were opened together
  std::shared_ptr<ReservedMemory> memory = std::make_shared<ReservedMemory>();
};

/// Work that is bound in another process, released with this.
class RemoteLaunch final : public LaunchImpl {
 public:
  RemoteLaunch(std::shared_ptr<RemoteProcess> process, std::uint64_t number)
      : process_(std::move(process)), number_(number) {}
  RemoteLaunch(const RemoteLaunch&) = delete;
  RemoteLaunch& operator=(const RemoteLaunch&) = delete;
  ~RemoteLaunch() override { process_->release(RemoteProcess::Held::launch, number_); }
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  std::shared_ptr<RemoteProcess> process_;
  std::uint64_t number_;
};

/// A collective: each member's part of it.
class RemoteCollective final : public LaunchImpl {
 public:
  RemoteCollective(RankGroup members, std::vector<std::shared_ptr<RemoteLaunch>> parts)
      : members_(std::move(members)), parts_(std::move(parts)) {}
  /// Throws BackendError where the rank is no member.
  [[nodiscard]] const RemoteLaunch& of(int rank) const;

 private:
  RankGroup members_;
  std::vector<std::shared_ptr<RemoteLaunch>> parts_;
};

/// The device of a rank. Asks the process once, for what it is. Its launches are run one by one, or by the queues of
/// the rank: sequence() and time() throw Unsupported.
[[nodiscard]] std::unique_ptr<Backend> open_remote_backend(RemoteRank rank);

/// The lanes of a rank, which its process runs.
[[nodiscard]] std::unique_ptr<RankQueues> open_remote_queues(RemoteRank rank);

/// Runs a launch of the rank, or its part of a collective.
void run_remote(const RemoteRank& rank, const RemoteLaunch& launch);

/// A tensor as a request has it: its spec and its place; nowhere where it has no address.
void put_tensor(MessageWriter& to, const Tensor& tensor, const ReservedMemory& memory);

}  // namespace gpubench
