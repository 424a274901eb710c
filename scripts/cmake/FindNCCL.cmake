# Finds NCCL's header: NCCL_FOUND, NCCL_VERSION, target NCCL::headers, and NCCL::nccl where the library is there too.
# Looks in NCCL_ROOT, the CUDA toolkit, the system's folders, and the folders of NVIDIA's Python wheels
# (site-packages/nvidia/nccl), where the library has its version in its name only.
set(_nccl_hints)
if(CUDAToolkit_FOUND)
  list(APPEND _nccl_hints ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_ROOT} ${CUDAToolkit_LIBRARY_ROOT})
endif()
file(GLOB _nccl_wheels
  ${CMAKE_SOURCE_DIR}/.cuda/nvidia/nccl
  /usr/lib/python3*/site-packages/nvidia/nccl /usr/lib/python3/dist-packages/nvidia/nccl
  /usr/local/lib/python3*/site-packages/nvidia/nccl /usr/local/lib/python3*/dist-packages/nvidia/nccl
  $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/nccl $ENV{HOME}/.local/lib/python3*/site-packages/nvidia/nccl)
list(APPEND _nccl_hints ${_nccl_wheels})

find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${_nccl_hints} PATH_SUFFIXES include targets/x86_64-linux/include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${_nccl_hints} PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h _nccl_lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  foreach(_nccl_line IN LISTS _nccl_lines)
    string(REGEX MATCH "NCCL_([A-Z]+) +([0-9]+)" _ "${_nccl_line}")
    set(_nccl_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  endforeach()
  set(NCCL_VERSION ${_nccl_MAJOR}.${_nccl_MINOR}.${_nccl_PATCH})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::headers)
  add_library(NCCL::headers INTERFACE IMPORTED)
  set_target_properties(NCCL::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
if(NCCL_FOUND AND NCCL_LIBRARY AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl UNKNOWN IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
