#include "runtime/data/SampleOrder.h"

#include "runtime/data/SplitMix64.h"

#include <cmath>

using namespace tcc;
using namespace tcc::runtime;

/// `digit` plus a function of `other`, modulo `base`, as likely any one of its
/// values.
static uint64_t addMixed(uint64_t digit, uint64_t other, uint64_t base) {
  auto wide = static_cast<unsigned __int128>(SplitMix64::mix(other)) * base;
  digit += static_cast<uint64_t>(wide >> 64);
  return digit >= base ? digit - base : digit;
}

uint64_t EpochOrder::encipher(uint64_t place) const {
  uint64_t left = place / low, right = place % low;
  for (int i = 0; i < rounds; i += 2) {
    left = addMixed(left, right ^ keys[i], high);
    right = addMixed(right, left ^ keys[i + 1], low);
  }
  return left * low + right;
}

int64_t EpochOrder::at(int64_t place) const {
  if (rounds == 0)
    return place;
  auto number = static_cast<uint64_t>(place);
  do
    number = encipher(number);
  while (number >= count);
  return static_cast<int64_t>(number);
}

SampleOrder::SampleOrder(int64_t count, uint64_t seed, bool shuffles)
    : seed(seed) {
  if (!shuffles || count < 2)
    return;
  first.count = static_cast<uint64_t>(count);
  first.rounds = first.count < EpochOrder::kFew ? EpochOrder::kRoundsOfFew
                                                : EpochOrder::kRounds;
  first.high = static_cast<uint64_t>(std::ceil(std::sqrt(double(count))));
  first.low = (first.count + first.high - 1) / first.high;
}

EpochOrder SampleOrder::of(int64_t epoch) const {
  EpochOrder order = first;
  SplitMix64 random(SplitMix64(seed).next() ^ static_cast<uint64_t>(epoch));
  for (int i = 0; i < order.rounds; ++i)
    order.keys[i] = random.next();
  return order;
}
