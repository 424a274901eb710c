#include "harness/cli/device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "harness/cli/child_process.h"
#include "harness/cli/options.h"
#include "harness/core/error.h"
#include "harness/plan/nearest.h"
#include "harness/report/json.h"
#include "harness/report/record_json.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

const BackendEntry* find(const Environment& environment, std::string_view wanted) {
  const auto found = std::find_if(environment.backends.begin(), environment.backends.end(),
                                  [&](const BackendEntry& entry) { return entry.name == wanted; });
  return found == environment.backends.end() ? nullptr : &*found;
}

int capability_of(const NvidiaDriver& driver, int ordinal) {
  const auto index = static_cast<std::size_t>(ordinal);
  return index < driver.capabilities.size() ? driver.capabilities[index] : 0;
}

constexpr std::string_view no_cuda_backend =
    "this build has no CUDA backend (libgpubench_cuda.so): build it where a GPU's driver and nvcc are, or with "
    "-DGPUBENCH_CUDA_MODULE=ON";

DeviceChoice choose_automatically(const Environment& environment) {
  const BackendEntry* cuda = find(environment, "cuda");
  const BackendEntry* other = &environment.backends.front();
  const NvidiaDriver driver = environment.nvidia_driver();
  if (driver.usable && cuda != nullptr)
    return {cuda, 0, fmt::format("NVIDIA driver with {} device(s)", driver.devices), capability_of(driver, 0),
            driver.devices};
  if (driver.usable) return {other, 0, fmt::format("an NVIDIA driver is there, but {}", no_cuda_backend)};
  // Most machines without a GPU have no driver either; doctor tells all that is known of that.
  const bool none = driver.reason.starts_with("no NVIDIA driver:");
  if (!none) return {other, 0, driver.reason};
  return {other, 0,
          driver.hardware_seen ? "no NVIDIA driver found, but an NVIDIA device: see gpubench doctor"
                               : "no NVIDIA driver found"};
}

// N of "cuda:N"; 0 of "cuda".
int ordinal_of(const std::string& wanted) {
  const std::size_t colon = wanted.find(':');
  if (colon == std::string::npos) return 0;
  int ordinal = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [stop, error] = std::from_chars(wanted.data() + colon + 1, end, ordinal);
  if (error != std::errc() || stop != end || ordinal < 0) {
    throw UsageError(
        fmt::format("--device: '{}' names no device; expected cuda or cuda:N with N from 0", visible(wanted)));
  }
  return ordinal;
}

DeviceChoice choose_cuda(const std::string& wanted, const Environment& environment) {
  const int ordinal = ordinal_of(wanted);
  const NvidiaDriver driver = environment.nvidia_driver();
  if (!driver.usable) throw CannotMeasure(fmt::format("--device {}: {}", wanted, driver.reason));
  const BackendEntry* entry = find(environment, "cuda");
  if (entry == nullptr)
    throw CannotMeasure(fmt::format("--device {}: an NVIDIA driver is there, but {}", wanted, no_cuda_backend));
  if (ordinal >= driver.devices) {
    std::vector<std::string> known;
    for (int i = 0; i < driver.devices; ++i) known.push_back(fmt::format("cuda:{}", i));
    throw UsageError(fmt::format("--device: there is no {}; the driver shows {} device(s): {}", wanted, driver.devices,
                                 joined(known)));
  }
  return {entry, ordinal, "asked for", capability_of(driver, ordinal), driver.devices};
}

// A pipe whose ends close with it; none of them survives into a child unless handed over.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0)
      throw CannotMeasure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  Pipe(const Pipe&) = delete;  // owns two descriptors
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends_[0]);
    close_writing_end();
  }
  [[nodiscard]] int reading_end() const { return ends_[0]; }
  [[nodiscard]] int writing_end() const { return ends_[1]; }
  void close_writing_end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

constexpr int child_output = 3;

std::string read_all(int fd) {
  std::string text;
  char block[4096];
  while (true) {
    const ssize_t count = ::read(fd, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(block, static_cast<std::size_t>(count));
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

}  // namespace

std::string DeviceChoice::word() const {
  return ordinal == 0 ? backend->name : fmt::format("{}:{}", backend->name, ordinal);
}

DeviceChoice choose_device(const std::string& wanted, const Environment& environment) {
  if (wanted == "auto") return choose_automatically(environment);
  if (wanted == "cuda" || wanted.rfind("cuda:", 0) == 0) return choose_cuda(wanted, environment);
  if (const BackendEntry* entry = find(environment, wanted); entry != nullptr) return {entry, 0, "asked for"};
  std::vector<std::string> names{"auto", "cuda"};
  for (const BackendEntry& entry : environment.backends) {
    if (entry.name != "cuda") names.push_back(entry.name);
  }
  throw UsageError(
      fmt::format("--device: '{}' is not one of {}{}", visible(wanted), joined(names), did_you_mean(wanted, names)));
}

std::unique_ptr<Backend> open_backend(const DeviceChoice& choice, bool deterministic) {
  try {
    return choice.backend->open({choice.ordinal, deterministic});
  } catch (const std::exception& e) {
    throw CannotMeasure(fmt::format("the {} backend does not start: {}", choice.backend->name, e.what()));
  }
}

DeviceInfo describe_device(const DeviceChoice& choice, const Environment& environment) {
  try {
    if (choice.backend->before_children) choice.backend->before_children();
  } catch (const BackendError& e) {
    throw CannotMeasure(fmt::format("the {} backend does not start: {}", choice.backend->name, e.what()));
  }
  Pipe pipe;
  const pid_t child = start_child({environment.program, std::string(name(Verb::describe_device)), "--device",
                                   choice.word(), "--worker-output", std::to_string(child_output)},
                                  [&pipe](posix_spawn_file_actions_t& actions) {
                                    ::posix_spawn_file_actions_adddup2(&actions, pipe.writing_end(), child_output);
                                  });
  pipe.close_writing_end();
  const std::string text = read_all(pipe.reading_end());
  const int status = wait_for(child);
  if (status != 0 || text.empty()) {
    throw CannotMeasure(fmt::format("the {} backend does not start: {}", choice.backend->name,
                                    WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                                                        : fmt::format("exit status {}", WEXITSTATUS(status))));
  }
  try {
    const Json json = parse_json(text, "describe-device");
    return device_from_json({json, "describe-device"});
  } catch (const ReadError& e) {
    throw CannotMeasure(e.what());
  }
}

void tell_device(const DeviceChoice& choice, int output_fd) {
  std::string text = dump(to_json(open_backend(choice)->device()));
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(output_fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw CannotMeasure(fmt::format("cannot write to descriptor {}: {}", output_fd, std::strerror(errno)));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace gpubench
