// The inputs of run_cli(): suites, backends, streams, variables, launcher. main.cpp passes those of the process; tests
// pass theirs.
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

/// This process among those of a launcher, read from the launcher's variables.
struct LauncherPlace {
  int rank = 0;
  int processes = 1;
  std::string launcher = {};      ///< "mpirun of Open MPI"; empty: no launcher
  std::string library = {};       ///< MPI module: "openmpi", "mpich"
  bool several_commands = false;  ///< the launcher runs several command lines (mpirun ... : ...)
};

/// From OMPI_COMM_WORLD_SIZE and _RANK (Open MPI), PMI_SIZE and PMI_RANK (MPICH), SLURM_STEP_NUM_TASKS and SLURM_PROCID
/// (srun; with PMIX_RANK Open MPI); several commands from OMPI_NUM_APP_CTX. `variable`: its value, "" if unset. Throws
/// UsageError for invalid numbers.
[[nodiscard]] LauncherPlace launcher_place(const std::function<std::string(const char*)>& variable);

/// Joins the launcher's processes with the MPI module of its library, or any module found, in the folder of `program`
/// or in ../lib. `send_limit_s`: as Module::join. Throws BackendError if there is no module, if it is of another build
/// or does not load, for MPI errors, and if the processes joined are not those started.
[[nodiscard]] std::unique_ptr<Processes> join_by_mpi(const std::filesystem::path& program, const LauncherPlace& place,
                                                     double send_limit_s);

struct OpenRequest {
  int ordinal = 0;
};

struct RankRequest {
  int ranks = 1;
  bool is_virtual = false;  ///< all ranks on one device
  OpenRequest device{};
};

/// The share of one process of a run in several: processors of its host, or a device.
struct DeviceShare {
  std::function<std::unique_ptr<Backend>()> open;  ///< throws BackendError
  bool is_oversubscribed = false;                  ///< more processes than can run at a time
  /// Collectives of the first `ranks` processes; each of them calls this. Empty function: those of `Processes`.
  std::function<std::unique_ptr<RankCollectives>(int ranks)> collectives = {};
  /// Names and versions of libraries that DeviceInfo does not list.
  std::vector<std::pair<std::string, std::string>> libraries = {};
};

struct BackendEntry {
  std::string name;                                                       ///< "cpu", "cuda"
  std::function<std::unique_ptr<Backend>(const OpenRequest& what)> open;  ///< throws BackendError
  /// The default recipes, known without opening the device. `capability`: of a GPU, 90 for 9.0; 0: unknown. Empty
  /// function: all recipes.
  std::function<std::vector<std::string>(int capability)> precisions = {};
  bool has_graphs = false;  ///< the default of --launch is to replay sequences as one graph
  /// The libraries that the module loads, for doctor; needs no device. Loads them into this process; may throw. Empty
  /// function: none.
  std::function<std::vector<ModuleReport>()> libraries = {};
  /// Throws BackendError or Unsupported. Empty function: one rank only.
  std::function<RankSet(const RankRequest& what)> open_ranks = {};
  bool ranks_have_processors = false;  ///< separate ones, whatever processors this process may use
  /// A rank without progress for this time is lost.
  double rank_stall_limit_s = 15.0;
  /// Takes this process's share of the device; call it before opening anything. The processes must outlive the result.
  /// Throws BackendError. Empty function: no ranks in several processes.
  std::function<DeviceShare(Processes& processes)> take_share = {};
  /// A process without progress for this time is lost. Its local work counts as progress: planning, connecting to
  /// peers.
  double process_stall_limit_s = 15.0;
  /// A process that waits this long for others at the start of a run prints a note.
  double process_note_s = 15.0;
  /// A process that waits this long in MPI_Init ends the run. Long, because processes on other nodes may start late.
  double process_join_limit_s = 600.0;
  /// Limit without a sign of life for planning an op, and for each candidate.
  double plan_limit_s = 30.0;
  /// Planning time of a compute-bound op, whose candidates are built, tried and timed. 0 if negligible, as on a CPU
  /// (0.5 s for the 42 smoke cases of gemm, conv and transformer).
  double plan_s = 0.0;
  bool has_virtual_ranks = false;
  /// Stores facts in the environment that each child would otherwise have to find out. Call it before the first child
  /// starts; throws BackendError. Empty function: nothing to store.
  std::function<void()> before_children = {};
};

struct Environment {
  std::span<const Suite> suites;
  std::vector<BackendEntry> backends;  ///< the first is the fallback of --device auto
  std::ostream& out;                   ///< results only
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int columns = 100;
  std::function<std::string(const char*)> variable;              ///< "" if unset
  std::function<NvidiaDriver(double deadline_s)> nvidia_driver;  ///< in a child; 0: no deadline
  std::string program;
  const StopFlag& stop;
  std::vector<std::string> variable_names = {};
  std::string revision = {};                                     ///< of the sources; "" if unknown
  std::function<GpuSurvey(double deadline_s)> survey_gpus = {};  ///< in a child; 0: no deadline
  int out_columns = 100;
  std::function<HostInfo()> host = [] { return read_host(); };
  /// Makes SIGINT, SIGTERM and SIGHUP raise `stop`; a second one (is_second_request()) ends the process. Before this
  /// call the first one ends it.
  std::function<void()> catch_signals = [] {};
  /// The libraries of a backend, read in a child. Throws what `libraries` throws, and CannotMeasure.
  std::function<std::vector<ModuleReport>(const BackendEntry& entry, double deadline_s)> libraries_of =
      [](const BackendEntry& entry, double) { return entry.libraries(); };
  /// Wall time, which may jump: for time stamps only, never for durations.
  std::function<std::time_t()> time_of_day = [] { return std::time(nullptr); };
  std::istream& in = std::cin;  ///< of --turns
  /// Joins the launcher's processes. Throws BackendError. Empty function: not supported.
  std::function<std::unique_ptr<Processes>(const LauncherPlace& place, double send_limit_s)> join_processes = {};
};

inline constexpr std::string_view out_of_memory =
    "gpubench: out of memory: end other programs, raise the limit (ulimit -v, cgroup), or give smaller files\n";

/// The whole program; returns the exit code (exit_code.h). Throws only std::bad_alloc.
int run_cli(int argc, const char* const* argv, const Environment& environment);

}  // namespace gpubench
