// A rank's device in another process, as a backend: each call becomes a request to that process.
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

/// Inaccessible addresses (PROT_NONE) that stand for buffers of other processes; unique among the buffers of all ranks.
class ReservedMemory {
 public:
  /// `bytes` addresses for buffer number `buffer`. The last copy of the result to be destroyed calls `done`.
  /// Throws BackendError when no addresses are left.
  [[nodiscard]] static std::shared_ptr<void> reserve(const std::shared_ptr<ReservedMemory>& in, std::uint64_t buffer,
                                                     std::size_t bytes, std::function<void()> done);

  /// The buffer and offset of an address; nullopt: in no buffer. The end of a buffer belongs to it.
  [[nodiscard]] std::optional<Place> find(const std::byte* address) const;
  /// Throws BackendError for an address in no buffer.
  [[nodiscard]] Place at(const std::byte* address) const;

 private:
  struct Reserved {
    std::uint64_t buffer = 0;
    std::size_t bytes = 0;
  };
  mutable std::mutex mutex_;
  std::map<const std::byte*, Reserved> reserved_;
};

struct RemoteRank {
  std::shared_ptr<RemoteProcess> process;
  std::uint64_t set = 0;  ///< number of the ranks that were opened together
  std::shared_ptr<ReservedMemory> memory = std::make_shared<ReservedMemory>();
};

/// A launch bound in another process; the destructor releases it there.
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

class RemoteCollective final : public LaunchImpl {
 public:
  RemoteCollective(RankGroup members, std::vector<std::shared_ptr<RemoteLaunch>> parts)
      : members_(std::move(members)), parts_(std::move(parts)) {}
  /// Throws BackendError if the rank is not a member.
  [[nodiscard]] const RemoteLaunch& of(int rank) const;

 private:
  RankGroup members_;
  std::vector<std::shared_ptr<RemoteLaunch>> parts_;
};

/// The device of a rank, described once, on opening. Launches run one by one, or through the rank's queues:
/// sequence() and time() throw Unsupported.
[[nodiscard]] std::unique_ptr<Backend> open_remote_backend(RemoteRank rank);

/// The lanes of a rank, run by its process.
[[nodiscard]] std::unique_ptr<RankQueues> open_remote_queues(RemoteRank rank);

/// Runs a launch of the rank, or its part of a collective.
void run_remote(const RemoteRank& rank, const RemoteLaunch& launch);

/// A tensor as spec and Place; a tensor without an address gets Place{}.
void put_tensor(MessageWriter& to, const Tensor& tensor, const ReservedMemory& memory);

}  // namespace gpubench
