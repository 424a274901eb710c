# gpubench_library(), gpubench_test() and the shared compile flags.

add_library(gpubench_flags INTERFACE)
target_compile_features(gpubench_flags INTERFACE cxx_std_20)
target_include_directories(gpubench_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(gpubench_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion
  -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual)
# Unity builds put several files into one translation unit: -Wshadow and -Wsubobject-linkage would warn falsely.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(gpubench_flags INTERFACE -Wshadow=local -Wno-subobject-linkage)
elseif(NOT CMAKE_UNITY_BUILD)
  target_compile_options(gpubench_flags INTERFACE -Wshadow)
endif()
# False warnings of optimizing g++ on inlined std::string and std::vector (GCC bugs 105651, 105562, 105593).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(gpubench_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
else()  # pragmas of g++
  target_compile_options(gpubench_flags INTERFACE -Wno-unknown-pragmas)
endif()
# Tests are linked by lld if installed: it takes a fifth of GNU ld's minute. A cross compiler has its own linker.
if(NOT CMAKE_CROSSCOMPILING)
  find_program(GPUBENCH_LLD ld.lld)
  mark_as_advanced(GPUBENCH_LLD)
endif()
if(GPUBENCH_SANITIZE)
  # Undefined behavior must end the program: a line of output would go unnoticed.
  target_compile_options(gpubench_flags INTERFACE -fsanitize=${GPUBENCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(gpubench_flags INTERFACE -fsanitize=${GPUBENCH_SANITIZE})
  if(GPUBENCH_LLD)
    target_link_options(gpubench_flags INTERFACE -fuse-ld=lld)
  endif()
  if(GPUBENCH_SANITIZE MATCHES "address")  # AddressSanitizer finds what these find; they cost a tenth of the compile time
    target_compile_options(gpubench_flags INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
  target_compile_definitions(gpubench_flags INTERFACE GPUBENCH_SANITIZED=1)
endif()

# -O0 under sanitizers, `release_level` in the release build. Only computing code is fully optimized: the rest compiles in half
# of the time at -O0 (sanitizers, tests), in two thirds at -O1 (the program).
function(gpubench_optimization name release_level)
  if(GPUBENCH_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE ${release_level})
    if(release_level STREQUAL "-O0")
      set_target_properties(${name} PROPERTIES GPUBENCH_UNOPTIMIZED ON)  # GpubenchHardening
    endif()
  endif()
endfunction()

# gpubench_library(<name> SOURCES ... LINK ... [PUBLIC_LINK ...] [HARDLY_COMPUTES] [UNITY_BATCH n]): a part of the program.
# LINK is PRIVATE, so that a part sees only libraries that it names (harness/README.md: what may include what).
function(gpubench_library name)
  cmake_parse_arguments(ARG "HARDLY_COMPUTES" "UNITY_BATCH" "SOURCES;LINK;PUBLIC_LINK" ${ARGN})
  if(NOT ARG_SOURCES)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE gpubench_flags ${ARG_PUBLIC_LINK})
    return()
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  if(ARG_UNITY_BATCH)
    set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE ${ARG_UNITY_BATCH})
  endif()
  target_link_libraries(${name} PUBLIC gpubench_flags ${ARG_PUBLIC_LINK} PRIVATE ${ARG_LINK})
  if(ARG_HARDLY_COMPUTES)
    gpubench_optimization(${name} -O1)
  endif()
endfunction()

# gpubench_table(<table> HEADER file NAMESPACE namespace TYPE type FILE pattern FUNCTION pattern NAMES name ...): a table with
# one source file per entry. In the patterns <name> stands for each name: FILE is its source, FUNCTION what it defines, without parameters.
# Writes a source with std::span<const TYPE> <table>(), which HEADER declares: what the functions return, in the order of the
# names. Sets <table>_sources to all these sources.
function(gpubench_table table)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE;TYPE;FILE;FUNCTION" "NAMES" ${ARGN})
  set(sources ${CMAKE_CURRENT_BINARY_DIR}/${table}.cpp)
  set(declared "")
  set(called "")
  foreach(name IN LISTS ARG_NAMES)
    string(REPLACE "<name>" ${name} source ${ARG_FILE})
    string(REPLACE "<name>" ${name} one ${ARG_FUNCTION})
    list(APPEND sources ${source})
    string(APPEND declared "${ARG_TYPE} ${one}();\n")
    string(APPEND called "      ${one}(),\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${table}.cpp @ONLY CONTENT "#include \"@ARG_HEADER@\"

#include <vector>

namespace @ARG_NAMESPACE@ {

@declared@
std::span<const @ARG_TYPE@> @table@() {
  // Never destroyed: threads that hang while the program ends may still read it.
  static const auto& all = *new std::vector<@ARG_TYPE@>{
@called@  };
  return all;
}

}  // namespace @ARG_NAMESPACE@
")
  set(${table}_sources ${sources} PARENT_SCOPE)
endfunction()

# Built only by `scripts/test --full`: the benchmarks, and each header alone.
add_custom_target(full)

# gpubench_bench(<name> SOURCES ... LINK ...): a benchmark of the harness or of gpubench's kernels. Excluded from `all`.
function(gpubench_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  gpubench_optimization(${name} -O1)  # the code that it times is in libraries
  target_link_libraries(${name} PRIVATE gpubench_flags ${ARG_LINK} benchmark::benchmark)
  add_dependencies(full ${name})
endfunction()

# Programs of `ctest -L smoke` and `-L threads`: the targets of the sanitizer builds.
add_custom_target(smoke_tests)
add_custom_target(threads_tests)
# Programs of `ctest -L gpu`, including multi_gpu: part of the package, to run on a machine with a GPU.
add_custom_target(gpu_tests)

# Precompiles headers common to nearly all tests, a quarter of the tests' compile time. Only in unity builds, so that `debug`
# finds missing includes, and only for g++: in folders that enable C, CMake names such a file by the C compiler.
function(gpubench_share_test_headers name)
  if(NOT CMAKE_UNITY_BUILD OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  if(NOT TARGET gpubench_test_headers)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/tests/test_headers.cpp CONTENT "")
    add_executable(gpubench_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/tests/test_headers.cpp)  # a program, for -fPIE as in tests
    target_link_libraries(gpubench_test_headers PRIVATE gpubench_flags GTest::gmock GTest::gtest_main)
    gpubench_optimization(gpubench_test_headers -O0)
    target_compile_options(gpubench_test_headers PRIVATE -fpch-preprocess)  # needed by ccache
    target_precompile_headers(gpubench_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>
      <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span> <string> <vector>)
  endif()
  target_compile_options(${name} PRIVATE -fpch-preprocess)
  target_precompile_headers(${name} REUSE_FROM gpubench_test_headers)
endfunction()

# gpubench_turn(<name> COMMAND ...): a test that is too slow for every run; scripts/test --full chooses three by the commit.
function(gpubench_turn name)
  add_test(NAME ${name} CONFIGURATIONS trials ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS turn TIMEOUT 900 COST 60 SKIP_RETURN_CODE 77)
endfunction()

# gpubench_turns(<program> <pattern> ...): one test for each --gtest_filter; sets turn_tests to their names.
function(gpubench_turns program)
  set(turn_tests "")
  foreach(pattern IN LISTS ARGN)
    string(REGEX REPLACE "[.]?[*][.]?" "" test "${pattern}")
    gpubench_turn(${program}.${test} COMMAND ${program} --gtest_filter=${pattern})
    list(APPEND turn_tests ${program}.${test})
  endforeach()
  set(turn_tests ${turn_tests} PARENT_SCOPE)
endfunction()

# gpubench_test_paths(<name>=<path> ...): defines paths declared in tests/paths.h. Not as compile definitions: they would
# differ between clones and defeat ccache.
function(gpubench_test_paths)
  set_property(GLOBAL APPEND PROPERTY GPUBENCH_TEST_PATHS ${ARGN})
endfunction()

# gpubench_test(<name> SOURCES ... LINK ... [LABEL label] [OPTIMIZED] [UNITY_BATCH n] [PROCESSORS n] [TURNS pattern ...]):
# a GoogleTest program whose tests CTest runs one by one, with PROCESSORS reserved for each (default: 1). One program per
# folder, since linking takes seconds; a unity build compiles UNITY_BATCH sources at a time (default: all), since reading
# headers takes two seconds per source. Its sources are optimized only with OPTIMIZED. Only one LABEL (default: unit):
# gtest_discover_tests loses a second one; ctest -L finds unit_cuda by both words. Each of TURNS is a --gtest_filter of tests
# that are too slow for every run, and becomes one CTest test labeled `turn` (scripts/test).
function(gpubench_test name)
  cmake_parse_arguments(ARG "OPTIMIZED" "LABEL;TIMEOUT;UNITY_BATCH;PROCESSORS" "SOURCES;LINK;TURNS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(ARG_UNITY_BATCH)
    set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE ${ARG_UNITY_BATCH})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE gpubench_flags ${ARG_LINK} gpubench_paths GTest::gmock GTest::gtest_main)
  if(GPUBENCH_LLD)
    target_link_options(${name} PRIVATE -fuse-ld=lld)
  endif()
  if(ARG_OPTIMIZED)
    if(NOT GPUBENCH_SANITIZE)
      gpubench_optimization(${name} -O1)
    endif()
  else()
    gpubench_optimization(${name} -O0)
    if(NOT "OpenMP::OpenMP_CXX" IN_LIST ARG_LINK)  # these define _OPENMP, which the shared headers lack
      gpubench_share_test_headers(${name})
    endif()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  foreach(label IN ITEMS smoke threads)
    if(ARG_LABEL MATCHES ${label})
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
  if(ARG_LABEL MATCHES gpu)
    add_dependencies(gpu_tests ${name})
    set_property(GLOBAL APPEND PROPERTY GPUBENCH_GPU_TESTS ${name})
  endif()
  list(JOIN ARG_TURNS ":" turns)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES TEST_FILTER "-${turns}" TEST_PREFIX "${name}."
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ARG_PROCESSORS})
  gpubench_turns(${name} ${ARG_TURNS})
endfunction()
