//===- main.cpp - Matrix kernels beside oneDNN, on one thread -------------===//
//
// matrix-bench [--cpu=NAME] [FILTER]
// Times each generated kernel and its peers in turns and prints the table of
// docs/probes.md. What the kernels compute is checked by tests/compiler.
//
//===----------------------------------------------------------------------===//
#include "tests/bench/matrix/Kernels.h"
#include "tests/bench/matrix/Peer.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

using namespace tcc::bench;
using Run = std::function<void()>;

static constexpr MatmulShape kMatmuls[] = {
    {1024, 1024, 1024}, {128, 128, 128}, {512, 768, 3072}, {512, 3072, 768},
    {128, 768, 768},    {1, 1000, 2048}, {1, 3072, 768},   {33, 100, 65}};

static constexpr ConvolutionShape kConvolutions[] = {
    {64, 64, 56, 3, 1},   {64, 256, 56, 1, 1},   {256, 64, 56, 1, 1},
    {512, 512, 7, 3, 1},  {256, 256, 14, 3, 1},  {128, 128, 56, 3, 2},
    {256, 512, 56, 1, 2}, {1024, 256, 14, 1, 1}, {3, 64, 224, 7, 2}};

static constexpr ConvolutionShape kDepthwise[] = {{64, 64, 112, 3, 1, true},
                                                  {144, 144, 56, 3, 1, true},
                                                  {144, 144, 56, 3, 2, true},
                                                  {384, 384, 14, 3, 1, true},
                                                  {240, 240, 28, 5, 1, true}};

/// Of this thread alone: other processes take none of it.
static double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static double secondsOf(const Run &run) {
  double start = cpuSeconds();
  run();
  return cpuSeconds() - start;
}

/// The median of each over rounds in which they take turns: what others do to
/// the caches hits all alike.
static std::vector<double> compare(const std::vector<Run> &runs) {
  std::vector<std::vector<double>> times(runs.size());
  double total = 0;
  while (times[0].size() < 15 || total < 1.5)
    for (size_t i = 0; i < runs.size(); ++i) {
      times[i].push_back(secondsOf(runs[i]));
      total += times[i].back();
    }
  std::vector<double> medians;
  for (std::vector<double> &t : times) {
    std::nth_element(t.begin(), t.begin() + t.size() / 2, t.end());
    medians.push_back(t[t.size() / 2]);
  }
  return medians;
}

/// One row: the kernel and its peers, the first of which has a layout of its
/// own, the second the one that our activations have.
static void printRow(const std::string &name, double flops,
                     const std::vector<Run> &runs) {
  std::vector<double> seconds = compare(runs);
  std::printf("| %s | %.0f | %.0f | %.2f |", name.c_str(),
              flops / seconds[0] * 1e-9, flops / seconds[1] * 1e-9,
              seconds[1] / seconds[0]);
  if (runs.size() > 2)
    std::printf(" %.2f", seconds[2] / seconds[0]);
  std::printf(" |\n");
  std::fflush(stdout);
}

static void benchConvolution(ConvolutionShape shape, const std::string &cpu) {
  printRow(shape.getName(), shape.getFlops(),
           {makeConvolution(shape, cpu), peerConvolution(shape, false),
            peerConvolution(shape, true)});
}

int main(int argc, char **argv) {
  std::string cpu = "native", filter;
  for (int i = 1; i < argc; ++i) {
    if (!std::strncmp(argv[i], "--cpu=", 6))
      cpu = argv[i] + 6;
    else
      filter = argv[i];
  }
  auto isSelected = [&](const auto &shape) {
    return shape.getName().find(filter) != std::string::npos;
  };
  std::printf("| f32 | tcc GF/s | oneDNN GF/s | tcc / blocked | tcc / NHWC |\n"
              "|---|---|---|---|---|\n");
  for (MatmulShape shape : kMatmuls)
    if (isSelected(shape))
      printRow(shape.getName(), shape.getFlops(),
               {makeMatmul(shape, cpu), peerMatmul(shape)});
  for (ConvolutionShape shape : kConvolutions)
    if (isSelected(shape))
      benchConvolution(shape, cpu);
  for (ConvolutionShape shape : kDepthwise)
    if (isSelected(shape))
      benchConvolution(shape, cpu);
}
