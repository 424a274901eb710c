#include "reference/mpi/mpi_processes.h"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "harness/core/error.h"

namespace gpubench::mpi {
namespace {

// "Open MPI v4.1.4, package: ..." or "MPICH Version: 4.0.2 ...", shortened to name and version.
std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "querying the version");
  std::string name(text.data(), static_cast<std::size_t>(length));
  for (const auto& [from, to] : {std::pair<std::string, std::string>{" v", " "}, {" Version:", ""}}) {
    if (const std::size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  }
  for (char& c : name) c = c == '\t' ? ' ' : c;
  name.resize(std::min(name.find_first_of(",\n"), name.size()));
  std::string single;
  for (const char c : name) {
    if (c != ' ' || (!single.empty() && single.back() != ' ')) single += c;
  }
  return single;
}

class MpiProcesses final : public Processes {
 public:
  explicit MpiProcesses(double send_limit_s) : library_(library_name()) {
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "querying the rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "querying the number of processes");
    messages_ = duplicate();
    collectives_ = duplicate();
    for (int peer = 0; peer < size_; ++peer) {
      const bool talk = (rank_ == 0) != (peer == 0);
      channels_.push_back(talk ? open_channel(messages_->get(), peer, send_limit_s) : nullptr);
    }
    look_at_host();
    exchange_hosts();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::string library() const override { return library_; }
  [[nodiscard]] Share share() const override { return share_; }
  [[nodiscard]] int place_on_host() const override { return place_on_host_; }
  [[nodiscard]] std::string host(int rank) const override { return hosts_.at(static_cast<std::size_t>(rank)).data(); }
  [[nodiscard]] Channel& channel(int rank) override {
    if (rank < 0 || rank >= size_ || channels_[static_cast<std::size_t>(rank)] == nullptr)
      throw BackendError(fmt::format("no channel between processes {} and {}", rank_, rank));
    return *channels_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::unique_ptr<RankCollectives> collectives(int ranks) override {
    if (ranks < 1 || ranks > size_ || rank_ >= ranks)
      throw BackendError(fmt::format("cannot open {} ranks of {} processes in process {}", ranks, size_, rank_));
    return open_collectives(collectives_->get(), ranks, library_.starts_with("Open MPI") ? "openmpi" : "mpich");
  }
  void broadcast(const RankGroup& members, std::span<std::byte> bytes) override {
    constexpr int first = 0, own_tag = 1;  // differs from the tag of collectives(), which may run at the same time
    const std::unique_ptr<HeldComm> comm = communicator_of(collectives_->get(), members.members(), own_tag);
    check(MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, first, comm->get()), "MPI_Bcast");
  }

  void finish() override {
    channels_.clear();
    messages_.reset();
    collectives_.reset();
    check(MPI_Finalize(), "ending");
  }
  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);  // only if MPI_Abort returned
  }

 private:
  static std::unique_ptr<HeldComm> duplicate() {
    MPI_Comm duplicate = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate), "creating a communicator");
    return std::make_unique<HeldComm>(duplicate);
  }

  void look_at_host() {
    MPI_Comm held = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &held),
          "finding the processes of this host");
    const HeldComm host(held);
    int processes = 0;
    check(MPI_Comm_size(host.get(), &processes), "counting the processes of this host");
    check(MPI_Comm_rank(host.get(), &place_on_host_), "querying the rank on this host");
    std::vector<cpu_set_t> allowed(static_cast<std::size_t>(processes));
    cpu_set_t mine;
    CPU_ZERO(&mine);
    (void)sched_getaffinity(0, sizeof mine, &mine);  // on failure all processes look alike
    check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, allowed.data(), sizeof mine, MPI_BYTE, host.get()),
          "exchanging the processors");
    share_ = {0, 0};
    for (int other = 0; other < processes; ++other) {
      if (!CPU_EQUAL(&allowed[static_cast<std::size_t>(other)], &mine)) continue;
      if (other < place_on_host_) ++share_.place;
      ++share_.processes;
    }
  }

  using HostName = std::array<char, MPI_MAX_PROCESSOR_NAME + 1>;
  void exchange_hosts() {
    HostName own{};
    int length = 0;
    check(MPI_Get_processor_name(own.data(), &length), "querying the name of this host");
    hosts_.resize(static_cast<std::size_t>(size_));
    check(MPI_Allgather(own.data(), sizeof own, MPI_BYTE, hosts_.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD),
          "exchanging the names of hosts");
  }

  std::string library_;
  int rank_ = 0;
  int size_ = 1;
  int place_on_host_ = 0;
  std::unique_ptr<HeldComm> messages_, collectives_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by rank; null for this one
  Share share_;
  std::vector<HostName> hosts_;
};

}  // namespace

std::string complaint(int code, const char* what) {
  if (code == MPI_SUCCESS) return "";
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  return fmt::format("MPI: {}: {} (error {})", what, std::string_view(text.data(), static_cast<std::size_t>(length)),
                     code);
}

void check(int code, const char* what) {
  if (code != MPI_SUCCESS) throw BackendError(complaint(code, what));
}

void run_check(int code, const char* what) {
  if (code != MPI_SUCCESS) throw DeviceLost(complaint(code, what));
}

HeldComm::HeldComm(MPI_Comm held) : held_(held) {
  check(MPI_Comm_set_errhandler(held_, MPI_ERRORS_RETURN), "setting the error handler");
}

HeldComm::~HeldComm() { (void)MPI_Comm_free(&held_); }  // its next user reports errors

std::unique_ptr<HeldComm> communicator_of(MPI_Comm in, std::span<const int> members, int tag) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  check(MPI_Comm_group(in, &all), "querying a group");
  int code = MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
  MPI_Comm made = MPI_COMM_NULL;
  if (code == MPI_SUCCESS) {
    code = MPI_Comm_create_group(in, some, tag, &made);
    (void)MPI_Group_free(&some);
  }
  (void)MPI_Group_free(&all);
  check(code, "creating a group's communicator");
  if (made == MPI_COMM_NULL) throw BackendError("MPI created no communicator for a member of a group");
  return std::make_unique<HeldComm>(made);
}

std::unique_ptr<Processes> join(double send_limit_s) {
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "starting");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "setting the error handler");
  if (provided < MPI_THREAD_MULTIPLE) {
    throw BackendError(
        fmt::format("{} does not support calls from several threads (MPI_THREAD_MULTIPLE), which ranks need; "
                    "install an MPI that does",
                    library_name()));
  }
  return std::make_unique<MpiProcesses>(send_limit_s);
}

}  // namespace gpubench::mpi
