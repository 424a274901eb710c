// Several devices that soak the same cases on the same data vote: a device whose bits are another's nowhere else is
// wrong, even where the textbook's bounds let it pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/verify/soak.h"

namespace gpubench {

/// What has to be alike for two devices to leave the same bits: "NVIDIA H200, 132 units, cublaslt 13.1, cudnn 9.12".
[[nodiscard]] std::string model_of(const DeviceInfo& device);

class SoakVote {
 public:
  explicit SoakVote(std::size_t devices) : models_(devices) {}

  /// Call first of all for each device.
  void opened(std::size_t device, const DeviceInfo& info) { models_.at(device) = model_of(info); }

  // Each returns what comes out of it, a sentence for each finding: a launch is voted on once every device that has not
  // ended has left it.

  /// "epoch 3, CASE: device 2 differs from the other 3 in op 'up' (gemm, by X), 'y'"; "devices 0 and 1 differ in op
  /// ...: there is no majority to say which is right".
  std::vector<std::string> judged(std::size_t device, const JudgedLaunch& launch);
  /// Where the others have what this launch left: then it is the judged one that is wrong.
  std::vector<std::string> diverged(std::size_t device, const Divergence& divergence);
  /// The device takes no part from now on.
  std::vector<std::string> ended(std::size_t device);

  /// Judged launches that two devices or more have left, and agreed on or not.
  [[nodiscard]] std::int64_t voted() const { return voted_; }
  /// Why what some devices left was compared with nobody's, each reason once.
  [[nodiscard]] const std::set<std::string>& not_compared() const { return not_compared_; }

 private:
  using Devices = std::vector<std::size_t>;
  struct Ballot {
    std::map<std::size_t, std::vector<SoakedValue>> left;              ///< by device
    std::vector<std::pair<std::size_t, Divergence>> waiting;           ///< until it has been voted on
    std::map<std::size_t, std::vector<std::uint64_t>> prints, others;  ///< then: its own, and what most others left
    bool is_voted = false;
  };
  using Launch = std::pair<std::string, std::int64_t>;  ///< case and epoch

  [[nodiscard]] bool is_complete(const Ballot& ballot) const;
  std::vector<std::string> vote(const Launch& launch, Ballot& ballot);
  void vote_among(const Devices& alike, const Launch& launch, Ballot& ballot, std::vector<std::string>& found);
  [[nodiscard]] std::vector<Devices> comparable(const Launch& launch, const Ballot& ballot);
  [[nodiscard]] static std::string verdict_on(std::size_t device, const Divergence& divergence, const Ballot& ballot);

  std::vector<std::string> models_;
  std::set<std::size_t> ended_;
  std::map<Launch, Ballot> ballots_;  ///< of each case the latest two epochs that were voted on, and later ones
  std::set<std::string> not_compared_;
  std::int64_t voted_ = 0;
};

}  // namespace gpubench
