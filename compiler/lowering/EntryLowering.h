//===- EntryLowering.h - One function becomes an entry point ----*- C++ -*-===//
#ifndef TCC_COMPILER_LOWERING_ENTRYLOWERING_H
#define TCC_COMPILER_LOWERING_ENTRYLOWERING_H

#include "compiler/target/Target.h"
#include "dialects/exec/ExecOps.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/Variables.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace tcc::lowering {

using mlir::Block;
using mlir::LogicalResult;
using mlir::Value;

/// Where values are wanted. An op that has a choice writes them there; what
/// lies elsewhere in the end is copied.
using Destinations = llvm::DenseMap<Value, Value>;

/// The tables that entry points share: constants and kernels.
class ProgramTables {
public:
  explicit ProgramTables(mlir::ModuleOp module);

  /// The position of a tensor of the const section.
  int64_t getConstant(mlir::ElementsAttr value);
  int64_t getConstant(llvm::StringRef name, mlir::Type type);
  /// A kernel of `target` that does what `fused` does.
  exec::KernelOp createKernel(graph::FusedOp fused, const Target &target);

private:
  int64_t addConstant(llvm::StringRef name, mlir::Type type,
                      mlir::ElementsAttr value);

  mlir::OpBuilder builder;
  llvm::StringMap<int64_t> constantsByName;
  llvm::DenseMap<mlir::Attribute, int64_t> constantsByValue;
  int64_t constantCount = 0;
  int64_t kernelCount = 0;
};

/// Lowers one function. Values map to buffers; a reshape is its operand's.
class EntryLowering {
public:
  EntryLowering(mlir::func::FuncOp function, ProgramTables &tables);

  LogicalResult lower();

private:
  exec::EntryOp createEntry();
  void bindArguments();
  Value createResultBuffer(unsigned position);
  /// The one buffer of a variable, or its place in that of a bucket.
  Value getVariableBuffer(mlir::StringAttr name);
  /// True if result `position` is a variable that the function leaves as it is.
  bool isUnchanged(unsigned position);
  void storeVariables(llvm::ArrayRef<Value> results);

  /// Lowers the ops of `block` at the builder; what it yields lies in `results`
  /// afterwards. A null result is not wanted.
  LogicalResult lowerBlock(Block &block, llvm::ArrayRef<Value> results);
  LogicalResult lowerOp(mlir::Operation &op, const Destinations &destinations);
  void lowerFused(graph::FusedOp op, const Destinations &destinations);
  void lowerReadSize(graph::ReadSizeOp op);
  LogicalResult lowerIf(graph::IfOp op, const Destinations &destinations);
  /// Sets symbols, all at once, and fails the run if one is out of range.
  void setSizes(mlir::Operation *op, llvm::ArrayRef<graph::SetSize> set);
  void setBranchSizes(graph::IfOp op, Block &branch);

  // CollectiveLowering.cpp
  struct Members;
  LogicalResult lowerAllReduce(graph::AllReduceOp op,
                               const Destinations &destinations);
  LogicalResult lowerBucket(graph::AllReduceOp op);
  LogicalResult lowerReduceScatter(graph::ReduceScatterOp op);
  LogicalResult lowerPart(graph::PartOp op);
  LogicalResult lowerAllGather(graph::AllGatherOp op);
  mlir::FailureOr<Members> findMembers(mlir::Operation *op,
                                       mlir::ArrayAttr names,
                                       mlir::ValueRange tensors);
  LogicalResult verifyChange(mlir::Operation *op, const Members &members,
                             mlir::ValueRange tensors);
  LogicalResult verifyMember(mlir::Operation *op, mlir::StringAttr name,
                             Value tensor);
  void storeMembers(mlir::Operation *op, const Members &members,
                    mlir::ValueRange tensors);
  Value createMember(const graph::Bucket &bucket, size_t index,
                     mlir::Type tensor);
  mlir::FailureOr<Value> getOwnPart(mlir::Operation *op, const Members &members,
                                    Value part);
  template <typename Start, typename... More>
  void createCollective(mlir::Operation *op, Value from, Value to,
                        mlir::Type tensor, int64_t group, More... more);
  void createAllReduce(graph::AllReduceOp op, Value from, Value to,
                       mlir::Type tensor);
  /// True if result `position` is a variable that ranks gather where it lies.
  bool isGathered(unsigned position);

  // LoopLowering.cpp
  struct LoopState;
  LogicalResult lowerLoop(graph::LoopOp op, const Destinations &destinations);
  std::optional<mlir::AffineMap> lowerTrips(graph::LoopOp op);
  Value lowerCondition(graph::LoopOp op, LoopState &state);
  void lowerCarried(graph::LoopOp op, unsigned index, LoopState &state);
  void lowerScanned(graph::LoopOp op, unsigned index, LoopState &state,
                    const Destinations &destinations);

  Value getBuffer(Value tensor) const { return buffers.lookup(tensor); }
  /// The buffer that `tensor` is wanted in, or a new one.
  Value getDestination(Value tensor, const Destinations &destinations);
  Value createBuffer(mlir::Location loc, exec::StorageClass storage,
                     std::optional<int64_t> index, mlir::Type tensor,
                     bool isNext = false);
  Value createScratch(mlir::Location loc, int64_t bytes);
  Value createView(mlir::Location loc, Value base, mlir::AffineExpr offset,
                   mlir::Type tensor);
  /// The buffer of a constant, declared at the start of the entry.
  Value getConstantBuffer(mlir::Location loc, int64_t index, mlir::Type tensor);
  void createCopy(mlir::Location loc, Value from, Value to, mlir::Type tensor);

  mlir::AffineMap getByteMap(mlir::Type tensor) const;
  int64_t getByteBound(mlir::Type tensor) const;

  mlir::func::FuncOp function;
  ProgramTables &tables;
  const Target &target;
  exec::MemorySpace space;
  llvm::SmallVector<graph::SymbolAttr> symbols;
  mlir::OpBuilder builder;
  exec::EntryOp entry;
  llvm::DenseMap<Value, Value> buffers;
  llvm::DenseMap<int64_t, Value> constantBuffers;
  llvm::DenseMap<mlir::StringAttr, Value> variableBuffers;
  llvm::DenseMap<size_t, Value> bucketBuffers; ///< by their first variables
  llvm::DenseMap<size_t, Value> ownParts;      ///< likewise
  llvm::DenseSet<size_t> changedBuckets;       ///< likewise
  std::optional<int64_t> rankSlot;
  llvm::SmallVector<graph::VariableAttr> variables;
  int64_t slotCount;
};

/// The value whose bytes `tensor` has: reshapes are looked through.
Value getSource(Value tensor);

/// Bytes of `tensor` as an expression of sizes.
mlir::AffineExpr getByteSize(mlir::Type tensor);

} // namespace tcc::lowering

#endif // TCC_COMPILER_LOWERING_ENTRYLOWERING_H
