//===- main.cpp - The most f32 operations a second of this thread ---------===//
//
// fma-peak [MILLISECONDS]
// Prints GFLOP/s.
//
//===----------------------------------------------------------------------===//
#include "tools/tcc-run/Roofline.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  double milliseconds = argc > 1 ? std::atof(argv[1]) : 50;
  std::printf("%.1f\n", tcc::tools::measurePeak(milliseconds * 1e-3));
  return 0;
}
