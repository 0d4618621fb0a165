//===- main.cpp - The most f32 operations a second of this thread ---------===//
//
// fma-peak [--vector-bytes=32] [MILLISECONDS]
// Prints GFLOP/s, of the widest vectors of the CPU.
//
//===----------------------------------------------------------------------===//
#include "tools/tcc-run/Roofline.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace tcc::tools;

int main(int argc, char **argv) {
  double milliseconds = 50;
  int vectorBytes = getWidestVector();
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--vector-bytes=32"))
      vectorBytes = 32;
    else
      milliseconds = std::atof(argv[i]);
  }
  std::printf("%.1f\n", measurePeak(milliseconds * 1e-3, vectorBytes));
  return 0;
}
