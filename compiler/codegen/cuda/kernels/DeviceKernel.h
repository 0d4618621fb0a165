//===- DeviceKernel.h - A fused region becomes a GPU kernel -----*- C++ -*-===//
//
// A kernel is a gpu.func `name(buffers..., [fault], sizes...)` over a
// one-dimensional grid: its block x is task x of the launch. The body is made
// of scf, arith, math, llvm and gpu ops; what they become is the business of
// DeviceCode.h and Emulation.h.
//
// Neighbouring threads work on neighbouring elements, each on as many as fill
// 16 bytes: loads and stores of adjacent elements by one thread are written one
// by one, and merged where LLVM can prove their alignment.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_DEVICEKERNEL_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_DEVICEKERNEL_H

#include "compiler/codegen/region/KernelBuilder.h"
#include "compiler/codegen/region/RegionFrame.h"
#include "runtime/package/Format.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tcc::cuda {

using codegen::Buffer;
using codegen::KernelBuilder;
using mlir::Value;
using mlir::ValueRange;

inline constexpr int64_t kWarp = format::kWarpSize;
/// Bytes that one access of a thread moves at most.
inline constexpr int64_t kAccessBytes = kMaxAccessBytes;
/// Static shared memory of a block, in bytes.
inline constexpr int64_t kMaxSharedBytes = format::kMaxSharedBytes;

/// The grid of a kernel, and what its loops are made by: functions of shapes
/// alone, and of choices in kPlanAttr. As that attribute it has the keys
/// `blocks`, an affine map of the symbols, `threads`, and those of `choices`.
struct LaunchPlan {
  mlir::AffineExpr blocks;
  int64_t threads = 256; // of a block, a multiple of kWarp
  /// What the loop structure chose, by name; null if nothing.
  mlir::DictionaryAttr choices = {};

  mlir::DictionaryAttr write() const;
  /// The plan in kPlanAttr of `fused`; an error if there is none.
  static mlir::FailureOr<LaunchPlan> read(graph::FusedOp fused);
};

/// The function of a kernel while its body is emitted.
struct DeviceFrame : codegen::RegionFrame {
  Value block, thread; // index
  mlir::gpu::GPUFuncOp function;

  /// `count` elements that the threads of a block share, aligned to
  /// kAccessBytes. Pieces do not overlap, but those of before reuseShared.
  Buffer allocateShared(mlir::OpBuilder &b, mlir::Type element, int64_t count);
  /// Whether pieces of `bytes` in all, each of whole accesses, can be
  /// allocated.
  bool hasShared(int64_t bytes) const {
    return sharedEnd + bytes <= kMaxSharedBytes;
  }
  /// A barrier, after which what was allocated so far is not read again: its
  /// place is free.
  void reuseShared(KernelBuilder &b);

  int64_t sharedEnd = 0;   // where the next piece begins
  int64_t sharedBytes = 0; // in all
};

/// The target that has these kernels, which is registered where they are made.
const Target &getOwnTarget();

/// The module of a kernel, with one gpu.module that holds the gpu.func `name`;
/// an error if it cannot be emitted.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
emitKernel(graph::FusedOp fused, llvm::StringRef name);

/// Bytes that the address of each buffer of a launch is a multiple of, inputs
/// first: what all launches of the kernel promise. A fault buffer has
/// kAccessBytes.
llvm::SmallVector<int64_t> getAlignments(graph::FusedOp fused);

/// Whether kernels of the kind are supported.
bool hasKernels(graph::KernelKind kind);

/// Describes the kernel of `fused`; an error if its kind is not supported.
mlir::FailureOr<KernelInfo> analyzeKernel(graph::FusedOp fused);

/// Waits until all threads of the block are here, and sees what they stored.
/// All threads of a block must come to it.
void emitBarrier(KernelBuilder &b);

/// The same for the threads of a warp.
void emitWarpBarrier(KernelBuilder &b);

/// What `read` gives of `x`, or `otherwise` where x has no elements: a place
/// that was moved into it does not exist.
Value readUnlessEmpty(KernelBuilder &b, DeviceFrame &frame, Value x,
                      llvm::function_ref<Value()> read, Value otherwise);

/// The value that the thread `lane ^ mask` of the warp has; all threads of the
/// warp must come to it. Floats of 32 or 64 bits, integers and indices.
Value emitShuffle(KernelBuilder &b, Value value, int64_t mask);

/// The largest power of two of adjacent elements, all of types in `elements`,
/// that an access takes; of `extent` elements in a row, whole vectors.
int64_t chooseVector(llvm::ArrayRef<mlir::Type> elements,
                     mlir::AffineExpr extent);

/// Element types of the inputs and results of `region`.
llvm::SmallVector<mlir::Type> getElementTypes(graph::FusedOp region);

/// Each element that `at` gives is computed for all `results`, then all are
/// stored: a result may lie in the buffer of an input that another one reads.
void storeResults(KernelBuilder &b, DeviceFrame &frame,
                  llvm::ArrayRef<unsigned> results, int64_t lanes,
                  llvm::function_ref<llvm::SmallVector<Value>(int64_t)> at);

// --- The loop structures

using PlanFunction = mlir::FailureOr<LaunchPlan> (*)(
    graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols);
using EmitFunction = mlir::LogicalResult (*)(KernelBuilder &b,
                                             DeviceFrame &frame);

mlir::FailureOr<LaunchPlan>
planPointwise(graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitPointwise(KernelBuilder &b, DeviceFrame &frame);

mlir::FailureOr<LaunchPlan> planRows(graph::FusedOp region,
                                     llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitRows(KernelBuilder &b, DeviceFrame &frame);

mlir::FailureOr<LaunchPlan>
planContraction(graph::FusedOp region,
                llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitContraction(KernelBuilder &b, DeviceFrame &frame);

mlir::FailureOr<LaunchPlan>
planAttention(graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitAttention(KernelBuilder &b, DeviceFrame &frame);

mlir::FailureOr<LaunchPlan>
planWindow(graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitWindow(KernelBuilder &b, DeviceFrame &frame);

mlir::FailureOr<LaunchPlan> planScan(graph::FusedOp region,
                                     llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitScan(KernelBuilder &b, DeviceFrame &frame);

mlir::FailureOr<LaunchPlan>
planIrregular(graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitIrregular(KernelBuilder &b, DeviceFrame &frame);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_DEVICEKERNEL_H
