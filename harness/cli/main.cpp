#include "harness/cli/run_cli.h"
#include "suites/suites.h"

int main(int argc, char** argv) {
  using namespace gpubench;
  return run_program(argc, argv, all_suites(), built_in_backends(argc > 0 ? argv[0] : ""), built_revision());
}
