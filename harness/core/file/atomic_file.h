// Files that are either the old one or the whole new one, whatever happens in between.
//
// What is no regular file (a pipe, a device, /dev/stdout, a shell's >(cmd)) is written through and never renamed over:
// as root that would replace the machine's own /dev/stdout.
#pragma once

#include <fcntl.h>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/core/file/descriptor.h"

namespace gpubench {

/// "path: what was attempted: the system's reason".
class WriteError : public std::runtime_error {
 public:
  explicit WriteError(const std::string& what, int error = 0) : std::runtime_error(what), error_(error) {}
  /// Whether the disk is full or fails; otherwise the path or a permission is wrong.
  [[nodiscard]] bool is_disk_error() const;

 private:
  int error_;  ///< errno; 0: the reason is not the system's
};

struct WriteRules {
  bool replace = false;   ///< a file or link that has the name already; otherwise that is an error
  unsigned mode = 0600;   ///< permissions of the file, whatever the umask
  int folder = AT_FDCWD;  ///< the file's folder, of HeldFolders; AT_FDCWD: found by the file's path

  /// The file as openat() and its kin take it with `folder`.
  [[nodiscard]] std::string name_of(const std::string& path) const;
};

/// The folders of output files, open from a file's check to its last write: a file goes to the folder that was checked,
/// although another user renames that folder or puts a link in its place.
class HeldFolders {
 public:
  /// Opens the folder of `file`, unless it is held. Throws WriteError; for root also where the folder itself, not
  /// one above it, is a link of another user.
  void hold(const std::string& file);
  /// Holds `folder` as that of `file`.
  void hold(const std::string& file, Descriptor folder);
  /// `rules` with the folder of `file`, if it is held; valid while this lives.
  [[nodiscard]] WriteRules rules(const std::string& file, WriteRules rules) const;

 private:
  std::map<std::string, Descriptor> folders_;  ///< by path
};

/// Writes `content` to a temporary file in the same folder, under an unpredictable name, syncs it, renames it to
/// `path`, syncs the folder. Removes temporary files that killed processes of this user left there. A path that leads
/// to something other than a regular file, or to a descriptor of this process (/proc/self/fd/N and links to it), is
/// written to directly. Throws WriteError, and then leaves no file.
void write_atomically(const std::string& path, std::string_view content, const WriteRules& rules = {});

/// Throws WriteError unless write_atomically() to this path could work now: tried with a temporary file, which is
/// removed.
void require_writable(const std::string& path, const WriteRules& rules = {});

/// Whether write_atomically() would write to this path directly, without a temporary file.
[[nodiscard]] bool is_written_through(const std::string& path, const WriteRules& rules = {});

/// Writes `content` to a file that is new in `folder`, its name `start`, 16 hexadecimal digits, `end`, and only its
/// owner's to read. Returns its path. Throws WriteError; then nothing is left behind.
[[nodiscard]] std::string write_new_file(const std::string& folder, std::string_view start, std::string_view end,
                                         std::string_view content);

/// Writes all of `content` to an open file; `path` is what messages name. Throws WriteError.
void write_all(int fd, std::string_view content, const std::string& path);

/// Throws the WriteError "path: cannot ATTEMPT: the system's reason".
[[noreturn]] void cannot_write(const std::string& path, std::string_view attempt, int error);

/// Syncs the folder of a file, so that a new name survives a power cut as well; a file system that cannot sync
/// folders has written the file all the same.
void sync_folder_of(const std::string& path, const WriteRules& rules);

/// Creates a folder and its parents. Throws WriteError where it cannot, or where something else has the name.
void make_folder(const std::string& path);

/// Opens a folder to write into; `named`: the path that messages name. Throws as HeldFolders::hold().
[[nodiscard]] Descriptor open_folder(const std::string& path, const std::string& named);

}  // namespace gpubench
