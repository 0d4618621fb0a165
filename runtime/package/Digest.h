//===- Digest.h - XXH3-128 of bytes -----------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_DIGEST_H
#define TCC_RUNTIME_PACKAGE_DIGEST_H

#include "runtime/package/Format.h"

#include <cstddef>
#include <memory>
#include <span>

namespace tcc::runtime {

format::Digest digestOf(std::span<const std::byte> bytes);

/// Digest of bytes that come in pieces.
class DigestStream {
public:
  DigestStream();
  ~DigestStream();
  void update(std::span<const std::byte> bytes);
  format::Digest finish() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_DIGEST_H
