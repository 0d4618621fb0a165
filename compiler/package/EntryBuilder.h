//===- EntryBuilder.h - Entry points as FlatBuffers -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PACKAGE_ENTRYBUILDER_H
#define TCC_COMPILER_PACKAGE_ENTRYBUILDER_H

#include "dialects/exec/ExecOps.h"
#include "runtime/package/Program_generated.h"
#include "llvm/ADT/DenseMap.h"

namespace tcc::package {

template <typename T> using Offset = flatbuffers::Offset<T>;

format::DType getDType(mlir::Type elementType);

/// `expression` as postfix code over slots.
Offset<format::SizeExpr> buildSize(flatbuffers::FlatBufferBuilder &fbb,
                                   mlir::AffineExpr expression);

/// Elements of a dense tensor as the package stores them: little-endian, one
/// byte a boolean.
std::vector<char> getBytes(mlir::ElementsAttr value);

/// Writes one exec.entry. `kernels` gives the positions of kernels by name.
class EntryBuilder {
public:
  EntryBuilder(flatbuffers::FlatBufferBuilder &fbb,
               const llvm::DenseMap<mlir::StringAttr, uint32_t> &kernels)
      : fbb(fbb), kernels(kernels) {}

  Offset<format::Entry> build(exec::EntryOp entry);

private:
  using Specs = flatbuffers::Vector<Offset<format::TensorSpec>>;
  using Sizes = flatbuffers::Vector<Offset<format::SizeExpr>>;
  using Candidates = flatbuffers::Vector<Offset<format::Candidate>>;

  Offset<Specs> buildSpecs(mlir::ArrayAttr tensors);
  Offset<format::TensorSpec> buildSpec(exec::TensorAttr tensor);
  void addBuffer(exec::BufferOp op);
  void addView(exec::ViewOp op);
  using Commands = std::vector<Offset<format::Command>>;
  struct Action {
    format::Action type;
    Offset<void> table;
  };
  struct ActionBuilder;

  Offset<format::Block> buildBlock(mlir::Block &block);
  void addCommand(exec::CommandOpInterface op, Commands &commands);
  /// The number of the event that `token` becomes, which other lanes wait for.
  uint32_t getEvent(mlir::Value token) {
    return events.try_emplace(token, events.size()).first->second;
  }
  Offset<Candidates> buildCandidates(exec::LaunchOp op);
  Action buildLaunch(exec::LaunchOp op);
  Action buildCopy(mlir::Value from, mlir::Value to, mlir::AffineMap bytes);
  Action buildIf(exec::IfOp op);
  Action buildLoop(exec::LoopOp op);
  Action buildSetSize(exec::SetSizeOp op);
  Action buildReadSize(exec::ReadSizeOp op);
  Action buildRecord(mlir::Value token);

  Offset<format::SizeExpr> buildSize(mlir::AffineMap map) {
    return package::buildSize(fbb, map.getResult(0));
  }
  Offset<format::SizeExpr> buildSize(std::optional<mlir::AffineMap> map) {
    return map ? buildSize(*map) : Offset<format::SizeExpr>();
  }
  uint32_t getIndex(mlir::Value buffer) const { return indices.at(buffer); }

  flatbuffers::FlatBufferBuilder &fbb;
  const llvm::DenseMap<mlir::StringAttr, uint32_t> &kernels;
  std::vector<Offset<format::Buffer>> buffers;
  llvm::DenseMap<mlir::Value, uint32_t> indices;
  llvm::DenseMap<mlir::Value, uint32_t> events; ///< of tokens
};

} // namespace tcc::package

#endif // TCC_COMPILER_PACKAGE_ENTRYBUILDER_H
