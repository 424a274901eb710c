# cmake -DSOURCE=<gpubench> -DGIT=<git or empty> -DFOLDER=<scratch> -P revision_test.cmake
# write_revision.cmake for a tree without git, a tarball of `git archive`, a clean clone and a changed one.
set(script ${SOURCE}/scripts/cmake/write_revision.cmake)

function(expect what pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -DOUTPUT=${FOLDER}/revision.cpp -DSOURCE=${tree} -DGIT=${GIT} -P ${script}
    COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${FOLDER}/revision.cpp text)
  if(NOT text MATCHES "return \"${pattern}\";")
    message(FATAL_ERROR "${what}: expected a revision that matches '${pattern}' in\n${text}")
  endif()
endfunction()

function(git)
  execute_process(COMMAND ${GIT} -C ${tree} -c user.name=test -c user.email=test@example.org ${ARGN}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${FOLDER})
set(tree "${FOLDER}/a tree")  # the blank is part of the test
set(archived "${tree}/scripts/cmake/archived_revision")

file(WRITE ${archived} "$Format:%H$\n")
expect("a copy without git" "")
file(WRITE ${archived} "30d45bb0a1b2c3d4e5f60718293a4b5c6d7e8f90\n")
expect("a tarball" "30d45bb0a1b2")
file(WRITE ${archived} "\"; abort(); //\n")
expect("a tarball that was tampered with" "")

if(GIT)
  git(init -q)
  git(add -A)
  git(commit -q --no-gpg-sign -m "first")
  expect("a clean clone" "[0-9a-f]+")
  file(READ ${FOLDER}/revision.cpp.d dependencies)
  if(NOT dependencies MATCHES "a\\\\ tree/scripts/cmake/archived_revision")
    message(FATAL_ERROR "the tracked file is no dependency:\n${dependencies}")
  endif()
  file(APPEND ${archived} "more\n")
  expect("a clone with a changed file" "[0-9a-f]+-dirty")
endif()
