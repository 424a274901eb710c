# nvidia_places(<package> <result>): folders of a library of NVIDIA besides the system's: the CUDA toolkit, and Python wheels
# (site-packages/nvidia/<package>), which have only the versioned library name.
function(nvidia_places package result)
  set(_places)
  if(CUDAToolkit_FOUND)
    list(APPEND _places ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_ROOT} ${CUDAToolkit_LIBRARY_ROOT})
  endif()
  file(GLOB _wheels
    ${CMAKE_SOURCE_DIR}/.cuda/nvidia/${package}
    /usr/lib/python3*/site-packages/nvidia/${package} /usr/lib/python3/dist-packages/nvidia/${package}
    /usr/local/lib/python3*/site-packages/nvidia/${package} /usr/local/lib/python3*/dist-packages/nvidia/${package}
    $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia/${package} $ENV{HOME}/.local/lib/python3*/site-packages/nvidia/${package})
  set(${result} ${_places} ${_wheels} PARENT_SCOPE)
endfunction()

# version_in_header(<file> <prefix> <last> <result>): "9.19.0" of #define <prefix>_MAJOR 9, _MINOR 19 and _<last> 0.
function(version_in_header file prefix last result)
  set(_parts)
  foreach(_part IN ITEMS MAJOR MINOR ${last})
    file(STRINGS ${file} _line REGEX "^#define ${prefix}_${_part} +[0-9]+")
    string(REGEX MATCH " ([0-9]+)" _ "${_line}")
    list(APPEND _parts ${CMAKE_MATCH_1})
  endforeach()
  list(JOIN _parts . _version)
  set(${result} ${_version} PARENT_SCOPE)
endfunction()
