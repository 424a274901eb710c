// The program gpubench: the real suites and backends.
#include "harness/cli/program.h"
#include "reference/cpu/cpu_backend.h"
#include "suites/suites.h"

int main(int argc, char** argv) {
  return gpubench::run_program(argc, argv, gpubench::all_suites(),
                               {{"cpu", [] { return gpubench::open_cpu_backend(); },
                                 [] {
                                   return std::vector<std::string>{"f32", "bf16"};
                                 }}});
}
