//===- ArraySource.h - Samples from arrays ----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_ARRAYSOURCE_H
#define TCC_RUNTIME_DATA_ARRAYSOURCE_H

#include "runtime/data/SampleFile.h"
#include "runtime/data/SampleSource.h"

#include <functional>
#include <optional>
#include <variant>

namespace tcc::runtime {

/// An array whose first extent counts samples.
struct SampleArray {
  DType dtype;
  std::vector<int64_t> shape;
  /// In memory, or in a file from `offset` on.
  std::variant<Memory, std::shared_ptr<const SampleFile>> bytes;
  uint64_t offset = 0;

  static SampleArray of(Tensor tensor);
};

/// What has arrays by name.
struct NamedArrays {
  std::string path;               ///< for errors
  std::vector<std::string> names; ///< for errors
  /// Nothing where there is none of that name.
  std::function<Result<std::optional<SampleArray>>(const std::string &)> open;
};

/// A source of one array for each tensor, by its name, but for weights of
/// samples, which are 1 where there is none. Narrower integers and floats are
/// widened, as they are read. All problems are listed (Code::Usage).
Result<std::unique_ptr<SampleSource>>
makeArraySource(const NamedArrays &arrays,
                std::span<const BatchTensor> tensors);

/// A NumPy archive, whose arrays are read into memory as a whole.
Result<NamedArrays> openNpz(const std::string &path, const Files &files);
/// A folder with a file NAME.npy for each array. Those in Fortran's order are
/// read into memory as a whole.
Result<NamedArrays> openNpyFolder(const std::string &folder,
                                  const Files &files);
Result<NamedArrays> openSafetensors(const std::string &path,
                                    const Files &files);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_ARRAYSOURCE_H
