//===- Frontend.h - Model files to graph modules ----------------*- C++ -*-===//
//
// The result is a module with one function @main. Its arguments are the model's
// inputs in order, each with `graph.name` and, where they apply, `graph.fixed`
// (the dense value that the input must have) and `graph.index_range` (array of
// the smallest and largest value that indexing ops allow). Its results carry
// `graph.name`. The function attribute `graph.states` lists [input, output]
// pairs of positions.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_FRONTEND_H
#define TCC_FRONTENDS_FRONTEND_H

#include "frontends/MappedFile.h"
#include "frontends/Problems.h"
#include "frontends/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tcc/import_options.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace tcc {

/// A named text of the model's author, such as the alphabet of a recogniser.
struct MetadataEntry {
  std::string key, value;
};

/// Another name of a tied tensor, and the name that it has in the module.
struct Alias {
  std::string name, tensor;
};

/// What a package records of a plugin that the model was read with.
struct PluginRecord {
  std::string name, version;
  std::string digest; ///< XXH3-128 of the library's bytes, hexadecimal
};

struct Model {
  std::string path; ///< of its file
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The name of the symbol that is the first extent of all inputs which have
  /// one: their samples. Empty: these are fixed, or there is no such symbol.
  std::string batch;
  /// The values of symbols in each variant of the program, by name; empty:
  /// there is one, with all of them open.
  std::vector<llvm::StringMap<int64_t>> variants;
  WeightStore weights;
  std::vector<MetadataEntry> metadata;
  /// What the user should know, such as a dimension that got a default.
  std::vector<std::string> notes;
  std::vector<PluginRecord> plugins;

  /// Keeps them as an entry of the metadata, as tools/export-training.py does.
  void addAliases(llvm::ArrayRef<Alias> aliases);
};

/// Imports the model file `path`. On failure `problems` is not empty: it lists
/// all that is wrong with the file, the options, or their match.
mlir::FailureOr<Model> importModel(llvm::StringRef path,
                                   const ImportOptions &options,
                                   mlir::MLIRContext *context,
                                   Problems &problems);
/// The same for its bytes; external data is found beside `path`.
mlir::FailureOr<Model> importModel(const MappedFile &file, llvm::StringRef path,
                                   const ImportOptions &options,
                                   mlir::MLIRContext *context,
                                   Problems &problems);

} // namespace tcc

#endif // TCC_FRONTENDS_FRONTEND_H
