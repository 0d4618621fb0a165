//===- MappedFile.h - A file as bytes ---------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_MAPPEDFILE_H
#define TCC_FRONTENDS_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <optional>
#include <string>

namespace tcc {

/// Bytes that stay mapped as long as `owner` lives.
struct MappedFile {
  std::shared_ptr<const void> owner;
  llvm::ArrayRef<char> bytes;
};

/// Maps a regular file for reading; nullopt and `error` on failure.
std::optional<MappedFile> mapFile(const std::string &path, std::string &error);

/// The path without symbolic links; empty if it does not exist.
std::string getRealPath(const std::string &path);

} // namespace tcc

#endif // TCC_FRONTENDS_MAPPEDFILE_H
