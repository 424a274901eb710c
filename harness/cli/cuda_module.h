// The CUDA backend: a module next to the program, loaded when the backend is first opened.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cli/environment.h"

namespace gpubench {

/// The entry for --device cuda if the module is in the folder of `program` or in ../lib. If the system's loader does
/// not find NVIDIA's libraries, opening loads them from a CUDA toolkit or from Python wheels. For root these folders
/// must not be changeable_by_others(), unless --trust-libraries is given.
[[nodiscard]] std::optional<BackendEntry> cuda_entry(const std::filesystem::path& program);

/// The library named by a loader error: "libcublasLt.so.13" of "libcublasLt.so.13: cannot open shared object file:
/// ..."; empty for other errors.
[[nodiscard]] std::string missing_library(const std::string& complaint);

/// Folders that the loader does not search: toolkits under `root`/usr/local, and nvidia/*/lib of Python packages, of
/// the system and under `prefixes` (a virtual environment, ~/.local).
[[nodiscard]] std::vector<std::filesystem::path> library_folders(const std::filesystem::path& root,
                                                                 const std::vector<std::filesystem::path>& prefixes);

/// A folder of libraries. `passed_over`: for root changeable_by_others(), else empty.
struct LibraryFolder {
  std::filesystem::path path;
  std::string passed_over;
};

/// The existing ones of `folders`, in their order. `trusts_all`: passes over none.
[[nodiscard]] std::vector<LibraryFolder> checked_folders(const std::vector<std::filesystem::path>& folders,
                                                         bool trusts_all);

/// Passes over folders only for root without --trust-libraries.
[[nodiscard]] std::vector<LibraryFolder> library_folders_here();

/// Merges neighbors into one, ".../site-packages/nvidia/{cublas,cudnn}/lib", if all are accepted or all passed over.
/// `passed_over` is that of the first.
[[nodiscard]] std::vector<LibraryFolder> by_neighbours(std::span<const LibraryFolder> folders);

/// The variable of --trust-libraries; child processes inherit it.
inline constexpr const char* trust_libraries_variable = "GPUBENCH_TRUST_LIBRARIES";

/// The Python environments on `path` (a $PATH), also those not activated: /opt/env for /opt/env/bin/python3. A link to
/// python3 outside a virtual environment is followed, as for sys.prefix. Skips relative folders.
[[nodiscard]] std::vector<std::filesystem::path> python_prefixes(const std::string& path);

/// Why users other than root could change the file or folder at `path`: "/home/ann/.local belongs to user 1000"; empty
/// if only root could. Follows links and checks all parent folders: each must belong to root and not be writable by
/// others, except parents with the sticky bit, such as /tmp. Root must not load code that other users can change.
[[nodiscard]] std::string changeable_by_others(const std::filesystem::path& path);

}  // namespace gpubench
