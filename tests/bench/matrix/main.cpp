//===- main.cpp - Matrix kernels beside oneDNN, on one thread -------------===//
//
// matrix-bench [--cpu=NAME] [FILTER]
// Times each generated kernel, fused multiply-adds on registers and the peers
// in turns and prints the table of docs/probes.md. All use vectors as wide as
// those of the CPU that is named. What the kernels compute is checked by
// tests/compiler.
//
//===----------------------------------------------------------------------===//
#include "tests/bench/matrix/Kernels.h"
#include "tests/bench/matrix/Peer.h"
#include "tools/tcc-run/Roofline.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

using namespace tcc;
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

static double medianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

namespace {

/// Medians over rounds in which all take turns: what others do to the caches
/// and the frequency hits all alike.
struct Comparison {
  std::vector<double> seconds; // of each run
  double peak;                 // operations a second

  Comparison(const std::vector<Run> &runs, int vectorBytes);
};

} // namespace

Comparison::Comparison(const std::vector<Run> &runs, int vectorBytes) {
  constexpr double kPeakSeconds = 200e-6;
  std::vector<std::vector<double>> times(runs.size());
  std::vector<double> peaks;
  double total = 0;
  while (peaks.size() < 15 || total < 1.5) {
    for (size_t i = 0; i < runs.size(); ++i) {
      times[i].push_back(secondsOf(runs[i]));
      total += times[i].back();
    }
    peaks.push_back(1e9 * tools::measurePeak(kPeakSeconds, vectorBytes));
  }
  for (const std::vector<double> &t : times)
    seconds.push_back(medianOf(t));
  peak = medianOf(peaks);
}

namespace {

/// Prints rows of the table, for kernels of one CPU.
class Table {
public:
  explicit Table(std::string cpu)
      : cpu(std::move(cpu)), vectorBytes(getVectorBytes(this->cpu)) {}

  void add(MatmulShape shape) {
    printRow(shape.getName(), shape.getFlops(),
             {makeMatmul(shape, cpu), peerMatmul(shape)});
  }
  void add(ConvolutionShape shape) {
    printRow(shape.getName(), shape.getFlops(),
             {makeConvolution(shape, cpu), peerConvolution(shape, false),
              peerConvolution(shape, true)});
  }
  void limitPeers() const {
    if (vectorBytes < tools::getWidestVector())
      setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
  }

private:
  std::string cpu;
  int vectorBytes;

  /// `runs`: the kernel and its peers, the first of which has a layout of its
  /// own, the second the one that our activations have.
  void printRow(const std::string &name, double flops,
                const std::vector<Run> &runs) {
    auto [seconds, peak] = Comparison(runs, vectorBytes);
    std::printf("| %s | %.0f | %.0f%% | %.0f | %.2f |", name.c_str(),
                flops / seconds[0] * 1e-9, 100 * flops / seconds[0] / peak,
                flops / seconds[1] * 1e-9, seconds[1] / seconds[0]);
    if (runs.size() > 2)
      std::printf(" %.2f", seconds[2] / seconds[0]);
    std::printf(" |\n");
    std::fflush(stdout);
  }
};

} // namespace

template <typename Shape, size_t N>
static void addSelected(Table &table, const Shape (&shapes)[N],
                        const std::string &filter) {
  for (const Shape &shape : shapes)
    if (shape.getName().find(filter) != std::string::npos)
      table.add(shape);
}

int main(int argc, char **argv) {
  std::string cpu = "native", filter;
  for (int i = 1; i < argc; ++i) {
    if (!std::strncmp(argv[i], "--cpu=", 6))
      cpu = argv[i] + 6;
    else
      filter = argv[i];
  }
  Table table(cpu);
  table.limitPeers();
  std::printf("| f32 | tcc GF/s | of peak | oneDNN GF/s | tcc / blocked | tcc "
              "/ NHWC |\n"
              "|---|---|---|---|---|---|\n");
  addSelected(table, kMatmuls, filter);
  addSelected(table, kConvolutions, filter);
  addSelected(table, kDepthwise, filter);
}
