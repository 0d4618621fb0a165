#ifndef TCC_GRAPH_POINTWISE
#define TCC_GRAPH_POINTWISE

include "dialects/graph/GraphDialect.td"

class Graph_Pointwise<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat(traits, [Pure, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<PointwiseOpInterface>])> {
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
    "operands attr-dict `:` functional-type(operands, results)";
}

/// result has the type of x.
class Graph_UnaryPointwise<string mnemonic, string formula,
                           list<Trait> traits = []>
    : Graph_Pointwise<mnemonic, traits> {
  let summary = formula;
  let arguments = (ins AnyRankedTensor:$x);
}

/// Operands and result have one type.
class Graph_BinaryPointwise<string mnemonic, string formula,
                            list<Trait> traits = []>
    : Graph_Pointwise<mnemonic, !listconcat(traits, [SameTypeOperands])> {
  let summary = formula;
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
}

// --- Arithmetic: floats and integers ------------------------------------------

def Graph_AddOp : Graph_BinaryPointwise<"add", "lhs + rhs", [Commutative]> {
  let hasFolder = 1;
}
def Graph_SubOp : Graph_BinaryPointwise<"sub", "lhs - rhs"> {
  let hasFolder = 1;
}
def Graph_MulOp : Graph_BinaryPointwise<"mul", "lhs * rhs", [Commutative]> {
  let hasFolder = 1;
}
def Graph_DivOp : Graph_BinaryPointwise<"div",
    "lhs / rhs; integers towards zero, x / 0 = 0"> {
  let hasFolder = 1;
}
def Graph_MaxOp : Graph_BinaryPointwise<"max",
    "the larger one; NaN if either is NaN", [Commutative]>;
def Graph_MinOp : Graph_BinaryPointwise<"min",
    "the smaller one; NaN if either is NaN", [Commutative]>;
def Graph_PowOp : Graph_Pointwise<"pow"> {
  let summary = "lhs to the power rhs; integer bases by repeated squaring";
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
}
def Graph_ModOp : Graph_BinaryPointwise<"mod", "remainder, sign of rhs; x mod 0 = 0">;
def Graph_RemOp : Graph_BinaryPointwise<"rem",
    "remainder, sign of lhs (C's fmod); x rem 0 = 0 for integers">;
def Graph_NegOp : Graph_UnaryPointwise<"neg", "-x">;
def Graph_AbsOp : Graph_UnaryPointwise<"abs", "|x|">;
def Graph_SignOp : Graph_UnaryPointwise<"sign", "-1, 0 or 1; NaN for NaN">;
def Graph_ReluOp : Graph_UnaryPointwise<"relu", "max(x, 0); NaN for NaN">;

// --- Bits and booleans ----------------------------------------------------------

def Graph_AndOp : Graph_BinaryPointwise<"and", "bitwise and", [Commutative]>;
def Graph_OrOp : Graph_BinaryPointwise<"or", "bitwise or", [Commutative]>;
def Graph_XorOp : Graph_BinaryPointwise<"xor", "bitwise exclusive or", [Commutative]>;
def Graph_NotOp : Graph_UnaryPointwise<"not", "bitwise complement">;
def Graph_ShiftLeftOp : Graph_BinaryPointwise<"shift_left",
    "lhs << rhs; 0 where rhs is the width or more">;
def Graph_ShiftRightOp : Graph_BinaryPointwise<"shift_right",
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
    [AllTypesMatch<["on_true", "on_false"]>]> {
  let summary = "condition ? on_true : on_false";
  let arguments = (ins AnyRankedTensor:$condition, AnyRankedTensor:$on_true,
                       AnyRankedTensor:$on_false);
  let hasFolder = 1;
}
def Graph_IsNanOp : Graph_Pointwise<"is_nan"> {
  let summary = "x is NaN";
  let arguments = (ins AnyRankedTensor:$x);
}
def Graph_IsInfOp : Graph_Pointwise<"is_inf"> {
  let summary = "x is infinite, of the signs asked for";
  let arguments = (ins AnyRankedTensor:$x,
                       DefaultValuedAttr<BoolAttr, "true">:$positive,
                       DefaultValuedAttr<BoolAttr, "true">:$negative);
}
def Graph_CastOp : Graph_Op<"cast", [Pure,
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

// --- Rounding ----------------------------------------------------------------------

def Graph_FloorOp : Graph_UnaryPointwise<"floor", "rounds down">;
def Graph_CeilOp : Graph_UnaryPointwise<"ceil", "rounds up">;
def Graph_RoundOp : Graph_UnaryPointwise<"round", "to nearest, halves to even">;

// --- Elementary functions: floats only ----------------------------------------------

def Graph_ExpOp : Graph_UnaryPointwise<"exp", "e^x">;
def Graph_LogOp : Graph_UnaryPointwise<"log", "natural logarithm">;
def Graph_Log1pOp : Graph_UnaryPointwise<"log1p", "log(1 + x)">;
def Graph_SqrtOp : Graph_UnaryPointwise<"sqrt", "square root">;
def Graph_RsqrtOp : Graph_UnaryPointwise<"rsqrt", "1 / sqrt(x)">;
def Graph_ReciprocalOp : Graph_UnaryPointwise<"reciprocal", "1 / x">;
def Graph_SinOp : Graph_UnaryPointwise<"sin", "sine">;
def Graph_CosOp : Graph_UnaryPointwise<"cos", "cosine">;
def Graph_TanOp : Graph_UnaryPointwise<"tan", "tangent">;
def Graph_AsinOp : Graph_UnaryPointwise<"asin", "inverse sine">;
def Graph_AcosOp : Graph_UnaryPointwise<"acos", "inverse cosine">;
def Graph_AtanOp : Graph_UnaryPointwise<"atan", "inverse tangent">;
def Graph_SinhOp : Graph_UnaryPointwise<"sinh", "hyperbolic sine">;
def Graph_CoshOp : Graph_UnaryPointwise<"cosh", "hyperbolic cosine">;
def Graph_TanhOp : Graph_UnaryPointwise<"tanh", "hyperbolic tangent">;
def Graph_AsinhOp : Graph_UnaryPointwise<"asinh", "inverse hyperbolic sine">;
def Graph_AcoshOp : Graph_UnaryPointwise<"acosh", "inverse hyperbolic cosine">;
def Graph_AtanhOp : Graph_UnaryPointwise<"atanh", "inverse hyperbolic tangent">;
def Graph_ErfOp : Graph_UnaryPointwise<"erf", "error function">;

// --- Activations: floats only ---------------------------------------------------------

def Graph_SigmoidOp : Graph_UnaryPointwise<"sigmoid", "1 / (1 + e^-x)">;
def Graph_SiluOp : Graph_UnaryPointwise<"silu", "x * sigmoid(x)">;
def Graph_SoftplusOp : Graph_UnaryPointwise<"softplus", "log(1 + e^x)">;
def Graph_GeluOp : Graph_UnaryPointwise<"gelu",
    "x * Phi(x) by erf: x/2 (1 + erf(x / sqrt 2))">;
def Graph_GeluTanhOp : Graph_UnaryPointwise<"gelu_tanh",
    "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))">;
def Graph_HardSwishOp : Graph_UnaryPointwise<"hard_swish",
    "x * max(0, min(1, x/6 + 1/2))">;
def Graph_HardSigmoidOp : Graph_UnaryPointwise<"hard_sigmoid",
    "max(0, min(1, alpha x + beta))"> {
  let arguments = (ins AnyRankedTensor:$x, F64Attr:$alpha, F64Attr:$beta);
}
def Graph_LeakyReluOp : Graph_UnaryPointwise<"leaky_relu",
    "x < 0 ? alpha x : x"> {
  let arguments = (ins AnyRankedTensor:$x, F64Attr:$alpha);
}
def Graph_EluOp : Graph_UnaryPointwise<"elu", "x < 0 ? alpha (e^x - 1) : x"> {
  let arguments = (ins AnyRankedTensor:$x, F64Attr:$alpha);
}

#endif // TCC_GRAPH_POINTWISE
