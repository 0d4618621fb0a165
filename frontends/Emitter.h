//===- Emitter.h - Ops of the graph dialect, checked ------------*- C++ -*-===//
//
// Model files are not trusted: an op is inferred and verified as it is created,
// and a refusal becomes a message instead of an assertion. A null value stands
// for a failure and runs through: an op with a null operand is null, so that a
// computation needs one check at its end.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_EMITTER_H
#define TCC_FRONTENDS_EMITTER_H

#include "dialects/graph/GraphOps.h"
#include "frontends/Sizes.h"
#include "mlir/IR/Builders.h"
#include <functional>

namespace tcc {

/// An integer that decides sizes: a size expression, or what a run computes, an
/// i64 scalar.
struct SizeElement {
  mlir::AffineExpr known;
  mlir::Value value;
  int64_t max = kMaxElements; ///< that what a run computes may be
};

/// How often the body of a loop runs, and what its results are called.
struct LoopLength {
  mlir::Value trips = {};      ///< an i64 scalar; null for no limit
  mlir::AffineExpr known = {}; ///< the same as a size, if it is one
  mlir::Value condition = {};  ///< a boolean scalar; null for true
  /// The results' names, for computed extents.
  llvm::SmallVector<std::string> names = {};
};

class Emitter {
public:
  using Attributes = llvm::ArrayRef<mlir::NamedAttribute>;

  Emitter(mlir::OpBuilder &builder, mlir::Location loc, Sizes &sizes)
      : builder(builder), loc(loc), sizes(sizes) {}

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::MLIRContext *getContext() { return builder.getContext(); }
  mlir::Location getLoc() const { return loc; }
  Sizes &getSizes() const { return sizes; }

  /// Records the first failure; gives null.
  mlir::Value fail(const llvm::Twine &message);
  /// The same for what tcc lacks.
  mlir::Value unsupported(const llvm::Twine &what);
  /// Fails as another did.
  mlir::Value failAs(const Emitter &other);
  bool hasFailed() const { return failed; }
  bool isUnsupported() const { return unsupportedFeature; }
  const std::string &getMessage() const { return message; }

  /// Creates an op; result types are inferred where `types` is empty.
  mlir::Operation *createOp(llvm::StringRef name, mlir::ValueRange operands,
                            Attributes attributes = {},
                            mlir::TypeRange types = {},
                            unsigned regionCount = 0);
  template <typename OpTy>
  mlir::Value create(mlir::ValueRange operands, Attributes attributes = {},
                     mlir::Type type = {}) {
    mlir::Operation *op =
        createOp(OpTy::getOperationName(), operands, attributes,
                 type ? mlir::TypeRange(type) : mlir::TypeRange());
    return op ? op->getResult(0) : nullptr;
  }
  /// An op that is not verified, to fill regions of one block each in.
  mlir::Operation *holdRegions(unsigned count);
  /// Verifies an op with regions once they are filled; erases it if it is
  /// wrong.
  bool check(mlir::Operation *op);

  /// Pointwise ops after numpy broadcasting of the operands.
  template <typename OpTy>
  mlir::Value pointwise(llvm::ArrayRef<mlir::Value> operands,
                        Attributes attributes = {}) {
    auto same = broadcastTogether(operands);
    return same.empty() ? nullptr : create<OpTy>(same, attributes);
  }
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value compare(graph::CompareKind kind, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value cast(mlir::Value x, mlir::Type elementType);

  /// A scalar of `elementType`.
  mlir::Value constant(double value, mlir::Type elementType);
  mlir::Value constant(llvm::ArrayRef<int64_t> values);
  /// A scalar of the element type of `like`.
  mlir::Value constantLike(double value, mlir::Value like);
  /// An i64 scalar, and a tensor of type `type` with these elements.
  mlir::Value size(mlir::AffineExpr expression);
  mlir::Value content(llvm::ArrayRef<mlir::AffineExpr> elements,
                      mlir::RankedTensorType type);

  // ReadSizes.cpp
  /// The elements of a tensor of integers, of static shape.
  llvm::SmallVector<SizeElement> elements(mlir::Value integers);
  mlir::Value scalar(const SizeElement &element);
  /// The largest value of a size, at most `max`.
  int64_t findMost(const SizeElement &element, int64_t max);
  /// A size; one that a run computes becomes a symbol, and the run ends where
  /// it is not in [0, max]. `--bound NAME=N` makes `max` smaller.
  mlir::AffineExpr readSize(const SizeElement &element, llvm::StringRef name,
                            int64_t max);
  /// The extents of a tensor with at most `maxElements` elements, or the bound
  /// that `name` was given; axis i is NAME.i.
  graph::Extents readShape(llvm::ArrayRef<SizeElement> elements,
                           llvm::StringRef name, int64_t maxElements);
  /// The product of i64 scalars; 2^31 or more if it is that.
  mlir::Value multiplySizes(llvm::ArrayRef<mlir::Value> values);
  /// A run ends with the message `otherwise` where `isMet`, a boolean scalar,
  /// is false.
  void require(mlir::Value isMet, const llvm::Twine &otherwise);

  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<mlir::AffineExpr> extents);
  mlir::Value broadcast(mlir::Value x,
                        llvm::ArrayRef<mlir::AffineExpr> extents);
  llvm::SmallVector<mlir::Value>
  broadcastTogether(llvm::ArrayRef<mlir::Value> operands);
  /// Extents that broadcasting needs to be equal and of which a run computes
  /// one become one: 0, and an error in the run, where they differ. Those of
  /// axis `except`, counted from the last, may differ.
  void equate(mlir::Value &a, mlir::Value &b, int64_t except = 0);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  /// New axes of extent 1 before the axes `axes` of the result.
  mlir::Value unsqueeze(mlir::Value x, llvm::ArrayRef<int64_t> axes);
  mlir::Value squeeze(mlir::Value x, llvm::ArrayRef<int64_t> axes);
  /// `extent` elements of an axis, from `start` in steps of `step`.
  mlir::Value slice(mlir::Value x, int64_t axis, mlir::AffineExpr start,
                    mlir::AffineExpr extent, int64_t step = 1);
  mlir::Value slice(mlir::Value x, int64_t axis, int64_t start, int64_t extent);
  /// The other axes' extents are equated.
  mlir::Value concat(llvm::ArrayRef<mlir::Value> parts, int64_t axis);
  /// Pads in constant mode; `interior` may be empty.
  mlir::Value pad(mlir::Value x, mlir::Value value, llvm::ArrayRef<int64_t> low,
                  llvm::ArrayRef<int64_t> high,
                  llvm::ArrayRef<int64_t> interior = {},
                  graph::PadMode mode = graph::PadMode::constant);
  mlir::Value iota(llvm::ArrayRef<mlir::AffineExpr> extents, int64_t axis,
                   mlir::Type elementType);
  /// The slice of an axis at an i64 scalar position; the axis is dropped.
  mlir::Value sliceAt(mlir::Value x, int64_t axis, mlir::Value position);
  mlir::Value gather(mlir::Value x, mlir::Value indices, int64_t axis);
  /// `indices` for a gathering from x along `axes`, tuples where they are a
  /// vector. Where a run may find x without elements it becomes longer by one,
  /// which stays out of range.
  mlir::Value guardIndices(mlir::Value &x, mlir::Value indices,
                           llvm::ArrayRef<int64_t> axes, bool areTuples);

  // EmitControl.cpp
  /// Emits a branch (`isThen` or the other one); returns its values.
  using BranchBody =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(bool isThen)>;
  /// One of two computations, whose results may have other extents: these are
  /// computed symbols then, NAME.i of axis i of result NAME. The body may
  /// change the names.
  llvm::SmallVector<mlir::Value>
  branch(mlir::Value condition, const llvm::SmallVectorImpl<std::string> &names,
         BranchBody body);
  /// Emits a loop's body from the iteration and the carried values; returns the
  /// condition to go on, the carried values, and the slices to stack. It is
  /// called again, and what it made before is erased, where carried values turn
  /// out to change their extents.
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value, mlir::ValueRange)>;
  /// Repeats `body`. Empty on failure.
  llvm::SmallVector<mlir::Value> loop(const LoopLength &length,
                                      llvm::ArrayRef<mlir::Value> inits,
                                      LoopBody body);

  /// Reduces axes (any order, non-negative), keeping them with extent 1.
  mlir::Value reduce(graph::ReduceKind kind, mlir::Value x,
                     llvm::ArrayRef<int64_t> axes, bool keepAxes);
  mlir::Value matmul(mlir::Value lhs, mlir::Value rhs,
                     bool transposeLhs = false, bool transposeRhs = false,
                     mlir::Type elementType = {});

  /// numpy's matmul: batches broadcast, a vector is a row or a column.
  mlir::Value product(mlir::Value lhs, mlir::Value rhs);
  /// Over axes that stay with extent 1; the variance is the biased one.
  mlir::Value mean(mlir::Value x, llvm::ArrayRef<int64_t> axes);
  mlir::Value variance(mlir::Value x, mlir::Value mean,
                       llvm::ArrayRef<int64_t> axes);
  /// Over the axes from `axis` on; scale and shift may be null.
  mlir::Value layerNorm(mlir::Value x, int64_t axis, double epsilon,
                        mlir::Value scale = nullptr,
                        mlir::Value shift = nullptr);
  /// [channel] as [channel, 1...] that broadcasts to x [batch, channel, ...].
  mlir::Value alongChannels(mlir::Value vector, mlir::Value x);

  graph::Extents extents(mlir::Value x) { return graph::getExtents(x); }
  int64_t rank(mlir::Value x);
  mlir::Type elementType(mlir::Value x);
  /// The product of extents as a scalar of the element type of `like`.
  mlir::Value countLike(llvm::ArrayRef<mlir::AffineExpr> extents,
                        mlir::Value like);
  /// The extents of x with one of them replaced.
  graph::Extents withExtent(mlir::Value x, int64_t axis,
                            mlir::AffineExpr extent);

  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, double value);
  mlir::NamedAttribute attr(llvm::StringRef name,
                            llvm::ArrayRef<int64_t> values);
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute value);
  mlir::NamedAttribute flag(llvm::StringRef name);

private:
  mlir::LogicalResult inferTypes(mlir::OperationState &state);
  mlir::ModuleOp getModule();
  /// Gives the module the symbols that there are by now.
  void updateSymbols();
  mlir::RankedTensorType joinTypes(mlir::RankedTensorType a,
                                   mlir::RankedTensorType b,
                                   llvm::StringRef name, size_t symbolCount);
  /// The op that holds a loop's body; null on failure.
  mlir::Operation *fillBody(llvm::ArrayRef<mlir::RankedTensorType> types,
                            LoopBody body,
                            llvm::SmallVectorImpl<mlir::Value> &yielded);
  /// The leading extent of stacked slices.
  mlir::AffineExpr countSlices(const LoopLength &length,
                               llvm::ArrayRef<mlir::Value> yielded,
                               size_t carried, size_t symbolCount);
  /// The product of `extents` with the symbols `made` among them is at most
  /// that of `larger`.
  void limitMade(llvm::ArrayRef<mlir::AffineExpr> made,
                 llvm::ArrayRef<mlir::AffineExpr> extents,
                 llvm::ArrayRef<mlir::AffineExpr> larger);
  void setSymbol(mlir::AffineExpr symbol, mlir::Value value,
                 llvm::StringRef what);
  bool checkSize(mlir::Type type);
  bool checkNonNegative(mlir::AffineExpr size);
  /// [2x3], for messages.
  std::string printShape(mlir::Value tensor);
  std::string printExtents(llvm::ArrayRef<mlir::AffineExpr> extents);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  Sizes &sizes;
  bool failed = false, unsupportedFeature = false;
  std::string message;
};

} // namespace tcc

#endif // TCC_FRONTENDS_EMITTER_H
