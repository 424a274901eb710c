# Finds cuDNN: cuDNN_FOUND, cuDNN_VERSION, target cuDNN::cudnn.
# Looks in cuDNN_ROOT, the CUDA toolkit, the system's folders, and the folders of NVIDIA's Python wheels
# (site-packages/nvidia/cudnn), where the library has its version in its name only.
set(_cudnn_hints)
if(CUDAToolkit_FOUND)
  list(APPEND _cudnn_hints ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_ROOT} ${CUDAToolkit_LIBRARY_ROOT})
endif()
file(GLOB _cudnn_wheels
  ${CMAKE_SOURCE_DIR}/.cuda/nvidia/cudnn
  /usr/lib/python3*/site-packages/nvidia/cudnn /usr/lib/python3/dist-packages/nvidia/cudnn
  /usr/local/lib/python3*/site-packages/nvidia/cudnn /usr/local/lib/python3*/dist-packages/nvidia/cudnn
  $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/cudnn $ENV{HOME}/.local/lib/python3*/site-packages/nvidia/cudnn)
list(APPEND _cudnn_hints ${_cudnn_wheels})

find_path(cuDNN_INCLUDE_DIR cudnn_version.h HINTS ${_cudnn_hints} PATH_SUFFIXES include targets/x86_64-linux/include)
find_library(cuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${_cudnn_hints} PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu)
mark_as_advanced(cuDNN_INCLUDE_DIR cuDNN_LIBRARY)

if(cuDNN_INCLUDE_DIR)
  file(STRINGS ${cuDNN_INCLUDE_DIR}/cudnn_version.h _cudnn_lines REGEX "^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
  foreach(_cudnn_line IN LISTS _cudnn_lines)
    string(REGEX MATCH "CUDNN_([A-Z]+) +([0-9]+)" _ "${_cudnn_line}")
    set(_cudnn_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  endforeach()
  set(cuDNN_VERSION ${_cudnn_MAJOR}.${_cudnn_MINOR}.${_cudnn_PATCHLEVEL})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuDNN REQUIRED_VARS cuDNN_LIBRARY cuDNN_INCLUDE_DIR VERSION_VAR cuDNN_VERSION)
if(cuDNN_FOUND AND NOT TARGET cuDNN::cudnn)
  add_library(cuDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(cuDNN::cudnn PROPERTIES IMPORTED_LOCATION ${cuDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${cuDNN_INCLUDE_DIR})
endif()
