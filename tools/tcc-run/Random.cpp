#include "tools/tcc-run/Inputs.h"

#include <cstring>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// SplitMix64 (Steele, Lea, Flood 2014): one well-mixed word per counter.
static uint64_t mix(uint64_t counter) {
  uint64_t z = counter * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// A float of the target's precision in [0, 1), so that no rounding gives 1.
template <typename T> static T uniform(uint64_t word, int significantBits) {
  uint64_t scale = uint64_t(1) << significantBits;
  return static_cast<T>(word % scale) / static_cast<T>(scale);
}

static void storeFloat(DType dtype, uint64_t word, std::byte *to) {
  if (dtype == DType::f64) {
    double value = uniform<double>(word, 53);
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  if (dtype == DType::f16) {
    _Float16 value = static_cast<_Float16>(uniform<float>(word, 11));
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  float value = uniform<float>(word, dtype == DType::bf16 ? 8 : 24);
  if (dtype == DType::f32) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  uint16_t upper = bits >> 16; // exact: the value has 8 significant bits
  std::memcpy(to, &upper, sizeof(upper));
}

void tools::fillRandom(Tensor &tensor, uint64_t seed, size_t position,
                       const format::TensorSpec &spec) {
  const DTypeTraits &traits = traitsOf(tensor.dtype);
  uint64_t key = mix(mix(seed) + position);
  bool isRanged = spec.index_min() <= spec.index_max();
  int64_t low = isRanged ? spec.index_min() : 0;
  int64_t high = isRanged ? spec.index_max() : 1;
  uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  size_t count = tensor.data.size() / traits.bytes;
  for (size_t i = 0; i < count; ++i) {
    std::byte *to = tensor.data.data() + i * traits.bytes;
    uint64_t word = mix(key + i);
    if (traits.kind == DTypeKind::Float) {
      storeFloat(tensor.dtype, word, to);
      continue;
    }
    uint64_t value =
        traits.kind == DTypeKind::Boolean
            ? 1
            : static_cast<uint64_t>(low) + (span ? word % span : word);
    std::memcpy(to, &value, traits.bytes);
  }
}
