//===- Npz.h - NumPy's archives of arrays -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_NPZ_H
#define TCC_RUNTIME_DATA_NPZ_H

#include "runtime/base/MappedFile.h"
#include "runtime/data/ZipEntries.h"
#include "runtime/package/Tensor.h"

#include <vector>

namespace tcc::runtime {

/// A zip archive of arrays, its members stored or deflated, mapped once for all
/// of them. Any thread may read.
class NpzFile {
public:
  struct Member {
    std::string name; ///< without ".npy"
    ZipEntry entry;
  };

  static Result<NpzFile> open(const std::string &path);

  const std::vector<Member> &members() const { return directory; }
  const Member *find(std::string_view name) const;
  /// A copy of one of the members.
  Result<Tensor> read(const Member &member) const;

private:
  NpzFile(MappedFile file, std::vector<Member> directory, std::string path)
      : file(std::move(file)), directory(std::move(directory)),
        path(std::move(path)) {}

  MappedFile file;
  std::vector<Member> directory;
  std::string path;
};

/// Reads the array `name` of an .npz file. The only array of an archive is
/// found under any name.
Result<Tensor> readNpz(const std::string &path, std::string_view name);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_NPZ_H
