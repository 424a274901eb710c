// The program of the Python package: all of it is in the library beside it.
#include "harness/python/library.h"

int main(int argc, char** argv) { return gpubench_main(argc, argv); }
