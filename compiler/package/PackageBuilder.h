//===- PackageBuilder.h - Everything into one file --------------*- C++ -*-===//
#ifndef TCC_COMPILER_PACKAGE_PACKAGEBUILDER_H
#define TCC_COMPILER_PACKAGE_PACKAGEBUILDER_H

#include "compiler/target/Code.h"
#include "frontends/Frontend.h"
#include "runtime/base/Status.h"

namespace tcc::package {

struct PackageInputs {
  mlir::ModuleOp module; // exec ops, planned
  const WeightStore &weights;
  const std::vector<MetadataEntry> &metadata;
  std::vector<CodeVariant> variants;
  /// Code that this machine can run, to compute the results of `prepare`: one
  /// of `variants`, or another; null if there is no such entry or no weights.
  const CodeVariant *host = nullptr;
  bool embedWeights = true;
  std::string options = {};   // JSON
  std::string decisions = {}; // JSON
  int threads = 1;
  int64_t memoryBudget = 0; ///< of what is planned; 0: any
};

/// Writes the package to `path`, completely or not at all. `weightBytes` is set
/// to the size of the weights section.
runtime::Status writePackage(const PackageInputs &inputs,
                             const std::string &path, uint64_t &weightBytes);

} // namespace tcc::package

#endif // TCC_COMPILER_PACKAGE_PACKAGEBUILDER_H
