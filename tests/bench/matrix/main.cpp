//===- main.cpp - Matrix kernels beside oneDNN, on one thread -------------===//
//
// matrix-bench [--cpu=NAME] [--asm] [FILTER]
// Checks each generated kernel against sums in double, then times it and its
// peer in turns.
//
//===----------------------------------------------------------------------===//
#include "tests/bench/matrix/Kernels.h"
#include "tests/bench/matrix/Peer.h"
#include "llvm/TargetParser/Host.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

using namespace tcc::bench;

static std::string cpuName, filter;
static bool printAssembly;

static double seconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

static Buffer randomValues(int64_t n) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Buffer values(n);
  for (float &v : values)
    v = uniform(generator);
  return values;
}

/// Minimum and median over runs in turns: neighbours' load hits both alike.
static void compare(const std::string &name, double flops,
                    std::function<void()> ours, std::function<void()> peer) {
  std::vector<double> mine, theirs;
  ours();
  peer();
  for (double start = seconds(); mine.size() < 15 || seconds() - start < 1;) {
    double t0 = seconds();
    ours();
    double t1 = seconds();
    peer();
    double t2 = seconds();
    mine.push_back(t1 - t0);
    theirs.push_back(t2 - t1);
  }
  auto summary = [](std::vector<double> &times) {
    std::sort(times.begin(), times.end());
    return std::pair(times.front(), times[times.size() / 2]);
  };
  auto [mineMin, mineMed] = summary(mine);
  auto [theirMin, theirMed] = summary(theirs);
  std::printf("%-34s %9.3f ms %7.1f GF/s | peer %9.3f ms %7.1f GF/s | "
              "speed x%.2f (median x%.2f)\n",
              name.c_str(), mineMin * 1e3, flops / mineMin * 1e-9,
              theirMin * 1e3, flops / theirMin * 1e-9, theirMin / mineMin,
              theirMed / mineMed);
  std::fflush(stdout);
}

static void report(const std::string &name, const Buffer &out,
                   const std::function<double(int64_t)> &reference) {
  double worst = 0;
  size_t step = std::max<size_t>(1, out.size() / 5000);
  for (size_t i = 0; i < out.size(); i += step)
    worst = std::max(worst, std::abs(out[i] - reference(i)));
  if (!(worst < 1e-3))
    std::printf("%s: WRONG, off by %g\n", name.c_str(), worst);
}

static bool selected(const std::string &name) {
  return name.find(filter) != std::string::npos;
}

static void benchMatmul(mlir::MLIRContext &context, MatmulShape shape) {
  auto [m, n, k] = shape;
  std::string name = "matmul " + std::to_string(m) + "x" + std::to_string(n) +
                     "x" + std::to_string(k);
  if (!selected(name))
    return;
  Kernel kernel = Kernel::matmul(context, shape, cpuName);
  if (printAssembly)
    std::puts(kernel.assembly().c_str());
  Buffer a = randomValues(m * k), b = randomValues(k * n);
  Buffer panels = packPanels(b, n, k, 32, 1, n), out(m * n);
  auto ours = [&] { kernel.run(a.data(), panels.data(), out.data()); };
  ours();
  report(name, out, [&, n = n, k = k](int64_t e) {
    double sum = 0;
    for (int64_t d = 0; d < k; ++d)
      sum += double(a[e / n * k + d]) * b[d * n + e % n];
    return sum;
  });
  compare(name, 2.0 * m * n * k, ours, peerMatmul(shape));
}

static double convolutionAt(ConvolutionShape s, const Buffer &w,
                            const Buffer &x, int64_t e) {
  int64_t o = s.output(), ow = e % o, oh = e / o % o, f = e / o / o;
  double sum = 0;
  for (int64_t c = 0; c < s.channels; ++c)
    for (int64_t i = 0; i < s.taps; ++i)
      for (int64_t j = 0; j < s.taps; ++j) {
        int64_t y = oh * s.stride - s.pad() + i;
        int64_t z = ow * s.stride - s.pad() + j;
        if (y < 0 || z < 0 || y >= s.size || z >= s.size)
          continue;
        sum += double(w[((f * s.channels + c) * s.taps + i) * s.taps + j]) *
               x[(c * s.size + y) * s.size + z];
      }
  return sum;
}

static void benchConvolution(mlir::MLIRContext &context,
                             ConvolutionShape shape) {
  auto [c, f, size, taps, stride] = shape;
  std::string name = "conv " + std::to_string(taps) + "x" +
                     std::to_string(taps) + "/" + std::to_string(stride) + " " +
                     std::to_string(c) + "->" + std::to_string(f) + " @" +
                     std::to_string(size);
  if (!selected(name))
    return;
  int64_t k = c * taps * taps, pixels = shape.output() * shape.output();
  Kernel kernel = Kernel::convolution(context, shape, cpuName);
  if (printAssembly)
    std::puts(kernel.assembly().c_str());
  Buffer x = randomValues(c * size * size);
  Buffer w = randomValues(f * k), out(f * pixels);
  Buffer panels = packPanels(w, f, k, 8, k, 1);
  auto ours = [&] { kernel.run(panels.data(), x.data(), out.data()); };
  ours();
  report(name, out, [&](int64_t e) { return convolutionAt(shape, w, x, e); });
  double flops = 2.0 * f * k * pixels;
  compare(name, flops, ours, peerConvolution(shape, false, false));
  compare(name + " (peer NCHW)", flops, ours,
          peerConvolution(shape, false, true));
}

static void benchDepthwise(mlir::MLIRContext &context, ConvolutionShape shape) {
  auto [c, f, size, taps, stride] = shape;
  std::string name = "depthwise " + std::to_string(taps) + "x" +
                     std::to_string(taps) + "/" + std::to_string(stride) + " " +
                     std::to_string(c) + " @" + std::to_string(size);
  if (!selected(name))
    return;
  Kernel kernel = Kernel::depthwise(context, shape, cpuName);
  if (printAssembly)
    std::puts(kernel.assembly().c_str());
  int64_t plane = size * size, outputs = shape.output() * shape.output();
  Buffer x = randomValues(c * plane), w = randomValues(c * taps * taps);
  Buffer out(c * outputs);
  auto ours = [&] { kernel.run(w.data(), x.data(), out.data()); };
  ours();
  report(name, out, [&](int64_t e) {
    int64_t channel = e / outputs;
    ConvolutionShape one = shape;
    one.channels = one.filters = 1;
    Buffer plane1(x.begin() + channel * plane,
                  x.begin() + (channel + 1) * plane);
    Buffer taps1(w.begin() + channel * taps * taps,
                 w.begin() + (channel + 1) * taps * taps);
    return convolutionAt(one, taps1, plane1, e % outputs);
  });
  double flops = 2.0 * c * taps * taps * outputs;
  compare(name, flops, ours, peerConvolution(shape, true, false));
  compare(name + " (peer NCHW)", flops, ours,
          peerConvolution(shape, true, true));
}

int main(int argc, char **argv) {
  cpuName = llvm::sys::getHostCPUName().str();
  for (int i = 1; i < argc; ++i) {
    if (!std::strncmp(argv[i], "--cpu=", 6))
      cpuName = argv[i] + 6;
    else if (!std::strcmp(argv[i], "--asm"))
      printAssembly = true;
    else
      filter = argv[i];
  }
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  for (MatmulShape shape : {MatmulShape{1024, 1024, 1024},
                            {128, 128, 128},
                            {512, 768, 3072},
                            {512, 3072, 768},
                            {128, 768, 768},
                            {1, 1000, 2048},
                            {1, 3072, 768},
                            {33, 100, 65}})
    benchMatmul(context, shape);
  for (ConvolutionShape shape : {ConvolutionShape{64, 64, 56, 3, 1},
                                 {64, 256, 56, 1, 1},
                                 {256, 64, 56, 1, 1},
                                 {512, 512, 7, 3, 1},
                                 {256, 256, 14, 3, 1},
                                 {128, 128, 56, 3, 2},
                                 {1024, 256, 14, 1, 1},
                                 {3, 64, 224, 7, 2}})
    benchConvolution(context, shape);
  for (ConvolutionShape shape : {ConvolutionShape{64, 64, 112, 3, 1},
                                 {144, 144, 56, 3, 1},
                                 {144, 144, 56, 3, 2},
                                 {384, 384, 14, 3, 1},
                                 {240, 240, 28, 5, 1}})
    benchDepthwise(context, shape);
}
