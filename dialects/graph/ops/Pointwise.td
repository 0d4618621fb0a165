#ifndef TCC_GRAPH_POINTWISE
#define TCC_GRAPH_POINTWISE

include "dialects/graph/GraphDialect.td"

class Graph_Pointwise<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(traits, [Pure, InferTypeOpAdaptor,
        SameOperandsAndResultShape,
        DeclareOpInterfaceMethods<PointwiseOpInterface>])> {
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
}

/// result has the type of the first operand.
class Graph_TypedAsFirst<string mnemonic, list<Trait> traits = []>
    : Graph_Pointwise<mnemonic, traits> {
  code inferAsFirst = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, ::std::optional<::mlir::Location>,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      types.push_back(adaptor.getOperands().front().getType());
      return ::mlir::success();
    }
  }];
  let extraClassDefinition = inferAsFirst;
}

/// result has the type of x. `gradient` is the gradient with respect to x, a
/// formula of x, y (the result) and dy (its gradient); empty if it is 0.
class Graph_UnaryPointwise<string mnemonic, string formula, string gradient>
    : Graph_TypedAsFirst<mnemonic,
        [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = formula;
  let arguments = (ins AnyRankedTensor:$x);
  code deriveX = !if(!empty(gradient), [{
    ::llvm::LogicalResult $cppClass::emitGradients(Gradients &) {
      return ::mlir::success();
    }
  }], [{
    ::llvm::LogicalResult $cppClass::emitGradients(Gradients &gradients) {
      TensorEmitter emitter(gradients.getBuilder(), getLoc());
      auto derive = [&]([[maybe_unused]] Expr x, [[maybe_unused]] Expr y,
                        Expr dy) -> Expr { return }] # gradient # [{; };
      gradients.add(getX(), derive({getX(), &emitter}, {getResult(), &emitter},
                                   {gradients.get(getResult()), &emitter}).value);
      return ::mlir::success();
    }
  }]);
  let extraClassDefinition = inferAsFirst # deriveX;
}

/// A function of floats.
class Graph_FloatPointwise<string mnemonic, string formula, string gradient>
    : Graph_UnaryPointwise<mnemonic, formula, gradient> {
  let arguments = (ins Graph_FloatTensor:$x);
}

/// A function of floats that is one op of the math dialect.
class Graph_MathPointwise<string mnemonic, string formula, string mathOp,
                          string gradient>
    : Graph_FloatPointwise<mnemonic, formula, gradient> {
  let extraClassDefinition = inferAsFirst # deriveX # [{
    ::mlir::Value $cppClass::emitScalar(::mlir::OpBuilder &builder,
                                        ::mlir::Location loc,
                                        ::mlir::ValueRange elements) {
      return builder.create<::mlir::math::}] # mathOp # [{>(loc, elements[0]);
    }
  }];
}

/// Operands and result have one type.
class Graph_SameTypePointwise<string mnemonic, string formula,
                              list<Trait> traits = []>
    : Graph_TypedAsFirst<mnemonic, !listconcat(traits, [SameTypeOperands])> {
  let summary = formula;
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
}

/// An arithmetic operation with the gradients with respect to lhs (l) and rhs
/// (r), formulas of these, y and dy.
class Graph_BinaryPointwise<string mnemonic, string formula,
                            string lhsGradient, string rhsGradient,
                            list<Trait> traits = []>
    : Graph_SameTypePointwise<mnemonic, formula, !listconcat(traits,
        [DeclareOpInterfaceMethods<DifferentiableOpInterface>])> {
  let extraClassDefinition = inferAsFirst # [{
    ::llvm::LogicalResult $cppClass::emitGradients(Gradients &gradients) {
      TensorEmitter emitter(gradients.getBuilder(), getLoc());
      [[maybe_unused]] Expr l{getLhs(), &emitter}, r{getRhs(), &emitter},
          y{getResult(), &emitter};
      Expr dy{gradients.get(getResult()), &emitter};
      if (gradients.wants(getLhs()))
        gradients.add(getLhs(), Expr(}] # lhsGradient # [{).value);
      if (gradients.wants(getRhs()))
        gradients.add(getRhs(), Expr(}] # rhsGradient # [{).value);
      return ::mlir::success();
    }
  }];
}

// --- Arithmetic: floats and integers ------------------------------------------

def Graph_AddOp : Graph_BinaryPointwise<"add", "lhs + rhs", "dy", "dy",
    [Commutative, ParameterSlotOpInterface]> {
  let extraClassDeclaration = [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned) {
      return ParameterSlot::summand;
    }
  }];
  let hasFolder = 1;
}
def Graph_SubOp : Graph_BinaryPointwise<"sub", "lhs - rhs", "dy", "-dy"> {
  let hasFolder = 1;
}
def Graph_MulOp : Graph_BinaryPointwise<"mul", "lhs * rhs", "dy * r",
    "dy * l", [Commutative, ParameterSlotOpInterface]> {
  let extraClassDeclaration = [{
    ::tcc::graph::ParameterSlot getParameterSlot(unsigned) {
      return ParameterSlot::factor;
    }
  }];
  let hasFolder = 1;
}
def Graph_DivOp : Graph_BinaryPointwise<"div",
    "lhs / rhs; integers towards zero, x / 0 = 0", "dy / r", "-dy * y / r"> {
  let hasFolder = 1;
}
def Graph_MaxOp : Graph_BinaryPointwise<"max",
    "the larger one; NaN if either is NaN", "passLarger(gradients, l, r, dy)",
    "passLarger(gradients, r, l, dy)", [Commutative]>;
def Graph_MinOp : Graph_BinaryPointwise<"min",
    "the smaller one; NaN if either is NaN", "passSmaller(gradients, l, r, dy)",
    "passSmaller(gradients, r, l, dy)", [Commutative]>;
def Graph_PowOp : Graph_TypedAsFirst<"pow",
    [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "lhs to the power rhs; integer bases by repeated squaring";
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
}
def Graph_ModOp : Graph_BinaryPointwise<"mod",
    "remainder, sign of rhs; x mod 0 = 0", "dy", "-dy * ((l - y) / r)">;
def Graph_RemOp : Graph_BinaryPointwise<"rem",
    "remainder, sign of lhs (C's fmod); x rem 0 = 0 for integers", "dy",
    "-dy * ((l - y) / r)">;
def Graph_NegOp : Graph_UnaryPointwise<"neg", "-x", "-dy">;
def Graph_AbsOp : Graph_UnaryPointwise<"abs", "|x|", "dy * sign(x)">;
def Graph_SignOp : Graph_UnaryPointwise<"sign", "-1, 0 or 1; NaN for NaN", "">;
def Graph_ReluOp : Graph_UnaryPointwise<"relu", "max(x, 0); NaN for NaN",
    "select(y <= 0.0, 0.0, dy)">;

// --- Bits and booleans ----------------------------------------------------------

def Graph_AndOp : Graph_SameTypePointwise<"and", "bitwise and", [Commutative]>;
def Graph_OrOp : Graph_SameTypePointwise<"or", "bitwise or", [Commutative]>;
def Graph_XorOp : Graph_SameTypePointwise<"xor", "bitwise exclusive or", [Commutative]>;
def Graph_NotOp : Graph_TypedAsFirst<"not"> {
  let summary = "bitwise complement";
  let arguments = (ins AnyRankedTensor:$x);
}
def Graph_ShiftLeftOp : Graph_SameTypePointwise<"shift_left",
    "lhs << rhs; 0 where rhs is the width or more">;
def Graph_ShiftRightOp : Graph_SameTypePointwise<"shift_right",
    "lhs >> rhs, logical; 0 where rhs is the width or more">;

// --- Comparison and choice --------------------------------------------------------

def Graph_CompareOp : Graph_Pointwise<"compare", [SameTypeOperands]> {
  let summary = "lhs (kind) rhs as a boolean; NaN compares false but for ne";
  let arguments = (ins Graph_CompareKindAttr:$kind, AnyRankedTensor:$lhs,
                       AnyRankedTensor:$rhs);
  let assemblyFormat = [{
    $kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)
  }];
}
def Graph_SelectOp : Graph_Pointwise<"select",
    [AllTypesMatch<["on_true", "on_false"]>,
     DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "condition ? on_true : on_false";
  let arguments = (ins AnyRankedTensor:$condition, AnyRankedTensor:$on_true,
                       AnyRankedTensor:$on_false);
  let hasFolder = 1;
}
def Graph_IsNanOp : Graph_Pointwise<"is_nan"> {
  let summary = "x is NaN";
  let arguments = (ins Graph_FloatTensor:$x);
}
def Graph_IsInfOp : Graph_Pointwise<"is_inf"> {
  let summary = "x is infinite, of the signs asked for";
  let arguments = (ins Graph_FloatTensor:$x,
                       DefaultValuedAttr<BoolAttr, "true">:$positive,
                       DefaultValuedAttr<BoolAttr, "true">:$negative);
}
def Graph_CastOp : Graph_Op<"cast", [Pure,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<PointwiseOpInterface>]> {
  let summary = "x converted to the result's element type";
  let description = [{
    Floats to integers truncate and saturate, NaN gives 0; to boolean: x != 0;
    integers wrap; floats round to nearest even.
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let builders = [OpBuilder<(ins "::mlir::Value":$x,
                                 "::mlir::Type":$elementType)>];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Graph_BitcastOp : Graph_Op<"bitcast", [Pure,
    DeclareOpInterfaceMethods<PointwiseOpInterface>]> {
  let summary = "the bits of x as an element type of equally many";
  let description = [{
    Of integers, f32 and f64. No gradient passes.
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

// --- Rounding ----------------------------------------------------------------------

def Graph_FloorOp : Graph_MathPointwise<"floor", "rounds down", "FloorOp", "">;
def Graph_CeilOp : Graph_MathPointwise<"ceil", "rounds up", "CeilOp", "">;
def Graph_RoundOp : Graph_MathPointwise<"round", "to nearest, halves to even", "RoundEvenOp",
    "">;

// --- Elementary functions: floats only ----------------------------------------------

def Graph_ExpOp : Graph_MathPointwise<"exp", "e^x", "ExpOp", "dy * y">;
def Graph_LogOp : Graph_MathPointwise<"log", "natural logarithm", "LogOp", "dy / x">;
def Graph_Log1pOp : Graph_MathPointwise<"log1p", "log(1 + x)", "Log1pOp", "dy / (1.0 + x)">;
def Graph_SqrtOp : Graph_MathPointwise<"sqrt", "square root", "SqrtOp", "dy * 0.5 / y">;
def Graph_RsqrtOp : Graph_FloatPointwise<"rsqrt", "1 / sqrt(x)", "dy * -0.5 * y / x">;
def Graph_ReciprocalOp : Graph_FloatPointwise<"reciprocal", "1 / x", "-dy * y * y">;
def Graph_SinOp : Graph_MathPointwise<"sin", "sine", "SinOp", "dy * cos(x)">;
def Graph_CosOp : Graph_MathPointwise<"cos", "cosine", "CosOp", "-dy * sin(x)">;
def Graph_TanOp : Graph_MathPointwise<"tan", "tangent", "TanOp", "dy * (1.0 + y * y)">;
def Graph_AsinOp : Graph_MathPointwise<"asin", "inverse sine", "AsinOp",
    "dy * rsqrt(1.0 - x * x)">;
def Graph_AcosOp : Graph_MathPointwise<"acos", "inverse cosine", "AcosOp",
    "-dy * rsqrt(1.0 - x * x)">;
def Graph_AtanOp : Graph_MathPointwise<"atan", "inverse tangent", "AtanOp",
    "dy / (1.0 + x * x)">;
def Graph_SinhOp : Graph_MathPointwise<"sinh", "hyperbolic sine", "SinhOp", "dy * cosh(x)">;
def Graph_CoshOp : Graph_MathPointwise<"cosh", "hyperbolic cosine", "CoshOp", "dy * sinh(x)">;
def Graph_TanhOp : Graph_MathPointwise<"tanh", "hyperbolic tangent", "TanhOp",
    "dy * (1.0 - y * y)">;
def Graph_AsinhOp : Graph_MathPointwise<"asinh", "inverse hyperbolic sine", "AsinhOp",
    "dy * rsqrt(x * x + 1.0)">;
def Graph_AcoshOp : Graph_MathPointwise<"acosh", "inverse hyperbolic cosine", "AcoshOp",
    "dy * rsqrt(x * x - 1.0)">;
def Graph_AtanhOp : Graph_MathPointwise<"atanh", "inverse hyperbolic tangent", "AtanhOp",
    "dy / (1.0 - x * x)">;
def Graph_ErfOp : Graph_MathPointwise<"erf", "error function", "ErfOp",
    "dy * (std::numbers::inv_sqrtpi * 2.0) * exp(-x * x)">;
def Graph_NormalCdfOp : Graph_FloatPointwise<"normal_cdf",
    "Phi(x), the part of a normal distribution below x", "dy * normalDensity(x)">;

// --- Activations: floats only ---------------------------------------------------------

def Graph_SigmoidOp : Graph_FloatPointwise<"sigmoid", "1 / (1 + e^-x)", "dy * y * (1.0 - y)">;
def Graph_SiluOp : Graph_FloatPointwise<"silu", "x * sigmoid(x)", "deriveSilu(x, dy)">;
def Graph_SoftplusOp : Graph_FloatPointwise<"softplus", "log(1 + e^x)", "dy * sigmoid(x)">;
def Graph_GeluOp : Graph_FloatPointwise<"gelu",
    "x * normal_cdf(x)", "deriveGelu(x, dy)">;
def Graph_GeluTanhOp : Graph_FloatPointwise<"gelu_tanh",
    "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))",
    "x.make<GeluTanhGradientOp>(dy)">;
/// One op, as libraries know it behind the product that makes dy.
// Of a library's function of two (fusion/Epilogue.h) the last operand is the
// product.
def Graph_GeluTanhGradientOp : Graph_SameTypePointwise<"gelu_tanh_gradient",
    "dy times the derivative of gelu_tanh at x"> {
  let arguments = (ins Graph_FloatTensor:$x, Graph_FloatTensor:$dy);
}
def Graph_MishOp : Graph_FloatPointwise<"mish", "x * tanh(log(1 + e^x))", "deriveMish(x, dy)">;
def Graph_HardSwishOp : Graph_FloatPointwise<"hard_swish",
    "x * max(0, min(1, x/6 + 1/2))",
    "select(x <= -3.0, 0.0, select(x < 3.0, dy * (x / 3.0 + 0.5), dy))">;
def Graph_HardSigmoidOp : Graph_FloatPointwise<"hard_sigmoid",
    "max(0, min(1, alpha x + beta))",
    "deriveHardSigmoid(*this, y, dy)"> {
  let arguments = (ins Graph_FloatTensor:$x, F64Attr:$alpha, F64Attr:$beta);
}
def Graph_LeakyReluOp : Graph_FloatPointwise<"leaky_relu",
    "x < 0 ? alpha x : x",
    "select(x > 0.0, dy, dy * getAlpha().convertToDouble())"> {
  let arguments = (ins Graph_FloatTensor:$x, F64Attr:$alpha);
}
def Graph_EluOp : Graph_FloatPointwise<"elu", "x < 0 ? alpha (e^x - 1) : x",
    "select(x > 0.0, dy, dy * (y + getAlpha().convertToDouble()))"> {
  let arguments = (ins Graph_FloatTensor:$x, F64Attr:$alpha);
}

#endif // TCC_GRAPH_POINTWISE
