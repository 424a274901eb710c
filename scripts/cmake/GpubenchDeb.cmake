# `cpack -G DEB` in the build folder, for scripts/package --deb: a Debian package of the program. It bundles no libraries:
# dpkg-shlibdeps adds dependencies on their packages, so it fits the Debian release it was built on.
set(CPACK_GENERATOR DEB)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};gpubench;program;/")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "benchmark and conformance suite for GPU training")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "Runs the work that training is made of (matrix products, convolutions,
attention, norms, losses, optimizers, whole training steps), times it, and
checks the very buffers that were timed against an fp64 textbook with a
derived error bound: no number without a verdict.")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "gpubench authors")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(GPUBENCH_CUDA)  # libraries from Python wheels belong to no package, but must be found
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${nvidia_folders})
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS 
    "libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}, libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}")
endif()
include(CPack)
