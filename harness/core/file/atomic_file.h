// Files that after any failure are either the old one or the complete new one. Targets that are not regular files (a
// pipe, a device, /dev/stdout, a shell's >(cmd)) are written directly: a rename as root would replace the machine's
// /dev/stdout.
#pragma once

#include <fcntl.h>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/core/file/descriptor.h"

namespace gpubench {

/// "path: failed operation: the system's reason".
class WriteError : public std::runtime_error {
 public:
  explicit WriteError(const std::string& what, int error = 0) : std::runtime_error(what), error_(error) {}
  /// Whether the disk is full or fails; otherwise the path or a permission is wrong.
  [[nodiscard]] bool is_disk_error() const;

 private:
  int error_;  ///< errno; 0 if the reason is not the system's
};

struct WriteRules {
  bool replace = false;   ///< an existing file or link; otherwise an existing one is an error
  unsigned mode = 0600;   ///< permissions of the file, independent of the umask
  int folder = AT_FDCWD;  ///< the file's folder, of HeldFolders; AT_FDCWD: found by the file's path

  /// The file's name for openat() and similar calls with `folder`.
  [[nodiscard]] std::string name_of(const std::string& path) const;
};

/// Open folders of output files, from a file's check to its last write: the file goes to the checked folder, even if
/// another user renames it or replaces it by a link.
class HeldFolders {
 public:
  /// Opens the folder of `file`, unless it is held. Throws WriteError; for root also if the folder itself, not one
  /// above it, is a link of another user.
  void hold(const std::string& file);
  void hold(const std::string& file, Descriptor folder);
  /// `rules` with the held folder of `file`, if any; valid while this lives.
  [[nodiscard]] WriteRules rules(const std::string& file, WriteRules rules) const;

 private:
  std::map<std::string, Descriptor> folders_;  ///< by path
};

/// Writes `content` to a temporary file in the same folder, under an unpredictable name, syncs it, renames it to
/// `path`, syncs the folder. Removes temporary files of killed processes of this user. A path to something other than a
/// regular file, or to a descriptor of this process (/proc/self/fd/N and links to it), is written directly. Throws
/// WriteError, and then leaves no file.
void write_atomically(const std::string& path, std::string_view content, const WriteRules& rules = {});

/// Throws WriteError unless write_atomically() to this path could work now: tries a temporary file.
void require_writable(const std::string& path, const WriteRules& rules = {});

/// Whether write_atomically() would write to this path directly, without a temporary file.
[[nodiscard]] bool is_written_through(const std::string& path, const WriteRules& rules = {});

/// Writes `content` to a new file in `folder` named `start`, 16 hexadecimal digits, `end`, readable only by its owner.
/// Returns its path. Throws WriteError, and then leaves no file.
[[nodiscard]] std::string write_new_file(const std::string& folder, std::string_view start, std::string_view end,
                                         std::string_view content);

/// Writes all of `content` to an open file; `path` is for messages. Throws WriteError.
void write_all(int fd, std::string_view content, const std::string& path);

/// Throws the WriteError "path: cannot ATTEMPT: the system's reason".
[[noreturn]] void cannot_write(const std::string& path, std::string_view attempt, int error);

/// Syncs the folder of a file, so that a new name survives a power cut. Ignores file systems that cannot sync folders.
void sync_folder_of(const std::string& path, const WriteRules& rules);

/// Creates a folder and its parents. Throws WriteError if it cannot, or if another kind of file has the name.
void make_folder(const std::string& path);

/// Opens a folder for writing; `named`: the path for messages. Throws as HeldFolders::hold().
[[nodiscard]] Descriptor open_folder(const std::string& path, const std::string& named);

}  // namespace gpubench
