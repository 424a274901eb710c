# Hardening of every program and module: stack canaries, fortified calls of the C library, position-independent programs, a
# non-executable stack, full RELRO. tests/scripts/binaries_test.py checks every binary.
include(CheckPIESupported)
check_pie_supported()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)

# Sanitizers have their own checks, and their runtime does not intercept fortified calls.
if(GPUBENCH_SANITIZE)
  return()
endif()
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fstack-protector-strong>)

# Level 3 also checks sizes known at run time only. In g++ 12, its first version is not mature.
set(_level 2)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 16))
  set(_level 3)
endif()
# Works in optimized code only and warns otherwise. -U: distributions predefine it.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:GPUBENCH_UNOPTIMIZED>>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${_level}>")
endif()
