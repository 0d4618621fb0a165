//===- main.cpp - The most f32 operations a second of this thread ---------===//
//
// fma-peak [MILLISECONDS]
// Twelve independent chains of fused multiply-adds hide the latency of each
// other; the widest vectors of the CPU. Prints GFLOP/s by the thread's own
// time, so that other processes count only by what they do to the frequency.
//
//===----------------------------------------------------------------------===//
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <immintrin.h>

static constexpr int kChains = 12;
static constexpr int kSteps = 1 << 14;

static double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

/// Where numbers come from and go to: nothing is computed in advance or left
/// out.
static volatile float half = 0.5f, sink;

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

int main(int argc, char **argv) {
  double seconds = (argc > 1 ? std::atof(argv[1]) : 50) * 1e-3;
  bool isWide = __builtin_cpu_supports("avx512f");
  double operations = 0, start = cpuSeconds(), now = start;
  for (; now - start < seconds; now = cpuSeconds())
    operations += isWide ? runWide() : runNarrow();
  std::printf("%.1f\n", operations / (now - start) * 1e-9);
  return 0;
}
