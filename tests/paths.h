// Paths of programs, libraries and files for tests. CMake generates the definitions (gpubench_test_paths()), so that no
// other source depends on the build folder, and ccache works across clones.
#pragma once

namespace gpubench::paths {

// Programs.
extern const char* const program;  ///< gpubench itself
extern const char* const sim_program;
extern const char* const gbench_sim_program;
extern const char* const slow_program;
extern const char* const sim_worker;
extern const char* const faulty_ranks_program;
extern const char* const faulty_processes_program;
extern const char* const
    launchers;  ///< "openmpi=/usr/bin/mpirun.openmpi,mpich=...": one per MPI that a module is built for

// Libraries.
extern const char* const loops;
extern const char* const cheats;
extern const char* const noisy_implementation;
extern const char* const example_onednn;
extern const char* const example_openblas;  ///< only with GPUBENCH_TEST_OPENBLAS
extern const char* const cuda_module;       ///< only with GPUBENCH_TEST_CUDA_MODULE
extern const char* const other_build;       ///< a CUDA module of another build
extern const char* const hanging_module;
extern const char* const fake_cuda;
extern const char* const fake_driver_folders;  ///< for LD_LIBRARY_PATH: a fake libcuda.so.1 and libnvidia-ml.so.1
extern const char* const fake_nvml_folder;
extern const char* const corrupt_onednn;
extern const char* const faulty_onednn;
extern const char* const empty_amx_leaf;

// Files and folders.
extern const char* const source_folder;
extern const char* const results;
extern const char* const schemas;
extern const char* const definitions;
extern const char* const ops_readme;
extern const char* const chips;
extern const char* const junit_schema;
extern const char* const compare_py;  ///< Google Benchmark's compare.py; empty if not installed
extern const char* const cli_golden;
extern const char* const chart_golden;
extern const char* const cudnn_golden;

}  // namespace gpubench::paths
