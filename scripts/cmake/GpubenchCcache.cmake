# Compiles through ccache if it is installed and no other launcher is set. Paths, also in the programs, are relative to the
# source folder, so that clones share results.
find_program(GPUBENCH_CCACHE ccache)
mark_as_advanced(GPUBENCH_CCACHE)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>")
if(NOT GPUBENCH_CCACHE OR DEFINED CMAKE_CXX_COMPILER_LAUNCHER OR DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  return()
endif()
foreach(_language IN ITEMS C CXX CUDA)
  set(CMAKE_${_language}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${GPUBENCH_CCACHE})
endforeach()
