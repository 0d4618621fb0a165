//===- Sizes.h - Arithmetic on known integers -------------------*- C++ -*-===//
//
// While a model is imported, an integer is often known as a size expression of
// the module's symbols. Each function gives nullopt where the result is not
// one, so that the computation has to stay in the module.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_SIZES_H
#define TCC_FRONTENDS_SIZES_H

#include "dialects/graph/GraphDialect.h"
#include "dialects/graph/Shape.h"
#include "tcc/import_options.h"
#include "llvm/ADT/StringSet.h"

namespace tcc {

/// The elements of a small tensor of integers or booleans (0 or 1), or of
/// floats that are whole numbers.
using Content = llvm::SmallVector<mlir::AffineExpr>;
using Size = std::optional<mlir::AffineExpr>;

/// Tensors with more elements are not tracked.
constexpr int64_t kMaxContent = 4096;
/// Extents and element counts beyond this are refused.
constexpr int64_t kMaxElements = int64_t(1) << 40;
/// The most elements of a tensor whose extents nothing bounds but a run, unless
/// a bound is given.
constexpr int64_t kUsualElements = int64_t(1) << 22;
/// The same of one extent alone, two of which often meet in a tensor.
constexpr int64_t kUsualExtent = int64_t(1) << 16;

enum class SizeOp { add, sub, mul, div, mod, rem, min, max };
enum class SizeCompare { eq, ne, lt, le, gt, ge };

/// Knows the ranges of the symbols.
class Sizes {
public:
  explicit Sizes(mlir::MLIRContext *context,
                 llvm::ArrayRef<SizeBound> bounds = {})
      : context(context), bounds(bounds) {}

  mlir::AffineExpr addSymbol(llvm::StringRef name, int64_t min, int64_t max);
  /// A symbol that an op of the module sets, at most `max`, behind those of the
  /// inputs. The name gets a number where another symbol has it.
  mlir::AffineExpr addComputed(llvm::StringRef name, int64_t min, int64_t max);
  /// Drops the symbols from number `count` on.
  void keepSymbols(size_t count) { symbols.truncate(count); }
  /// The product of `computed`, such symbols, is at most `max`, which those in
  /// `limited` know then.
  void limitProduct(llvm::ArrayRef<mlir::AffineExpr> computed,
                    llvm::ArrayRef<mlir::AffineExpr> limited, int64_t max);
  /// What is given as the bound of size `name`, if anything is.
  std::optional<int64_t> findBound(llvm::StringRef name);
  /// A sentence for each computed size that may differ: its bound.
  std::vector<std::string> describeBounds() const;
  /// Sizes with a bound that nothing asked for.
  std::vector<std::string> getUnusedBounds() const;
  llvm::ArrayRef<tcc::graph::SymbolAttr> getSymbols() const { return symbols; }

  mlir::AffineExpr constant(int64_t value) const;
  graph::Range getRange(mlir::AffineExpr size) const;

  /// Values of the symbols, like "n = 1", at which `size` is negative or may
  /// be; nullopt if it never is.
  std::optional<std::string> findNegative(mlir::AffineExpr size) const;
  /// `size` with the symbols' names.
  std::string print(mlir::AffineExpr size) const;

  /// Constants wrap around as int64; div and rem round to zero, mod has the
  /// divisor's sign, and a zero divisor is not known.
  Size apply(SizeOp op, mlir::AffineExpr lhs, mlir::AffineExpr rhs) const;
  /// True or false if it holds for all or no values of the symbols.
  std::optional<bool> compare(SizeCompare kind, mlir::AffineExpr lhs,
                              mlir::AffineExpr rhs) const;
  Size clamp(mlir::AffineExpr size, mlir::AffineExpr low,
             mlir::AffineExpr high) const;
  Size product(llvm::ArrayRef<mlir::AffineExpr> sizes) const;
  /// numerator's product / denominator's product, where it divides exactly.
  Size divideProducts(llvm::ArrayRef<mlir::AffineExpr> numerator,
                      llvm::ArrayRef<mlir::AffineExpr> denominator) const;
  /// The largest number of elements, saturated above kMaxElements.
  int64_t getMaxElements(llvm::ArrayRef<mlir::AffineExpr> extents) const;

private:
  /// Exact bounds where `size` depends on one symbol with few values.
  graph::Range getTightRange(mlir::AffineExpr size) const;

  mlir::MLIRContext *context;
  llvm::ArrayRef<SizeBound> bounds;
  llvm::StringSet<> usedBounds;
  llvm::SmallVector<graph::SymbolAttr> symbols;
};

} // namespace tcc

#endif // TCC_FRONTENDS_SIZES_H
