# GPUBENCH_BUILD_ID: a hash of shared headers, compiler and settings. Program and module with the same id may pass C++ objects
# to each other.
set(_id ${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${GPUBENCH_SANITIZE})
file(GLOB _shared_headers ${CMAKE_SOURCE_DIR}/harness/core/*.h ${CMAKE_SOURCE_DIR}/reference/cuda/module.h
  ${CMAKE_SOURCE_DIR}/reference/mpi/module.h)
foreach(_header IN LISTS _shared_headers)
  file(SHA256 ${_header} _hash)
  list(APPEND _id ${_hash})
endforeach()
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_shared_headers})
string(SHA256 GPUBENCH_BUILD_ID "${_id}")
string(SUBSTRING ${GPUBENCH_BUILD_ID} 0 16 GPUBENCH_BUILD_ID)
