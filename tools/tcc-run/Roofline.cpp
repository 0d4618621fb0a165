#include "tools/tcc-run/Roofline.h"

#include "runtime/base/CpuFeatures.h"
#include "runtime/base/Memory.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <immintrin.h>
#include <numeric>
#include <thread>
#include <vector>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static double ownSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

/// Where numbers come from and go to: nothing is computed in advance or left
/// out.
static volatile float half = 0.5f, sink;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// So many chains of operations hide the latency of each other.
static constexpr int kChains = 12;
static constexpr int kSteps = 1 << 14;

__attribute__((target("avx512f"))) static double runWide() {
  __m512 sums[kChains], factor = _mm512_set1_ps(half);
  for (__m512 &sum : sums)
    sum = factor;
  for (int i = 0; i < kSteps; ++i)
#pragma clang loop unroll(full)
    for (int chain = 0; chain < kChains; ++chain)
      sums[chain] = _mm512_fmadd_ps(sums[chain], factor, factor);
  for (__m512 sum : sums)
    sink = _mm512_reduce_add_ps(sum);
  return 2.0 * 16 * kChains * kSteps;
}

__attribute__((target("avx2,fma"))) static double runNarrow() {
  __m256 sums[kChains], factor = _mm256_set1_ps(half);
  for (__m256 &sum : sums)
    sum = factor;
  for (int i = 0; i < kSteps; ++i)
#pragma clang loop unroll(full)
    for (int chain = 0; chain < kChains; ++chain)
      sums[chain] = _mm256_fmadd_ps(sums[chain], factor, factor);
  for (__m256 sum : sums)
    sink = _mm256_cvtss_f32(sum);
  return 2.0 * 8 * kChains * kSteps;
}

/// Two numbers of bf16, each a half.
static constexpr int kHalves = 0x3f003f00;

__attribute__((target("avx512f,avx512bf16"))) static double runPairs() {
  auto factor = (__m512bh)_mm512_set1_epi32(kHalves);
  __m512 sums[kChains];
  for (__m512 &sum : sums)
    sum = _mm512_set1_ps(half);
  for (int i = 0; i < kSteps; ++i)
#pragma clang loop unroll(full)
    for (int chain = 0; chain < kChains; ++chain)
      sums[chain] = _mm512_dpbf16_ps(sums[chain], factor, factor);
  for (__m512 sum : sums)
    sink = _mm512_reduce_add_ps(sum);
  return 2.0 * 32 * kChains * kSteps;
}

namespace {

/// How tile registers are used (Intel SDM vol. 1, Intel AMX): all of 16 rows.
struct alignas(64) TileShapes {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

} // namespace

/// Sums in six tiles, of products of the two others.
__attribute__((target("amx-tile,amx-bf16"))) static double runTiles() {
  constexpr int kTileSteps = kSteps / 8;
  constexpr int kRow = 64; // bytes
  alignas(64) int numbers[16 * kRow / sizeof(int)];
  std::ranges::fill(numbers, kHalves);
  TileShapes shapes;
  _tile_loadconfig(&shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, numbers, kRow);
  _tile_loadd(7, numbers, kRow);
  for (int i = 0; i < kTileSteps; ++i) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_release();
  return 2.0 * 16 * 16 * 32 * 6 * kTileSteps;
}

int tools::getWidestVector() {
  return __builtin_cpu_supports("avx512f") ? 64 : 32;
}

/// Does operations, and returns how many.
using Operations = double (*)();

static double measure(Operations run, double seconds) {
  double operations = 0, start = ownSeconds(), now = start;
  for (; now - start < seconds; now = ownSeconds())
    operations += run();
  return operations / (now - start) * 1e-9;
}

double tools::measurePeak(double seconds, int vectorBytes) {
  return measure(vectorBytes == 64 ? runWide : runNarrow, seconds);
}

/// What kernels multiply bf16 with.
static Operations chooseNarrowProducts() {
  if (!hasCpuFeature("avx512bf16"))
    return nullptr;
  bool hasTiles = hasCpuFeature("amx-tile") && hasCpuFeature("amx-bf16");
  return hasTiles ? runTiles : runPairs;
}

/// Does it on as many threads at once.
static void runThreads(int threads, const std::function<void(int)> &measure) {
  std::vector<std::thread> workers;
  for (int thread = 1; thread < threads; ++thread)
    workers.emplace_back(measure, thread);
  measure(0);
  for (std::thread &worker : workers)
    worker.join();
}

double tools::measureProducts(DType operands, int threads, double seconds) {
  Operations run =
      operands == DType::bf16 ? chooseNarrowProducts() : Operations();
  std::vector<double> measured(threads);
  runThreads(threads, [&](int thread) {
    measured[thread] = run ? ::measure(run, seconds) : measurePeak(seconds);
  });
  double sum = std::accumulate(measured.begin(), measured.end(), 0.0);
  // Vectors have half as many f64, and take as long.
  return operands == DType::f64 ? sum / 2 : sum;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static size_t readAll(std::span<const std::byte> bytes) {
  __m128i sums[8] = {};
  for (size_t at = 0; at + sizeof(sums) <= bytes.size(); at += sizeof(sums))
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; ++i)
      sums[i] = _mm_xor_si128(
          sums[i],
          _mm_load_si128(reinterpret_cast<const __m128i *>(&bytes[at]) + i));
  for (__m128i sum : sums)
    sink = _mm_cvtsi128_si32(sum);
  return bytes.size();
}

/// GB/s of this thread by its own time, the caches holding what they can.
static double measureReading(std::span<const std::byte> bytes, double seconds) {
  double total = 0, start = ownSeconds(), now = start;
  for (; now - start < seconds; now = ownSeconds())
    total += readAll(bytes);
  return total / (now - start) * 1e-9;
}

Roofline tools::measureRoofline(int threads, uint64_t workingSet) {
  constexpr double kSeconds = 0.05;
  // More than any cache holds is as slow as any size.
  constexpr uint64_t kLeast = 1 << 14, kMost = 256 << 20;
  size_t bytes = std::clamp(workingSet, kLeast, kMost) / threads;
  std::vector<Roofline> measured(threads);
  auto measure = [&measured, bytes](int thread) {
    measured[thread].flops = measurePeak(kSeconds);
    auto memory = Memory::allocate(bytes, systemAllocator(), "a measurement");
    if (!memory.ok())
      return;
    // Pages that were never written are all the same one.
    std::memset(memory->data(), 1, bytes);
    measured[thread].bytes = measureReading(memory->span(), kSeconds);
  };
  runThreads(threads, measure);
  Roofline all;
  for (const Roofline &one : measured) {
    all.flops += one.flops;
    all.bytes += one.bytes;
  }
  return all;
}
