//===- Call.h - One call of an operator, as its row sees it -----*- C++ -*-===//
#ifndef TCC_FRONTENDS_ATEN_CALL_H
#define TCC_FRONTENDS_ATEN_CALL_H

#include "frontends/aten/Ops.h"
#include "frontends/aten/Variable.h"

namespace tcc::aten {

class Tracer;

/// The type that PyTorch's number `scalarType` stands for; null if tcc has
/// none.
mlir::Type getElementType(int64_t scalarType, mlir::MLIRContext *context);
/// The inverse; nullopt for a type that PyTorch lacks.
std::optional<int64_t> getScalarType(mlir::Type type);

/// Arguments and results of one call, arguments by the names of the schema.
/// What a row asks of them may be absent or malformed: every such answer fails
/// the call, once.
class Call : public Emitter {
public:
  Call(Tracer &tracer, const Schema &schema, llvm::ArrayRef<Item> arguments,
       mlir::Location loc);

  Tracer &getTracer() { return tracer; }
  const Schema &getSchema() const { return schema; }

  // --- Arguments -------------------------------------------------------------
  const Item &get(llvm::StringRef name);
  bool has(llvm::StringRef name);
  mlir::Value tensor(llvm::StringRef name);
  /// Null, without failing, for None.
  mlir::Value optional(llvm::StringRef name);
  llvm::SmallVector<mlir::Value> tensors(llvm::StringRef name);
  /// A tensor of integers that index another.
  mlir::Value indices(llvm::StringRef name) { return toIndices(tensor(name)); }
  mlir::Value toIndices(mlir::Value x);
  bool isTrue(llvm::StringRef name);
  double real(llvm::StringRef name);
  std::string text(llvm::StringRef name);
  /// A known integer, and any.
  int64_t integer(llvm::StringRef name);
  mlir::AffineExpr extent(llvm::StringRef name);
  /// Lists; a single integer stands for `count` of them.
  llvm::SmallVector<int64_t> integers(llvm::StringRef name, size_t count = 0);
  graph::Extents sizes(llvm::StringRef name);
  /// The element type that the argument names, or `fallback` for None.
  mlir::Type type(llvm::StringRef name, mlir::Type fallback);
  /// An axis of a tensor of this rank, made non-negative; fails for scalars,
  /// which have none. 0 after failing.
  int64_t axis(llvm::StringRef name, int64_t rank);
  /// Several, of which an empty list or None means all.
  llvm::SmallVector<int64_t> axes(llvm::StringRef name, int64_t rank);
  /// The same for an integer.
  int64_t realAxis(int64_t axis, int64_t rank);
  /// The same, but scalars have axis 0, as PyTorch allows where order is all
  /// that is asked.
  int64_t wrapAxis(int64_t axis, int64_t rank);
  /// The size that an item is; nullopt after failing.
  std::optional<mlir::AffineExpr> getSize(const Item &item);

  // --- Types -----------------------------------------------------------------
  /// The type of a result of these items: of the highest of bool, integers and
  /// floats, tensors with axes before scalars before numbers.
  mlir::Type promote(llvm::ArrayRef<const Item *> items);
  /// `item`, a tensor or a number, as a tensor of `type`.
  mlir::Value operand(const Item &item, mlir::Type type);
  /// x in `type`; as booleans, all numbers but 0 are true.
  mlir::Value castTo(mlir::Value x, mlir::Type type);
  /// All of them in their common type; integers as floats if `isReal`.
  llvm::SmallVector<mlir::Value> operands(llvm::ArrayRef<llvm::StringRef> names,
                                          bool isReal = false);
  mlir::Type getRealType();
  mlir::Type getIndexType();
  mlir::Type getBoolType();
  /// x in floats: integers become PyTorch's default type.
  mlir::Value toReal(mlir::Value x);

  // --- Results ---------------------------------------------------------------
  /// `isDense` says that it lies in row-major order.
  void give(mlir::Value value, bool isDense = false);
  /// The call gives an argument itself.
  void giveSame(llvm::StringRef name);
  void giveItem(Item item) { results.push_back(std::move(item)); }
  llvm::ArrayRef<Item> getResults() const { return results; }

private:
  Tracer &tracer;
  const Schema &schema;
  llvm::ArrayRef<Item> arguments;
  llvm::SmallVector<Item, 2> results;
};

} // namespace tcc::aten

#endif // TCC_FRONTENDS_ATEN_CALL_H
