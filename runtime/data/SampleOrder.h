//===- SampleOrder.h - In which order samples are taken ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SAMPLEORDER_H
#define TCC_RUNTIME_DATA_SAMPLEORDER_H

#include <array>
#include <cstdint>

namespace tcc::runtime {

/// A permutation of the samples of one epoch, of which no table is kept: a
/// place is enciphered. It is a Feistel network over two digits of mixed bases
/// whose product is the count, or little more, with cycle walking (Black,
/// Rogaway: Ciphers with arbitrary finite domains, 2002); each round adds to
/// one digit a mixed function of the other (SplitMix64: Steele, Lea, Flood:
/// Fast splittable pseudorandom number generators, 2014). That shuffles; it
/// keeps no secret. Callable from any thread.
class EpochOrder {
public:
  /// The sample at `place`, both below the count.
  int64_t at(int64_t place) const;

private:
  friend class SampleOrder;

  /// Few samples need more rounds until all their permutations are as likely.
  static constexpr int kRounds = 8, kRoundsOfFew = 24;
  static constexpr uint64_t kFew = 64;

  EpochOrder() = default;

  uint64_t encipher(uint64_t place) const;

  uint64_t count = 0;
  uint64_t high = 0, low = 0; ///< bases of the digits
  int rounds = 0;             ///< 0: samples as they lie
  std::array<uint64_t, kRoundsOfFew> keys = {};
};

/// The order of samples: of each epoch another one if it shuffles, a function
/// of seed, epoch and place alone, in constant time.
class SampleOrder {
public:
  /// The function's version: with another, batch numbers mean other samples.
  static constexpr int64_t kVersion = 2;

  SampleOrder(int64_t count, uint64_t seed, bool shuffles);

  EpochOrder of(int64_t epoch) const;
  bool isShuffled() const { return first.rounds > 0; }

private:
  uint64_t seed;
  EpochOrder first; ///< without its keys
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SAMPLEORDER_H
