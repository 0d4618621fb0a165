#include "tools/tcc-run/Roofline.h"

#include "runtime/base/Memory.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <immintrin.h>
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

int tools::getWidestVector() {
  return __builtin_cpu_supports("avx512f") ? 64 : 32;
}

double tools::measurePeak(double seconds, int vectorBytes) {
  double operations = 0, start = ownSeconds(), now = start;
  for (; now - start < seconds; now = ownSeconds())
    operations += vectorBytes == 64 ? runWide() : runNarrow();
  return operations / (now - start) * 1e-9;
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
  std::vector<std::thread> workers;
  for (int thread = 1; thread < threads; ++thread)
    workers.emplace_back(measure, thread);
  measure(0);
  Roofline all;
  for (std::thread &worker : workers)
    worker.join();
  for (const Roofline &one : measured) {
    all.flops += one.flops;
    all.bytes += one.bytes;
  }
  return all;
}
