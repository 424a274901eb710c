# Finds cuDNN: cuDNN_FOUND, cuDNN_VERSION, target cuDNN::cudnn.
# Looks in cuDNN_ROOT, the CUDA toolkit, the system's folders, and the folders of NVIDIA's Python wheels
# (site-packages/nvidia/cudnn), which have only the versioned library name.
include(NvidiaWheels)
nvidia_places(cudnn _cudnn_hints)

find_path(cuDNN_INCLUDE_DIR cudnn_version.h HINTS ${_cudnn_hints} PATH_SUFFIXES include targets/x86_64-linux/include)
find_library(cuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${_cudnn_hints} PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu)
mark_as_advanced(cuDNN_INCLUDE_DIR cuDNN_LIBRARY)

if(cuDNN_INCLUDE_DIR)
  version_in_header(${cuDNN_INCLUDE_DIR}/cudnn_version.h CUDNN PATCHLEVEL cuDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuDNN REQUIRED_VARS cuDNN_LIBRARY cuDNN_INCLUDE_DIR VERSION_VAR cuDNN_VERSION)
if(cuDNN_FOUND AND NOT TARGET cuDNN::cudnn)
  add_library(cuDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(cuDNN::cudnn PROPERTIES IMPORTED_LOCATION ${cuDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${cuDNN_INCLUDE_DIR})
endif()
