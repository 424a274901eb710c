# Components of `cmake --install`, in a relocatable folder:
#   program    bin/gpubench; the CUDA module in lib/; in share/ the manual page and shell completions, which the program
#              writes, the schemas and the licenses of compiled-in code; for implementations under test:
#              include/gpubench/implementation.h, and gpubench::implementation of find_package(gpubench)
#   libraries  lib/: every library that the program needs except the C and C++ libraries and NVIDIA's
#   mpi        lib/: the MPI modules; MPI itself is not installed
#   gpu_tests  tests/: the tests that need a GPU
#   python     content of the wheel (harness/python/pyproject.toml): program, library and the libraries they need
# scripts/package packs all of it; the .deb (GpubenchDeb) has only the program and depends on the libraries' packages.
if(GPUBENCH_SANITIZE)
  return()
endif()

# DT_RPATH, not the newer DT_RUNPATH: it applies also to dependencies of libraries in lib/, and takes precedence over
# LD_LIBRARY_PATH. The program has it in the build tree too: if CMake inserted it on install, it would reserve the space by an
# empty entry, which means the current folder.
target_link_options(gpubench PRIVATE -Wl,--disable-new-dtags)
set_target_properties(gpubench PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON)
install(TARGETS gpubench RUNTIME_DEPENDENCY_SET gpubench_libraries RUNTIME DESTINATION bin COMPONENT program)

install(CODE [[
  foreach(page IN ITEMS "man:man/man1/gpubench.1" "completion bash:bash-completion/completions/gpubench"
      "completion zsh:zsh/site-functions/_gpubench" "completion fish:fish/vendor_completions.d/gpubench.fish")
    string(REGEX MATCH "^([^:]*):(.*/)(.*)$" parts "${page}")
    string(REPLACE " " ";" verb "${CMAKE_MATCH_1}")
    set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/${CMAKE_MATCH_2}")
    set(file "${folder}${CMAKE_MATCH_3}")
    file(MAKE_DIRECTORY "${folder}")
    message(STATUS "Installing: ${file}")
    execute_process(COMMAND "$<TARGET_FILE:gpubench>" ${verb} OUTPUT_FILE "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
]] COMPONENT program)
install(FILES harness/core/implementation.h DESTINATION include/gpubench COMPONENT program)
install(TARGETS gpubench_implementation EXPORT gpubench_targets)
install(EXPORT gpubench_targets NAMESPACE gpubench:: FILE gpubench-config.cmake DESTINATION lib/cmake/gpubench
  COMPONENT program)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/gpubench-config-version.cmake COMPATIBILITY AnyNewerVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_BINARY_DIR}/gpubench-config-version.cmake DESTINATION lib/cmake/gpubench COMPONENT program)

install(FILES LICENSE CITATION.cff DESTINATION share/doc/gpubench COMPONENT program)
install(FILES scripts/cmake/debian_copyright DESTINATION share/doc/gpubench RENAME copyright COMPONENT program)
install(DIRECTORY results/schema DESTINATION share/gpubench COMPONENT program FILES_MATCHING PATTERN *.json)
foreach(package IN ITEMS libboost-dev libcli11-dev nlohmann-json3-dev)  # compiled-in headers need their notices
  install(FILES /usr/share/doc/${package}/copyright DESTINATION share/doc/gpubench/licences RENAME ${package}
    COMPONENT program OPTIONAL)  # Debian's folders
endforeach()

foreach(library IN LISTS GPUBENCH_MPI_LIBRARIES)
  target_link_options(gpubench_${library} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(gpubench_${library} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS gpubench_${library} LIBRARY DESTINATION lib COMPONENT mpi)
endforeach()

get_property(gpu_tests GLOBAL PROPERTY GPUBENCH_GPU_TESTS)
if(GPUBENCH_CUDA)
  foreach(target IN ITEMS CUDA::cublasLt cuDNN::cudnn)
    get_target_property(library ${target} IMPORTED_LOCATION)
    cmake_path(GET library PARENT_PATH folder)
    list(APPEND nvidia_folders ${folder})
  endforeach()
  list(REMOVE_DUPLICATES nvidia_folders)
  # In the build tree these search NVIDIA's libraries where CMake found them. CMake's own replacement on install would end the
  # RPATH of the build tree with a separator. The final slash replaces it: it keeps the linker from sharing the end of this
  # text with a symbol's name. The text must be long enough for the installed RPATH.
  list(JOIN nvidia_folders ":" build_rpath)
  string(APPEND build_rpath "/")
  set(install_rpath "$ORIGIN/../lib")
  string(LENGTH "${install_rpath}" room)
  string(LENGTH "${build_rpath}" length)
  while(length LESS room)
    string(APPEND build_rpath "/")
    math(EXPR length "${length} + 1")
  endwhile()
  foreach(target IN ITEMS gpubench_cuda ${gpu_tests})
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
    string(REPLACE ":" ";" folders "${build_rpath}")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${folders}" BUILD_WITH_INSTALL_RPATH ON)
  endforeach()
  function(change_installed_rpath file component)
    install(CODE "
      if(EXISTS \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\")
        file(RPATH_CHANGE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\"
          OLD_RPATH \"${build_rpath}\" NEW_RPATH [[${install_rpath}]])
      endif()" COMPONENT ${component})
  endfunction()
  install(TARGETS gpubench_cuda RUNTIME_DEPENDENCY_SET gpubench_libraries LIBRARY DESTINATION lib COMPONENT program)
  change_installed_rpath(lib/$<TARGET_FILE_NAME:gpubench_cuda> program)
endif()
if(gpu_tests)
  install(TARGETS ${gpu_tests} RUNTIME DESTINATION tests COMPONENT gpu_tests OPTIONAL)
  if(GPUBENCH_CUDA)
    foreach(target IN LISTS gpu_tests)
      change_installed_rpath(tests/$<TARGET_FILE_NAME:${target}> gpu_tests)
    endforeach()
  endif()
endif()

# The C and C++ libraries must be the system's: Debian 12's C++ library needs glibc 2.36, everything else only 2.34. NVIDIA's
# libraries come with the driver, a toolkit or Python wheels.
set(never_bundled "^(libc|libm|libdl|librt|libpthread|ld-linux-.*|libstdc\\+\\+|libgcc_s)\\.so"
  "^lib(cuda|cudart|cublas.*|cudnn.*|nccl|nvrtc.*|nvidia-.*)\\.so")
install(RUNTIME_DEPENDENCY_SET gpubench_libraries PRE_EXCLUDE_REGEXES ${never_bundled}
  DESTINATION lib COMPONENT libraries)

if(SKBUILD)
  target_link_options(gpubench_shared PRIVATE -Wl,--disable-new-dtags)
  target_link_options(gpubench_on_library PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(gpubench_shared PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS gpubench_shared gpubench_on_library RUNTIME_DEPENDENCY_SET gpubench_wheel_libraries
    LIBRARY DESTINATION gpubench/lib COMPONENT python RUNTIME DESTINATION gpubench/bin COMPONENT python)
  if(GPUBENCH_CUDA)
    install(TARGETS gpubench_cuda LIBRARY DESTINATION gpubench/lib COMPONENT python)
    change_installed_rpath(gpubench/lib/$<TARGET_FILE_NAME:gpubench_cuda> python)
  endif()
  install(RUNTIME_DEPENDENCY_SET gpubench_wheel_libraries PRE_EXCLUDE_REGEXES ${never_bundled} "^libgpubench\\.so"
    DESTINATION gpubench/lib COMPONENT python)
  install(FILES harness/core/implementation.h DESTINATION gpubench/include/gpubench COMPONENT python)
endif()

include(GpubenchDeb)
