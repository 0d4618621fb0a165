//===- ByteSize.h - Numbers of bytes in text --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_BYTESIZE_H
#define TCC_RUNTIME_BASE_BYTESIZE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace tcc {

/// Reads a number of bytes, "22GiB", "1.5GB" or "4096".
std::optional<int64_t> parseByteSize(std::string_view text);

} // namespace tcc

#endif // TCC_RUNTIME_BASE_BYTESIZE_H
