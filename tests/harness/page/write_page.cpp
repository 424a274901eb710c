#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/harness/page/made_cases.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: write_page FILE N\n", stderr);
    return 2;
  }
  std::vector<gpubench::Report> reports{gpubench::page::large_report(std::atoi(argv[2]))};
  reports.front().cases.push_back(gpubench::page::with_verdict(gpubench::page::made_gemm(7), gpubench::Verdict::fail,
                                                               "<b>3 of 64 elements</b> outside their bound"));
  std::ofstream file(argv[1], std::ios::binary);
  file << gpubench::page::report_page(reports);
  return file.flush() ? 0 : 1;
}
