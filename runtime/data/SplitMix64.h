//===- SplitMix64.h - Mixed numbers of a counter ----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SPLITMIX64_H
#define TCC_RUNTIME_DATA_SPLITMIX64_H

#include <cstdint>

namespace tcc::runtime {

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
class SplitMix64 {
public:
  explicit SplitMix64(uint64_t state) : state(state) {}

  static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
  }

  /// Numbers that have nothing to do with those of another key.
  static SplitMix64 of(uint64_t seed, uint64_t first, uint64_t second) {
    return SplitMix64(mix(mix(mix(seed) + first) + second));
  }

  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15); }
  /// From 0 up to, but not, 1.
  double uniform() { return double(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) {
    return low + (high - low) * uniform();
  }
  /// Below `count`, which is at least 1 and below 2^31.
  int below(int count) { return int(uniform() * count); }

private:
  uint64_t state;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SPLITMIX64_H
