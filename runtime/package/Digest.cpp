#include "runtime/package/Digest.h"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace tcc;
using namespace tcc::runtime;

struct DigestStream::State {
  XXH3_state_t hash;
};

static format::Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  format::Digest digest;
  static_assert(sizeof(digest) == sizeof(bytes));
  std::memcpy(&digest, &bytes, sizeof(digest));
  return digest;
}

format::Digest runtime::digestOf(std::span<const std::byte> bytes) {
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

DigestStream::DigestStream() : state(std::make_unique<State>()) {
  XXH3_128bits_reset(&state->hash);
}

DigestStream::~DigestStream() = default;

void DigestStream::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state->hash, bytes.data(), bytes.size());
}

format::Digest DigestStream::finish() const {
  return canonical(XXH3_128bits_digest(&state->hash));
}
