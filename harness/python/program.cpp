// The program of the Python package, on libgpubench.so.
#include "harness/python/library.h"

int main(int argc, char** argv) { return gpubench_main(argc, argv); }
