#include "harness/cli/trusted_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

namespace fs = std::filesystem;

std::string complaint_about(const fs::path& path, bool is_above) {
  const std::string name = visible(path.string());
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return fmt::format("{}: {}", name, std::strerror(errno));
  if (status.st_uid != 0) return fmt::format("{} belongs to user {}", name, status.st_uid);
  const bool sticky = is_above && (status.st_mode & S_ISVTX) != 0;  // what is in it, only its owner can replace
  if (!sticky && (status.st_mode & S_IWOTH) != 0) return fmt::format("everybody may write to {}", name);
  if (!sticky && (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0)
    return fmt::format("group {} may write to {}", status.st_gid, name);
  return "";
}

}  // namespace

std::string changeable_by_others(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);  // links lead to it, and where to is looked at instead
  if (error) return fmt::format("{}: {}", visible(path.string()), error.message());
  for (fs::path at = real;; at = at.parent_path()) {
    if (std::string why = complaint_about(at, at != real); !why.empty()) return why;
    if (at == at.root_path()) return "";
  }
}

}  // namespace gpubench
