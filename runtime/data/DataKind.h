//===- DataKind.h - What data can be ----------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_DATAKIND_H
#define TCC_RUNTIME_DATA_DATAKIND_H

#include "runtime/data/ArraySource.h"
#include "runtime/data/TokenSource.h"
#include "runtime/data/records/RecordSource.h"

#include <variant>

namespace tcc::runtime {

template <typename T>
using Opener = Result<T> (*)(const std::string &path, const Files &files);

/// A kind of data that a source names.
struct DataKind {
  std::string_view prefix;
  const char *place; ///< what comes after it; of a list, that ends in ...
  std::variant<Opener<NamedArrays>, Opener<std::vector<TokenFile>>,
               Opener<std::unique_ptr<RecordSource>>>
      open;

  bool isList() const { return std::string_view(place).ends_with("..."); }
  bool hasArrays() const {
    return std::holds_alternative<Opener<NamedArrays>>(open);
  }
  bool hasRecords() const {
    return std::holds_alternative<Opener<std::unique_ptr<RecordSource>>>(open);
  }
};

/// The kind that a source begins with, and what comes after that.
struct NamedData {
  const DataKind *kind;
  std::string path;
};

/// Code::Usage, with all kinds, where it is of none.
Result<NamedData> findData(const std::string &spec);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_DATAKIND_H
