#include "harness/cli/launcher.h"

#include <fmt/format.h>

#include <charconv>

#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

constexpr int most_processes = 1 << 20;

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
        fmt::format("{} is '{}'; a launcher sets it to a number from {} to {} (unset it where there is none)", name,
                    visible(text), least, most));
  return value;
}

}  // namespace

LauncherPlace launcher_place(const std::function<std::string(const char*)>& variable) {
  if (!variable) return {};
  for (const Launcher& launcher : launchers) {
    const std::string size = variable(launcher.size);
    if (size.empty()) continue;
    LauncherPlace place;
    place.processes = variable_in_range(launcher.size, size, 1, most_processes);
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

}  // namespace gpubench
