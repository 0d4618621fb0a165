//===- TensorEmitter.h - Ops for decompositions and gradients ---*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_OPS_TENSOREMITTER_H
#define TCC_DIALECTS_GRAPH_OPS_TENSOREMITTER_H

#include "dialects/graph/GraphOps.h"
#include "mlir/IR/Builders.h"

namespace tcc::graph {

/// Emits ops at one location.
class TensorEmitter {
public:
  TensorEmitter(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  template <typename Op, typename... Args>
  mlir::Value emit(Args &&...args) const {
    return builder.create<Op>(loc, std::forward<Args>(args)...);
  }

  /// Reduces `axes` and brings the result back to x's extents.
  mlir::Value reduceAndBroadcast(ReduceKind kind, mlir::Value x,
                                 llvm::ArrayRef<int64_t> axes) const;
  /// `reduced` lacks `axes` of x: repeats it along them.
  mlir::Value broadcastBack(mlir::Value reduced, mlir::Value x,
                            llvm::ArrayRef<int64_t> axes) const;
  /// The sum over the axes along which a value of `type` was repeated to make
  /// x: the other way round of broadcast.
  mlir::Value sumTo(mlir::Value x, mlir::RankedTensorType type) const;
  /// x repeated to `type`, along axes whose extents are multiples of x's.
  mlir::Value tile(mlir::Value x, mlir::RankedTensorType type) const;
  /// The sum over the repeats of a value of `type` that make x: the other way
  /// round of tile.
  mlir::Value sumTiles(mlir::Value x, mlir::RankedTensorType type) const;
  /// sum / (number of elements of x along `axes`).
  mlir::Value divideByCount(mlir::Value sum, mlir::Value x,
                            llvm::ArrayRef<int64_t> axes) const;
  mlir::Value mean(mlir::Value x, llvm::ArrayRef<int64_t> axes) const;

  /// `parameter`, one value for each index of axis 1 of `like`, repeated along
  /// the other axes.
  mlir::Value alongChannels(mlir::Value parameter, mlir::Value like) const;

  /// All elements `value`.
  mlir::Value splat(mlir::RankedTensorType type, double value) const;
  /// A constant with x's type.
  mlir::Value splat(mlir::Value x, double value) const;

  /// x as f32 if it is a narrower float.
  mlir::Value widen(mlir::Value x) const;
  /// x with the element type of `type`.
  mlir::Value castTo(mlir::Value x, mlir::RankedTensorType type) const;
  mlir::Value reshape(mlir::Value x,
                      llvm::ArrayRef<mlir::AffineExpr> extents) const;

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// A tensor in a formula: `dy * (1.0 - y * y)`. Operands have one type; a
/// number has all its elements equal.
struct Expr {
  mlir::Value value;
  const TensorEmitter *emitter;

  template <typename Op> Expr make() const {
    return {emitter->emit<Op>(value), emitter};
  }
  template <typename Op> Expr make(Expr rhs) const {
    return {emitter->emit<Op>(value, rhs.value), emitter};
  }
  Expr like(double number) const {
    return {emitter->splat(value, number), emitter};
  }
};

inline Expr operator+(Expr x, Expr y) { return x.make<AddOp>(y); }
inline Expr operator-(Expr x, Expr y) { return x.make<SubOp>(y); }
inline Expr operator*(Expr x, Expr y) { return x.make<MulOp>(y); }
inline Expr operator/(Expr x, Expr y) { return x.make<DivOp>(y); }
inline Expr operator+(Expr x, double y) { return x + x.like(y); }
inline Expr operator-(Expr x, double y) { return x - x.like(y); }
inline Expr operator*(Expr x, double y) { return x * x.like(y); }
inline Expr operator/(Expr x, double y) { return x / x.like(y); }
inline Expr operator+(double x, Expr y) { return y.like(x) + y; }
inline Expr operator-(double x, Expr y) { return y.like(x) - y; }
inline Expr operator*(double x, Expr y) { return y.like(x) * y; }
inline Expr operator/(double x, Expr y) { return y.like(x) / y; }
inline Expr operator-(Expr x) { return x.make<NegOp>(); }

inline Expr exp(Expr x) { return x.make<ExpOp>(); }
inline Expr log(Expr x) { return x.make<LogOp>(); }
inline Expr sqrt(Expr x) { return x.make<SqrtOp>(); }
inline Expr rsqrt(Expr x) { return x.make<RsqrtOp>(); }
inline Expr sin(Expr x) { return x.make<SinOp>(); }
inline Expr cos(Expr x) { return x.make<CosOp>(); }
inline Expr sinh(Expr x) { return x.make<SinhOp>(); }
inline Expr cosh(Expr x) { return x.make<CoshOp>(); }
inline Expr tanh(Expr x) { return x.make<TanhOp>(); }
inline Expr sign(Expr x) { return x.make<SignOp>(); }
inline Expr floor(Expr x) { return x.make<FloorOp>(); }
inline Expr sigmoid(Expr x) { return x.make<SigmoidOp>(); }
inline Expr softplus(Expr x) { return x.make<SoftplusOp>(); }

/// A condition in a formula.
inline Expr compare(CompareKind kind, Expr x, Expr y) {
  return {x.emitter->emit<CompareOp>(kind, x.value, y.value), x.emitter};
}
inline Expr operator<(Expr x, double y) {
  return compare(CompareKind::lt, x, x.like(y));
}
inline Expr operator<=(Expr x, double y) {
  return compare(CompareKind::le, x, x.like(y));
}
inline Expr operator>(Expr x, double y) {
  return compare(CompareKind::gt, x, x.like(y));
}
inline Expr operator>=(Expr x, double y) {
  return compare(CompareKind::ge, x, x.like(y));
}
inline Expr select(Expr condition, Expr x, Expr y) {
  return {x.emitter->emit<SelectOp>(condition.value, x.value, y.value),
          x.emitter};
}
inline Expr select(Expr condition, Expr x, double y) {
  return select(condition, x, x.like(y));
}
inline Expr select(Expr condition, double x, Expr y) {
  return select(condition, y.like(x), y);
}

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_OPS_TENSOREMITTER_H
