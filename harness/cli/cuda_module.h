// The CUDA backend as an entry of the command line: found beside the program, loaded when it is first opened.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cli/environment.h"

namespace gpubench {

/// The entry for --device cuda, if the module's file is there: beside `program`, or in ../lib. Opening it loads the
/// module and, where the system's loader does not find NVIDIA's libraries, those of a toolkit or of Python wheels; as
/// root only from folders that nobody else can change (changeable_by_others), unless --trust-libraries says otherwise.
[[nodiscard]] std::optional<BackendEntry> cuda_entry(const std::filesystem::path& program);

/// The name of the library that the loader's complaint is about: "libcublasLt.so.13" of "libcublasLt.so.13: cannot open
/// shared object file: ..."; empty for any other complaint.
[[nodiscard]] std::string missing_library(const std::string& complaint);

/// Where NVIDIA's libraries may be that the loader does not search: toolkits under `root`/usr/local, and the folders
/// nvidia/*/lib of Python packages, of the system and under `prefixes` (a virtual environment, ~/.local).
[[nodiscard]] std::vector<std::filesystem::path> library_folders(const std::filesystem::path& root,
                                                                 const std::vector<std::filesystem::path>& prefixes);

/// A folder of libraries, and why root does not load from it: changeable_by_others(). Empty: it is taken.
struct LibraryFolder {
  std::filesystem::path path;
  std::string passed_over;
};

/// Those of `folders` that are there, in their order. `trusts_all`: none is passed over.
[[nodiscard]] std::vector<LibraryFolder> checked_folders(const std::vector<std::filesystem::path>& folders,
                                                         bool trusts_all);

/// Where NVIDIA's libraries may be on this machine. Only root without --trust-libraries passes any over.
[[nodiscard]] std::vector<LibraryFolder> library_folders_here();

/// The same with neighbours as one, ".../site-packages/nvidia/{cublas,cudnn}/lib": all are taken, or passed over for
/// reasons of which this is the first's.
[[nodiscard]] std::vector<LibraryFolder> by_neighbours(std::span<const LibraryFolder> folders);

/// The variable of --trust-libraries, by which child processes know of it too.
inline constexpr const char* trust_libraries_variable = "GPUBENCH_TRUST_LIBRARIES";

/// The environments of the python3 that `path` (as $PATH) leads to, also where none is activated: /opt/env for
/// /opt/env/bin/python3, and where that is a link, but not of a virtual environment, what it leads to, as for its
/// sys.prefix. Relative folders are left out.
[[nodiscard]] std::vector<std::filesystem::path> python_prefixes(const std::string& path);

/// What root may load: code from a file that somebody else can change is theirs to run as root.
/// Why others than root could change what is at `path`: "/home/ann/.local belongs to user 1000". Looks at the file or
/// folder that it leads to and at all folders above: each belongs to root, and nobody else may write to it; into a
/// folder above with the sticky bit, as /tmp, everybody may. Empty where only root could.
[[nodiscard]] std::string changeable_by_others(const std::filesystem::path& path);

}  // namespace gpubench
