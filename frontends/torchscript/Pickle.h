//===- Pickle.h - The subset of pickle that TorchScript writes --*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_PICKLE_H
#define TCC_FRONTENDS_TORCHSCRIPT_PICKLE_H

#include "frontends/Archive.h"
#include "frontends/StridedBytes.h"
#include "frontends/aten/Tracer.h"
#include "frontends/torchscript/Values.h"

namespace tcc::torchscript {

/// A pickle is a program for a stack machine, which could call anything: this
/// reads data alone. Names that it may refer to are tensors, lists,
/// dictionaries and classes of the archive, of which it makes instances without
/// running code.
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

  bool step(uint8_t opcode);
  std::optional<bool> push(uint8_t opcode);
  bool pushInteger(int64_t value);
  bool pushTuple(size_t count);
  bool pushLong();
  bool pushGlobal();
  bool memoize(uint64_t key);
  bool recall(uint64_t key);
  bool popToMark(std::vector<Item> &items);
  bool append(llvm::ArrayRef<Item> items);
  bool setItems(llvm::ArrayRef<Item> items);
  bool build();
  bool reduce();
  bool makeTensor(const std::vector<Item> &arguments);
  bool readStorage();
  bool fail(const llvm::Twine &message);
  bool pop(Item &item);
  bool pop(std::vector<Item> &items, size_t count);
  llvm::StringRef take(uint64_t count);
  uint64_t takeInteger(unsigned bytes);
  llvm::StringRef takeLine();

  const Archive &archive;
  std::string folder;
  aten::Tracer &tracer;
  bool readsWeights;
  CopyBudget copyBudget;
  llvm::StringRef rest;
  bool isDone = false;
  std::string error;
  std::vector<Item> stack;
  std::vector<size_t> marks;
  std::map<uint64_t, Item> memo;
  /// Tensors by where they lie: one place is one tensor.
  std::map<std::string, aten::Variable *> tensors;
};

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_PICKLE_H
