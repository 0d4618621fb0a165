//===- Shape.h - Shapes with symbolic dimensions ----------------*- C++ -*-===//
//
// A dimension of a graph tensor is an affine expression of the module's
// symbols. A static type has no encoding; otherwise the encoding is an affine
// map
// ()[s0, ...] -> (extents), with every extent, static ones included.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_SHAPE_H
#define TCC_DIALECTS_GRAPH_SHAPE_H

#include "dialects/graph/GraphDialect.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace tcc::graph {

using Extents = llvm::SmallVector<mlir::AffineExpr, 6>;

/// The extents of `type`, constants for static dimensions.
Extents getExtents(mlir::RankedTensorType type);
Extents getExtents(mlir::Value tensor);
/// One extent.
mlir::AffineExpr getExtent(mlir::Value tensor, int64_t axis);

/// The axes whose extent is not the constant 1: the index of others is 0.
llvm::SmallVector<int64_t> getLongAxes(mlir::Value tensor);

/// The tensor type of these extents; expressions are simplified first.
mlir::RankedTensorType makeTensorType(llvm::ArrayRef<mlir::AffineExpr> extents,
                                      mlir::Type elementType);
/// `type` with another element type.
mlir::RankedTensorType withElementType(mlir::RankedTensorType type,
                                       mlir::Type elementType);

/// Extents as the results of a symbol-only map, and back: the form of size
/// expressions in attributes.
mlir::AffineMap makeSizeMap(llvm::ArrayRef<mlir::AffineExpr> sizes,
                            mlir::MLIRContext *context);

/// The product of `extents`.
mlir::AffineExpr getNumElements(llvm::ArrayRef<mlir::AffineExpr> extents,
                                mlir::MLIRContext *context);

/// Axes [fromBegin, fromEnd) of one shape and [toBegin, toEnd) of another that
/// hold the same elements.
struct AxisGroup {
  size_t fromBegin, fromEnd, toBegin, toEnd;
};

/// Splits two shapes of equally many elements into the smallest groups of
/// adjacent axes with equal products.
llvm::SmallVector<AxisGroup> groupAxes(llvm::ArrayRef<mlir::AffineExpr> from,
                                       llvm::ArrayRef<mlir::AffineExpr> to);

/// True if both are the same for all values of the symbols, as far as affine
/// simplification can tell.
bool isEqual(mlir::AffineExpr lhs, mlir::AffineExpr rhs);

/// The constant that `expression` is, if it is one.
std::optional<int64_t> getConstant(mlir::AffineExpr expression);

/// The symbols of the module: entry i describes s<i>.
llvm::SmallVector<SymbolAttr> getSymbols(mlir::ModuleOp module);
void setSymbols(mlir::ModuleOp module, llvm::ArrayRef<SymbolAttr> symbols);

/// The positions of the symbols in `expression`, each once.
llvm::SmallVector<unsigned> getUsedSymbols(mlir::AffineExpr expression);
/// The positions of the symbols in the types and attributes of `op`, each once.
llvm::SmallVector<unsigned> getUsedSymbols(mlir::Operation *op);
/// True if an op gives one of the symbols in `expression` its value.
bool isComputed(mlir::AffineExpr expression,
                llvm::ArrayRef<SymbolAttr> symbols);
/// `map` must be a computed symbol alone of the module of `op`.
mlir::LogicalResult verifyComputedSymbol(mlir::Operation *op,
                                         mlir::AffineMap map);

/// A computed symbol, and what it is set to.
struct SetSize {
  unsigned symbol;
  mlir::AffineExpr value;
};
/// What tensors of types `as` are once they hold what those of types `from` do:
/// the symbols that are extents of the former alone, each once. Ops that are
/// not verified yet may ask: there may be fewer of either types.
llvm::SmallVector<SetSize> findSetSizes(mlir::TypeRange as,
                                        mlir::TypeRange from);
/// `from` must be as `as` but for extents that computed symbols stand for.
mlir::LogicalResult verifySetSizes(mlir::Operation *op, mlir::TypeRange as,
                                   mlir::TypeRange from);

/// Verifies the symbols of a module: the computed ones are the last, and what
/// uses one in a function follows the op that sets it.
mlir::LogicalResult verifySizes(mlir::Operation *module,
                                mlir::Attribute symbols);

/// Bounds of `expression` over the ranges of the symbols: inclusive, and exact
/// for monotone expressions.
struct Range {
  int64_t min, max;
};
Range getRange(mlir::AffineExpr expression, llvm::ArrayRef<SymbolAttr> symbols);

/// Takes a product apart into its constant, which `scale` is multiplied by, and
/// its other factors.
void collectFactors(mlir::AffineExpr size, int64_t &scale,
                    llvm::SmallVectorImpl<mlir::AffineExpr> &factors);
/// The largest absolute value of the product of `sizes`, rounded.
double getMaxProduct(llvm::ArrayRef<mlir::AffineExpr> sizes,
                     llvm::ArrayRef<SymbolAttr> symbols);

/// `expression` at the given symbol values.
int64_t evaluate(mlir::AffineExpr expression, llvm::ArrayRef<int64_t> symbols);

/// The numpy broadcast of two shapes; nullopt if they do not match. Extents
/// that differ and are not the constant 1 do not match.
std::optional<Extents> broadcastExtents(llvm::ArrayRef<mlir::AffineExpr> lhs,
                                        llvm::ArrayRef<mlir::AffineExpr> rhs);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_SHAPE_H
