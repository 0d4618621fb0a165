//===- OutputFile.h - Files that appear whole or not at all -----*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_OUTPUTFILE_H
#define TCC_RUNTIME_BASE_OUTPUTFILE_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tcc::runtime {

/// Written under a temporary name beside its own and renamed by `commit`;
/// without it nothing is left. What exists and is no regular file, such as a
/// device or a pipe, is written directly. A failed write makes `commit` fail.
class OutputFile {
public:
  static Result<OutputFile> create(const std::string &path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  /// Appends.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Appends zeros until the file has `offset` bytes.
  void padTo(uint64_t offset);
  /// Has the disk set room aside for a file of so many bytes, so that one that
  /// is full says so before they are written.
  void reserve(uint64_t bytes);

  [[nodiscard]] Status commit();

private:
  OutputFile(std::string path, std::string temporary, int file)
      : path(std::move(path)), temporary(std::move(temporary)), file(file) {}

  std::string path;
  std::string temporary; ///< empty: `path` itself is written
  int file;              ///< -1 after `commit` and when moved from
  uint64_t size = 0;
  int failure = 0; ///< errno of the first failed write
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_OUTPUTFILE_H
