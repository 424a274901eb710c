// Everything that the command line takes from outside: suites, backends, streams, variables, and whether mpirun or srun
// has started this process as one of several. main.cpp passes the real ones; tests pass their own and call the same
// run_cli().
#pragma once

#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/processes.h"
#include "harness/core/workload.h"
#include "harness/hardware/gpu_survey.h"
#include "harness/hardware/host.h"
#include "harness/run/run.h"

namespace gpubench {

/// Of one of several processes: their launcher's variables say so, and nothing else is asked.
struct LauncherPlace {
  int rank = 0;
  int processes = 1;
  std::string launcher = {};      ///< "mpirun of Open MPI"; empty where there is none
  std::string library = {};       ///< whose module joins them: "openmpi", "mpich"
  bool several_commands = false;  ///< the launcher was given more than one command line (mpirun ... : ...)
};

/// By OMPI_COMM_WORLD_SIZE and _RANK, PMI_SIZE and PMI_RANK (MPICH's mpirun), SLURM_STEP_NUM_TASKS and SLURM_PROCID
/// (srun; with PMIX_RANK Open MPI's); several commands by OMPI_NUM_APP_CTX. `variable`: its value, "" where unset.
/// Throws UsageError where they are no numbers that can be.
[[nodiscard]] LauncherPlace launcher_place(const std::function<std::string(const char*)>& variable);

/// Joins the processes that the launcher has started: by the module of its library, or the one that is there, beside
/// `program` or in ../lib. `send_limit_s`: as Module::join. Throws BackendError where there is none, where it is of
/// another build or cannot be loaded, with MPI's words, and where it joins other processes than were started.
[[nodiscard]] std::unique_ptr<Processes> join_by_mpi(const std::filesystem::path& program, const LauncherPlace& place,
                                                     double send_limit_s);

/// What a backend is opened for.
struct OpenRequest {
  int ordinal = 0;  ///< of several devices, this one
};

/// What several ranks are opened for.
struct RankRequest {
  int ranks = 1;
  bool is_virtual = false;  ///< all on one device
  OpenRequest device{};     ///< rank 0's
};

/// What one of several processes has for its rank: a share of the processors of its host, or a device.
struct DeviceShare {
  std::function<std::unique_ptr<Backend>()> open;  ///< throws BackendError
  bool is_oversubscribed = false;                  ///< there are more processes than can run at a time
  /// Its collectives with the first `ranks` processes, which all call it. No function: those of the processes
  /// themselves.
  std::function<std::unique_ptr<RankCollectives>(int ranks)> collectives = {};
  /// What those use and the device doesn't tell of: names and versions.
  std::vector<std::pair<std::string, std::string>> libraries = {};
};

/// A backend that --device can name.
struct BackendEntry {
  std::string name;                                                       ///< "cpu", "cuda"
  std::function<std::unique_ptr<Backend>(const OpenRequest& what)> open;  ///< throws BackendError
  /// The recipes that a run takes where --precision names none, asked without opening the device: those that it has.
  /// `capability`: of a GPU, 90 for 9.0; 0 where it is not known. No function: all.
  std::function<std::vector<std::string>(int capability)> precisions = {};
  bool has_graphs = false;  ///< sequences can be replayed as one graph, and are unless --launch says otherwise
  /// Libraries that its module really loads, for doctor; needs no device. Loads them into this process, and may throw.
  /// No function: nothing to tell.
  std::function<std::vector<ModuleReport>()> libraries = {};
  /// Several ranks; throws BackendError or Unsupported. No function: one rank only.
  std::function<RankSet(const RankRequest& what)> open_ranks = {};
  bool ranks_have_processors = false;  ///< of their own, whatever this process may run on
  /// A rank of those that makes no progress for so long is lost.
  double rank_stall_limit_s = 15.0;
  /// Takes for this process its share, which the backend is then opened on. Called before anything else is opened;
  /// the processes outlive what it returns. Throws BackendError. No function: it has no ranks in several processes.
  std::function<DeviceShare(Processes& processes)> take_share = {};
  /// One of several processes that comes no further for so long is lost. What it does of its own counts: making plans,
  /// meeting its peers.
  double process_stall_limit_s = 15.0;
  /// A process that waits so long for others at the start of a run names itself and what it waits for.
  double process_note_s = 15.0;
  /// One that waits so long in MPI_Init ends the run: on other nodes the processes may still have to start.
  double process_join_limit_s = 600.0;
  /// Planning an op, or trying one candidate for it, may take so long without a sign of life.
  double plan_limit_s = 30.0;
  /// What planning takes for an op that computes more than it moves, as candidates are built, tried and timed; 0 where
  /// that is lost in the rest, as on a CPU (0.5 s for the 42 smoke cases of gemm, conv and transformer).
  double plan_s = 0.0;
  bool has_virtual_ranks = false;  ///< several of its ranks can share one device
  /// Finds out what processes that open the backend would otherwise each find out, and leaves it in the environment of
  /// children. Called before one is started; throws BackendError. No function: there is nothing.
  std::function<void()> before_children = {};
};

struct Environment {
  std::span<const Suite> suites;
  std::vector<BackendEntry> backends;  ///< the first is what --device auto falls back to
  std::ostream& out;                   ///< the result, nothing else
  std::ostream& err;                   ///< progress, notes, complaints
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int columns = 100;                                             ///< of the terminal behind `err`
  std::function<std::string(const char*)> variable;              ///< "" where unset
  std::function<NvidiaDriver(double deadline_s)> nvidia_driver;  ///< asked in a child; 0: without a deadline
  std::string program;                                           ///< path by which a worker is started
  const StopFlag& stop;                                          ///< raised by a signal handler
  std::vector<std::string> variable_names = {};                  ///< of all that are set
  std::string revision = {};  ///< of the sources this program was built from; "" where unknown
  std::function<GpuSurvey(double deadline_s)> survey_gpus = {};  ///< the same
  int out_columns = 100;                                         ///< of the terminal behind `out`
  std::function<HostInfo()> host = [] { return read_host(); };   ///< the machine, as it is now
  /// From here on SIGINT, SIGTERM and SIGHUP raise `stop`, and a second one (is_second_request()) ends the process;
  /// before, the first ends it.
  std::function<void()> catch_signals = [] {};
  /// What the libraries of a backend are, asked in a child. Throws what `libraries` does, and CannotMeasure.
  std::function<std::vector<ModuleReport>(const BackendEntry& entry, double deadline_s)> libraries_of =
      [](const BackendEntry& entry, double) { return entry.libraries(); };
  /// The time of day, which may jump: it names a moment, and no duration is ever made of it.
  std::function<std::time_t()> time_of_day = [] { return std::time(nullptr); };
  std::istream& in = std::cin;  ///< of --turns
  /// Joins the processes that a launcher has started. Throws BackendError. No function: there is nothing to do it by.
  std::function<std::unique_ptr<Processes>(const LauncherPlace& place, double send_limit_s)> join_processes = {};
};

/// For standard error, when memory runs out.
inline constexpr std::string_view out_of_memory =
    "gpubench: out of memory: end other programs, raise the limit (ulimit -v, cgroup), or give smaller files\n";

/// The whole program: parses, acts, prints; returns the exit code (exit_code.h). Throws nothing but
/// std::bad_alloc.
int run_cli(int argc, const char* const* argv, const Environment& environment);

}  // namespace gpubench
