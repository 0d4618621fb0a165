//===- StateDict.h - Keys of PyTorch's state_dict ---------------*- C++ -*-===//
//
// A state_dict has keys that are no tensors of a program: further names of tied
// parameters, and how many batches a batch norm has seen
// (PREFIX.num_batches_tracked beside PREFIX.running_mean), which nothing reads.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_STATEDICT_H
#define TCC_RUNTIME_PACKAGE_STATEDICT_H

#include "runtime/package/Program_generated.h"
#include "runtime/package/Safetensors.h"

#include <map>

namespace tcc::runtime {

/// Names of tensors by their further names.
using Aliases = std::map<std::string, std::string, std::less<>>;

/// Where a model's metadata give the aliases, as a JSON object.
inline constexpr char kAliasesKey[] = "tcc.aliases";

/// Fails (Code::BadData) if it is no JSON object of names; empty text gives
/// none.
Result<Aliases> parseAliases(std::string_view text);

/// The aliases of the model that a package was made from.
Result<Aliases> findAliases(const format::Program &program);

/// The tensors of a file under the names of a program, counters left out. Fails
/// (Code::Usage) if two names of one tensor have different values.
Result<std::vector<StoredTensor>>
readStateDict(std::span<const StoredTensor> tensors, const Aliases &aliases,
              const std::string &path);

/// The tensors of a program with what PyTorch expects beside them. `batchCount`
/// is the value of counters; it outlives the result.
std::vector<StoredTensor> makeStateDict(std::vector<StoredTensor> tensors,
                                        const Aliases &aliases,
                                        const int64_t &batchCount);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_STATEDICT_H
