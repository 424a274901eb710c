// Files that are either the old one or the whole new one, whatever happens in between.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace gpubench {

/// "path: what was attempted: the system's reason".
class WriteError : public std::runtime_error {
 public:
  explicit WriteError(const std::string& what) : std::runtime_error(what) {}
};

/// Writes `content` to a temporary file in the same folder, syncs it, renames it to `path`, syncs the folder. A path
/// that exists and is no regular file (a pipe, /dev/null) is written directly. Throws WriteError; then nothing is left
/// behind.
void write_atomically(const std::string& path, std::string_view content);

/// Throws WriteError unless write_atomically() to this path could work now: tried with a temporary file, which is
/// removed.
void require_writable(const std::string& path);

/// Creates a folder and its parents. Throws WriteError where it cannot, or where something else has the name.
void make_folder(const std::string& path);

}  // namespace gpubench
