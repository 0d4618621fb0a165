//===- Pickle.h - What TorchScript has written as pickles -------*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_PICKLE_H
#define TCC_FRONTENDS_TORCHSCRIPT_PICKLE_H

#include "frontends/Archive.h"
#include "frontends/StridedBytes.h"
#include "frontends/aten/Tracer.h"
#include "frontends/torchscript/Values.h"
#include "runtime/package/Pickle.h"

#include "llvm/ADT/DenseMap.h"

namespace tcc::torchscript {

/// Makes what a pickle describes: tensors, lists, dictionaries, and instances
/// of classes of the archive, without running code.
class Unpickler {
public:
  /// Tensors lie in the entries FOLDER/KEY.
  Unpickler(const Archive &archive, std::string folder, aten::Tracer &tracer,
            bool readsWeights)
      : archive(archive), folder(std::move(folder)), tracer(tracer),
        readsWeights(readsWeights), copyBudget(archive.getFileSize()) {}

  /// The object that `text` describes; nullopt and the reason if it is not one.
  std::optional<aten::Item> read(llvm::StringRef text, std::string &error);

private:
  using Item = aten::Item;
  using Value = runtime::PickleValue;

  /// The item of a value, the same one for the same value; each fails once it
  /// has said why.
  bool convert(const Value &value, Item &item);
  bool convertCall(const Value &value, Item &item);
  bool convertItems(const Value &value, std::vector<Item> &items);
  bool convertEntries(const Value &value, Dictionary &dictionary);
  bool convertState(const Value &value, Instance &instance);
  bool makeTensor(const Value &value, Item &item);
  bool readStorage(const Value &value, Item &item);
  bool fail(const llvm::Twine &message);

  const Archive &archive;
  std::string folder;
  aten::Tracer &tracer;
  bool readsWeights;
  CopyBudget copyBudget;
  std::string error;
  int depth = 0;
  llvm::DenseMap<const Value *, Item> made;
  /// Tensors by where they lie: one place is one tensor.
  std::map<std::string, aten::Variable *> tensors;
};

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_PICKLE_H
