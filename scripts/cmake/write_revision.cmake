# cmake -DOUTPUT=revision.cpp -DSOURCE=<tree> -DGIT=<git or empty> -P write_revision.cmake
# Writes the revision of `git describe` ("30d45bb0a1b2", "-dirty" if tracked files differ), else that of `git archive` in
# archived_revision, else an empty one; and OUTPUT.d with the files it depends on.
set(revision "")
set(dependencies "")
set(ENV{GIT_OPTIONAL_LOCKS} 0)  # do not lock out a git command of the user
foreach(variable GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE)  # hooks set them, possibly for another repository
  unset(ENV{${variable}})
endforeach()

function(ask_git result)
  set(${result} "" PARENT_SCOPE)
  if(GIT)
    execute_process(COMMAND ${GIT} -C ${SOURCE} ${ARGN}
      OUTPUT_VARIABLE answer ERROR_QUIET RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(code EQUAL 0)
      set(${result} "${answer}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# An unpacked tarball may lie inside another repository, whose revision must not be used.
ask_git(top rev-parse --show-toplevel)
file(REAL_PATH ${SOURCE} tree)
if(top)
  file(REAL_PATH ${top} top)
endif()
if(top STREQUAL tree)
  ask_git(revision describe --always --dirty --abbrev=12 --exclude=*)
  ask_git(log rev-parse --path-format=absolute --git-path logs/HEAD)
  ask_git(files ls-files)
  string(REPLACE "\n" ";" files "${files}")
  foreach(file IN LISTS files)
    list(APPEND dependencies ${tree}/${file})
  endforeach()
  if(EXISTS "${log}")
    list(APPEND dependencies ${log})
  endif()
else()
  file(STRINGS ${SOURCE}/scripts/cmake/archived_revision archived LIMIT_COUNT 1)
  if(archived MATCHES "^([0-9a-f]+)$")
    string(SUBSTRING ${archived} 0 12 revision)
  endif()
endif()
if(NOT revision MATCHES "^([0-9a-f]+(-dirty)?)?$")  # it becomes source text
  set(revision "")
endif()

file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include <string_view>

namespace gpubench {
std::string_view built_revision();  // harness/cli/program.h, which would take long to compile at each commit
std::string_view built_revision() { return "@revision@"; }
}
]])
list(TRANSFORM dependencies REPLACE "([ #])" "\\\\\\1")
list(JOIN dependencies " \\\n  " dependencies)
file(WRITE ${OUTPUT}.d "${OUTPUT}: ${dependencies}\n")
