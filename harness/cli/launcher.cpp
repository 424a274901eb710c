#include "harness/cli/environment.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "reference/mpi/module.h"

namespace gpubench {
namespace {

constexpr int max_processes = 1 << 20;

struct Launcher {
  const char* size;
  const char* rank;
  const char* name;
  const char* library;
};

constexpr Launcher launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun of Open MPI", "openmpi"},
                                  {"PMI_SIZE", "PMI_RANK", "mpirun of MPICH", "mpich"},
                                  {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun", "mpich"}};

int variable_in_range(const char* name, const std::string& text, int least, int most) {
  int value = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most)
    throw UsageError(
        fmt::format("{} is '{}'; expected a number from {} to {}, as launchers set it (unset it without a launcher)",
                    name, visible(text), least, most));
  return value;
}

namespace fs = std::filesystem;

// The module of the launcher's library first.
fs::path module_file(const fs::path& program, const LauncherPlace& place) {
  const std::string other = place.library == "openmpi" ? "mpich" : "openmpi";
  for (const std::string& library : {place.library, other}) {
    for (const fs::path& folder : {program.parent_path(), program.parent_path().parent_path() / "lib"}) {
      std::error_code ignored;
      if (const fs::path file = folder / fmt::format("libgpubench_{}.so", library); fs::exists(file, ignored))
        return file;
    }
  }
  throw BackendError(
      fmt::format("{} started {} processes, and this build has no module to join them (libgpubench_{}.so): build it "
                  "where that MPI is installed, or use --mpi off for separate runs",
                  place.launcher, place.processes, place.library));
}

const mpi::Module& mpi_module_at(const fs::path& file) {
  // RTLD_GLOBAL: MPI's plugins need its symbols. Never unloaded: MPI starts threads.
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    const char* words = ::dlerror();
    throw BackendError(fmt::format("{} cannot be loaded: {}", file.filename().string(),
                                   visible(words == nullptr ? "no reason given" : words)));
  }
  const auto entry = reinterpret_cast<mpi::ModuleEntry>(::dlsym(handle, mpi::module_entry_name));
  if (entry == nullptr) throw BackendError(fmt::format("{} is not gpubench's MPI module", visible(file.string())));
  const mpi::Module& module = *entry();
  if (std::string_view(module.build_id) != GPUBENCH_BUILD_ID) {
    throw BackendError(fmt::format("{} is of another build ({}) than this program ({}): build both together",
                                   visible(file.string()), visible(module.build_id), GPUBENCH_BUILD_ID));
  }
  return module;
}

}  // namespace

LauncherPlace launcher_place(const std::function<std::string(const char*)>& variable) {
  if (!variable) return {};
  for (const Launcher& launcher : launchers) {
    const std::string size = variable(launcher.size);
    if (size.empty()) continue;
    LauncherPlace place;
    place.processes = variable_in_range(launcher.size, size, 1, max_processes);
    if (place.processes == 1) return {};
    place.rank = variable_in_range(launcher.rank, variable(launcher.rank), 0, place.processes - 1);
    place.launcher = launcher.name;
    const std::string commands = variable("OMPI_NUM_APP_CTX");
    place.several_commands = !commands.empty() && commands != "1";
    place.library = variable("PMIX_RANK").empty() ? launcher.library : "openmpi";
    return place;
  }
  return {};
}

std::unique_ptr<Processes> join_by_mpi(const fs::path& program, const LauncherPlace& place, double send_limit_s) {
  const fs::path file = module_file(program, place);
  std::unique_ptr<Processes> joined = mpi_module_at(file).join(send_limit_s);
  if (joined->size() != place.processes || joined->rank() != place.rank) {
    throw BackendError(fmt::format(
        "{} started {} processes, but {} joins {}: its MPI differs from the launcher's (libgpubench_{}.so is needed)",
        place.launcher, place.processes, joined->library(), joined->size(), place.library));
  }
  return joined;
}

}  // namespace gpubench
