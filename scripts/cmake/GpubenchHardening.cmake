# What makes a mistake in memory harder to use, in every program and module: canaries on the stack, checked calls of the C
# library, position-independent programs, a stack that is not executed, and no table of functions that stays writable (full
# RELRO). tests/scripts/binaries_test.py holds every binary to it.
include(CheckPIESupported)
check_pie_supported()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)

# The sanitizers have their own checks, and their runtime does not know the C library's.
if(GPUBENCH_SANITIZE)
  return()
endif()
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fstack-protector-strong>)

# Level 3 also checks sizes that are known when the program runs. g++ has it since 12, and there it is too young.
set(_level 2)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 16))
  set(_level 3)
endif()
# It works in optimized code only, and warns elsewhere. Distributions define it themselves: hence -U.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:GPUBENCH_UNOPTIMIZED>>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${_level}>")
endif()
