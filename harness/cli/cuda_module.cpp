#include "harness/cli/cuda_module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/hardware/gpu_survey.h"
#include "reference/cuda/module.h"

namespace gpubench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_wheels(const fs::path& lib, std::vector<fs::path>& folders) {
  for (const fs::path& python : subfolders(lib)) {
    if (python.filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& wheel : subfolders(python / packages / "nvidia")) folders.push_back(wheel / "lib");
    }
  }
}

std::vector<fs::path> prefixes_of_user() {
  std::vector<fs::path> prefixes;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* value = std::getenv(variable); value != nullptr && fs::path(value).is_absolute())
      prefixes.emplace_back(value);
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && fs::path(home).is_absolute())
    prefixes.push_back(fs::path(home) / ".local");
  if (const char* path = std::getenv("PATH"); path != nullptr) {
    for (fs::path& prefix : python_prefixes(path)) prefixes.push_back(std::move(prefix));
  }
  return prefixes;
}

// A variable, so that children inherit it; set by run_cli.cpp.
bool trusts_any_library() {
  const char* value = std::getenv(trust_libraries_variable);
  return value != nullptr && (std::string_view(value) == "on" || std::string_view(value) == "1");
}

// Loads a library permanently, so that the module's next attempt finds it by name.
bool load_from_folders(const std::string& name) {
  return std::ranges::any_of(library_folders_here(), [&](const LibraryFolder& folder) {
    if (!folder.passed_over.empty()) return false;
    std::error_code none;
    const fs::path file = fs::canonical(folder.path / name, none);  // loads the file that was checked, not a link
    return !none && ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr;
  });
}

std::string passed_over_text(const std::string& library) {
  for (const auto& [folder, why] : library_folders_here()) {
    std::error_code ignored;
    if (!why.empty() && fs::exists(folder / library, ignored))
      return fmt::format("; the one in {} is not loaded as root: {} (--trust-libraries allows it)",
                         visible(folder.string()), why);
  }
  return "";
}

void* load(const fs::path& file) {
  constexpr int max_libraries = 16;
  for (int tries = 0; tries < max_libraries; ++tries) {
    if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) return handle;
    const char* words = ::dlerror();
    const std::string complaint = words == nullptr ? "no reason given" : words;
    const std::string missing = missing_library(complaint);
    if (!missing.empty() && load_from_folders(missing)) continue;
    throw BackendError(fmt::format(
        "{} cannot be loaded: {}{}", file.filename().string(), visible(complaint),
        missing.empty() ? ""
                        : "; it is not in the loader's folders, in /usr/local/cuda* or in Python's nvidia packages: "
                          "install the CUDA toolkit with cuDNN, or NVIDIA's Python wheels of both" +
                              passed_over_text(missing)));
  }
  throw BackendError(
      fmt::format("{} cannot be loaded: every library found needs another one", file.filename().string()));
}

// The module loads NCCL by name, and only for several GPUs.
void make_nccl_findable() {
  constexpr const char* name = "libnccl.so.2";
  if (::dlopen(name, RTLD_NOW | RTLD_LOCAL) == nullptr) load_from_folders(name);
}

const cuda::Module& module_at(const fs::path& file) {
  void* handle = load(file);  // never unloaded: CUDA starts threads
  const auto entry = reinterpret_cast<cuda::ModuleEntry>(::dlsym(handle, cuda::module_entry_name));
  if (entry == nullptr) throw BackendError(fmt::format("{} is not gpubench's CUDA module", visible(file.string())));
  const cuda::Module& module = *entry();
  if (std::string_view(module.build_id) != GPUBENCH_BUILD_ID) {
    throw BackendError(fmt::format("{} is of another build ({}) than this program ({}): build both together",
                                   visible(file.string()), visible(module.build_id), GPUBENCH_BUILD_ID));
  }
  return module;
}

DeviceShare share_of(const cuda::Module& module, Processes& processes) {
  make_nccl_findable();
  const cuda::OpenOptions device{.ordinal = module.process_device(processes.place_on_host())};
  DeviceShare share;
  share.open = [&module, device] { return module.open(device); };
  share.collectives = [&module, &processes, device](int ranks) {
    return module.open_process_collectives({processes, processes.rank(), ranks, device});
  };
  for (const cuda::LoadedLibrary& library : module.libraries()) {
    if (library.name == "nccl") share.libraries.emplace_back(library.name, library.version);
  }
  return share;
}

}  // namespace

std::string missing_library(const std::string& complaint) {
  const std::size_t colon = complaint.find(": cannot open shared object file");
  if (colon == std::string::npos) return {};
  const std::string name = complaint.substr(0, colon);
  // A bare file name only: it is joined to folders.
  const bool bare = name.rfind("lib", 0) == 0 && name.find('/') == std::string::npos;
  return bare ? name : std::string();
}

std::vector<fs::path> library_folders(const fs::path& root, const std::vector<fs::path>& prefixes) {
  std::vector<fs::path> folders;
  std::vector<fs::path> toolkits = subfolders(root / "usr/local");
  std::reverse(toolkits.begin(), toolkits.end());  // newest first
  for (const fs::path& toolkit : toolkits) {
    if (toolkit.filename().string().rfind("cuda", 0) == 0) folders.push_back(toolkit / "lib64");
  }
  for (const fs::path& prefix : prefixes) add_wheels(prefix / "lib", folders);
  add_wheels(root / "usr/local/lib", folders);
  add_wheels(root / "usr/lib", folders);
  return folders;
}

std::vector<LibraryFolder> checked_folders(const std::vector<fs::path>& folders, bool trusts_all) {
  std::vector<LibraryFolder> found;
  std::error_code ignored;
  for (const fs::path& folder : folders) {
    if (fs::is_directory(folder, ignored)) found.push_back({folder, trusts_all ? "" : changeable_by_others(folder)});
  }
  return found;
}

std::vector<LibraryFolder> library_folders_here() {
  return checked_folders(library_folders("/", prefixes_of_user()), ::geteuid() != 0 || trusts_any_library());
}

std::vector<LibraryFolder> by_neighbours(std::span<const LibraryFolder> folders) {
  const auto above = [](const LibraryFolder& folder) { return folder.path.parent_path().parent_path(); };
  const auto belong_together = [&](const LibraryFolder& a, const LibraryFolder& b) {
    return a.path.filename() == "lib" && b.path.filename() == "lib" && above(a) == above(b) &&
           a.passed_over.empty() == b.passed_over.empty();
  };
  std::vector<LibraryFolder> groups;
  for (std::size_t first = 0, end = 0; first < folders.size(); first = end) {
    std::vector<std::string> names;
    for (; end < folders.size() && belong_together(folders[first], folders[end]); ++end)
      names.push_back(folders[end].path.parent_path().filename().string());
    if (names.size() < 2) {
      groups.push_back(folders[first]);
      end = first + 1;
    } else {
      groups.push_back(
          {above(folders[first]) / fmt::format("{{{}}}/lib", fmt::join(names, ",")), folders[first].passed_over});
    }
  }
  return groups;
}

std::vector<fs::path> python_prefixes(const std::string& path) {
  std::vector<fs::path> prefixes;
  std::istringstream folders(path);
  for (std::string word; std::getline(folders, word, ':');) {
    const fs::path python = fs::path(word) / "python3";
    std::error_code ignored;
    if (!python.is_absolute() || !fs::exists(python, ignored)) continue;
    const fs::path prefix = python.parent_path().parent_path();
    prefixes.push_back(prefix);
    if (fs::exists(prefix / "pyvenv.cfg", ignored)) continue;
    const fs::path linked = fs::canonical(python, ignored).parent_path().parent_path();
    if (!linked.empty() && linked != prefix) prefixes.push_back(linked);
  }
  return prefixes;
}

std::optional<BackendEntry> cuda_entry(const fs::path& program) {
  const fs::path folder = program.parent_path();
  for (const fs::path& file : {folder / cuda::module_file_name, folder / "../lib" / cuda::module_file_name}) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    BackendEntry entry;
    entry.name = "cuda";
    entry.has_graphs = true;
    entry.precisions = recipes_of_gpu;
    entry.open = [file](const OpenRequest& what) { return module_at(file).open({.ordinal = what.ordinal}); };
    entry.open_ranks = [file](const RankRequest& what) {
      if (!what.is_virtual) make_nccl_findable();
      return module_at(file).open_ranks({what.ranks, what.is_virtual, {.ordinal = what.device.ordinal}});
    };
    entry.has_virtual_ranks = true;
    entry.take_share = [file](Processes& processes) { return share_of(module_at(file), processes); };
    entry.process_stall_limit_s = 120.0;  // cuDNN compiles attention, and NCCL connects hosts
    entry.plan_limit_s = 120.0;
    entry.plan_s = 1.9;  // cuDNN 9 on one core, for a convolution with its sums; not yet measured on a GPU
    entry.libraries = [file] {
      make_nccl_findable();
      std::vector<ModuleReport> reports;
      for (const cuda::LoadedLibrary& library : module_at(file).libraries()) {
        reports.push_back({library.name, library.version, library.path});
      }
      return reports;
    };
    return entry;
  }
  return std::nullopt;
}

namespace {

namespace fs = std::filesystem;

std::string complaint_about(const fs::path& path, bool is_above) {
  const std::string name = visible(path.string());
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return fmt::format("{}: {}", name, std::strerror(errno));
  if (status.st_uid != 0) return fmt::format("{} belongs to user {}", name, status.st_uid);
  const bool sticky = is_above && (status.st_mode & S_ISVTX) != 0;  // only its owner can replace an entry
  if (!sticky && (status.st_mode & S_IWOTH) != 0) return fmt::format("everybody may write to {}", name);
  if (!sticky && (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0)
    return fmt::format("group {} may write to {}", status.st_gid, name);
  return "";
}

}  // namespace

std::string changeable_by_others(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return fmt::format("{}: {}", visible(path.string()), error.message());
  for (fs::path at = real;; at = at.parent_path()) {
    if (std::string why = complaint_about(at, at != real); !why.empty()) return why;
    if (at == at.root_path()) return "";
  }
}

}  // namespace gpubench
