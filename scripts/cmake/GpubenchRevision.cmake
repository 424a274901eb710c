# gpubench_revision(<target>): adds to a program the source that says which revision it was built from (harness/cli/program.h).
# Updated after a commit or a change of a tracked file, and written only if it differs, so that a commit recompiles one line.
# For trees without git and tarballs of `git archive`, see write_revision.cmake.
find_package(Git QUIET)

function(gpubench_revision target)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/revision.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DSOURCE=${CMAKE_SOURCE_DIR} -DGIT=${GIT_EXECUTABLE}
      -P ${CMAKE_SOURCE_DIR}/scripts/cmake/write_revision.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/scripts/cmake/write_revision.cmake ${CMAKE_SOURCE_DIR}/scripts/cmake/archived_revision
    DEPFILE ${output}.d
    COMMENT "Asking git for the revision"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
