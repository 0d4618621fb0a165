#include "frontends/Emitter.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace tcc {

Value Emitter::fail(const llvm::Twine &text) {
  if (!failed)
    message = text.str();
  failed = true;
  return nullptr;
}

Value Emitter::unsupported(const llvm::Twine &what) {
  if (!failed)
    unsupportedFeature = true;
  return fail(what + " is not supported");
}

Value Emitter::failAs(const Emitter &other) {
  if (!failed)
    unsupportedFeature = other.unsupportedFeature;
  return fail(other.message);
}

bool Emitter::checkSize(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return true;
  graph::Extents extents = graph::getExtents(tensor);
  if (sizes.getMaxElements(extents) > kMaxElements) {
    if (llvm::any_of(extents, [&](AffineExpr extent) {
          return graph::isComputed(extent, sizes.getSymbols());
        }))
      unsupported("a tensor of more than 2^40 elements, which the bounds of " +
                  printExtents(extents) +
                  " (--bound NAME=N makes one smaller) allow,");
    else
      fail("a tensor of this node would have more than 2^40 elements");
    return false;
  }
  return llvm::all_of(
      extents, [&](AffineExpr extent) { return checkNonNegative(extent); });
}

bool Emitter::checkNonNegative(AffineExpr size) {
  std::optional<std::string> where = sizes.findNegative(size);
  if (where)
    fail("needs " + sizes.print(size) + " >= 0, which does not hold for " +
         *where);
  return !where;
}

std::string Emitter::printExtents(ArrayRef<AffineExpr> extents) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      extents, stream,
      [&](AffineExpr extent) { stream << sizes.print(extent); }, "x");
  return "[" + text + "]";
}

std::string Emitter::printShape(Value value) {
  return printExtents(graph::getExtents(value));
}

LogicalResult Emitter::inferTypes(OperationState &state) {
  auto info = state.name.getRegisteredInfo();
  auto *inference = info ? info->getInterface<InferTypeOpInterface>() : nullptr;
  if (!inference)
    return success(); // no results, or an internal error that verify reports
  DictionaryAttr attributes = state.attributes.getDictionary(getContext());
  // A properties struct is an array of attributes; zeros are absent ones.
  size_t words = (info->getOpPropertyByteSize() + 7) / 8;
  std::vector<uint64_t> storage(words + 1, 0);
  OpaqueProperties properties(words ? storage.data() : nullptr);
  auto emitError = [&] { return mlir::emitError(loc); };
  if (words) {
    info->initOpProperties(properties, nullptr);
    if (llvm::failed(info->setOpPropertiesFromAttribute(state.name, properties,
                                                        attributes, emitError)))
      return failure();
  }
  SmallVector<Type> types;
  LogicalResult inferred = inference->inferReturnTypes(
      getContext(), loc, state.operands, attributes, properties, {}, types);
  if (words)
    info->destroyOpProperties(properties);
  state.addTypes(types);
  return inferred;
}

Operation *Emitter::createOp(StringRef name, ValueRange operands,
                             Attributes attributes, TypeRange types,
                             unsigned regionCount) {
  if (failed || llvm::any_of(operands, [](Value v) { return !v; })) {
    fail("an operand is missing");
    return nullptr;
  }
  std::string diagnostics;
  ScopedDiagnosticHandler handler(getContext(), [&](Diagnostic &diagnostic) {
    diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  OperationState state(loc, name);
  state.addOperands(operands);
  state.addAttributes(attributes);
  state.addTypes(types);
  for (unsigned i = 0; i < regionCount; ++i)
    state.addRegion();
  if (types.empty() && llvm::failed(inferTypes(state))) {
    fail(diagnostics.empty() ? "operands do not fit together" : diagnostics);
    return nullptr;
  }
  for (Type type : state.types)
    if (!checkSize(type))
      return nullptr;
  Operation *op = builder.create(state);
  if (regionCount == 0 && !check(op))
    return nullptr;
  return op;
}

bool Emitter::check(Operation *op) {
  std::string diagnostics;
  ScopedDiagnosticHandler handler(getContext(), [&](Diagnostic &diagnostic) {
    diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  // Not mlir::verify: it asks for dominance, which regions have once an op
  // holds them.
  bool isValid = succeeded(op->getName().verifyInvariants(op)) &&
                 succeeded(op->getName().verifyRegionInvariants(op));
  auto conditions = dyn_cast<graph::ShapeConditionOpInterface>(op);
  if (isValid && (!conditions || llvm::all_of(conditions.getNonNegativeSizes(),
                                              [&](AffineExpr size) {
                                                return checkNonNegative(size);
                                              })))
    return true;
  fail(diagnostics);
  op->erase();
  return false;
}

// --- Attributes --------------------------------------------------------------

NamedAttribute Emitter::attr(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
}
NamedAttribute Emitter::attr(StringRef name, double value) {
  return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
}
NamedAttribute Emitter::attr(StringRef name, ArrayRef<int64_t> values) {
  return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values));
}
NamedAttribute Emitter::attr(StringRef name, Attribute value) {
  return builder.getNamedAttr(name, value);
}
NamedAttribute Emitter::flag(StringRef name) {
  return builder.getNamedAttr(name, builder.getUnitAttr());
}

// --- Pointwise ---------------------------------------------------------------

Value Emitter::add(Value a, Value b) { return pointwise<graph::AddOp>({a, b}); }
Value Emitter::sub(Value a, Value b) { return pointwise<graph::SubOp>({a, b}); }
Value Emitter::mul(Value a, Value b) { return pointwise<graph::MulOp>({a, b}); }
Value Emitter::div(Value a, Value b) { return pointwise<graph::DivOp>({a, b}); }
Value Emitter::max(Value a, Value b) { return pointwise<graph::MaxOp>({a, b}); }
Value Emitter::min(Value a, Value b) { return pointwise<graph::MinOp>({a, b}); }

Value Emitter::compare(graph::CompareKind kind, Value a, Value b) {
  auto kindAttr = graph::CompareKindAttr::get(getContext(), kind);
  return pointwise<graph::CompareOp>({a, b}, {attr("kind", kindAttr)});
}

Value Emitter::select(Value condition, Value a, Value b) {
  return pointwise<graph::SelectOp>({condition, a, b});
}

Value Emitter::cast(Value x, Type type) {
  if (!x || !type) // the type of a null value
    return nullptr;
  if (elementType(x) == type)
    return x;
  auto tensor = cast_if_present<RankedTensorType>(x.getType());
  return create<graph::CastOp>(x, {}, graph::withElementType(tensor, type));
}

// --- Constants ---------------------------------------------------------------

static APFloat convertToFloat(double value, FloatType type) {
  APFloat result(value);
  bool losesInfo;
  result.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return result;
}

static Attribute makeScalarAttr(double value, Type type) {
  if (auto floatType = dyn_cast<FloatType>(type))
    return FloatAttr::get(type, convertToFloat(value, floatType));
  unsigned width = type.getIntOrFloatBitWidth();
  // The conversion of what no integer holds is undefined.
  constexpr double kEnd = 0x1p63;
  int64_t integer = value >= kEnd    ? INT64_MAX
                    : value >= -kEnd ? static_cast<int64_t>(value)
                                     : INT64_MIN; // NaN too
  return IntegerAttr::get(type, APInt(64, integer).sextOrTrunc(width));
}

Value Emitter::constant(double value, Type type) {
  auto tensor = RankedTensorType::get({}, type);
  auto dense = DenseElementsAttr::get(tensor, makeScalarAttr(value, type));
  return create<graph::ConstantOp>({}, {attr("value", dense)}, tensor);
}

Value Emitter::constant(ArrayRef<int64_t> values) {
  auto tensor =
      RankedTensorType::get({int64_t(values.size())}, builder.getI64Type());
  auto dense = DenseElementsAttr::get(tensor, values);
  return create<graph::ConstantOp>({}, {attr("value", dense)}, tensor);
}

Value Emitter::constantLike(double value, Value like) {
  return like ? constant(value, elementType(like)) : nullptr;
}

Value Emitter::size(AffineExpr expression) {
  AffineMap map = graph::makeSizeMap({expression}, getContext());
  return create<graph::SizeOp>({},
                               {attr("expression", AffineMapAttr::get(map))});
}

Value Emitter::content(ArrayRef<AffineExpr> elements, RankedTensorType type) {
  SmallVector<Attribute> known;
  for (AffineExpr element : elements)
    if (auto value = graph::getConstant(element))
      known.push_back(
          isa<FloatType>(type.getElementType())
              ? makeScalarAttr(*value, type.getElementType())
              : IntegerAttr::get(
                    type.getElementType(),
                    APInt(64, *value)
                        .sextOrTrunc(type.getElementTypeBitWidth())));
  if (known.size() == elements.size() && type.hasStaticShape()) {
    auto dense = DenseElementsAttr::get(type, known);
    return create<graph::ConstantOp>({}, {attr("value", dense)}, type);
  }
  SmallVector<Value> parts;
  for (AffineExpr element : elements)
    parts.push_back(unsqueeze(cast(size(element), type.getElementType()), {0}));
  Value flat = parts.size() == 1 ? parts[0] : concat(parts, 0);
  return reshape(flat, graph::getExtents(type));
}

// --- Reduction and contraction -----------------------------------------------

Value Emitter::reduce(graph::ReduceKind kind, Value x, ArrayRef<int64_t> axes,
                      bool keepAxes) {
  if (!x || axes.empty())
    return x;
  SmallVector<int64_t> sorted(axes);
  llvm::sort(sorted);
  auto kindAttr = graph::ReduceKindAttr::get(getContext(), kind);
  Value result = create<graph::ReduceOp>(
      x, {attr("kind", kindAttr), attr("axes", sorted)});
  return keepAxes ? unsqueeze(result, sorted) : result;
}

Value Emitter::countLike(ArrayRef<AffineExpr> extents, Value like) {
  Size count = sizes.product(extents);
  if (!count)
    return fail("the number of elements is too large");
  if (auto known = graph::getConstant(*count))
    return constantLike(double(*known), like);
  return like ? cast(size(*count), elementType(like)) : nullptr;
}

Value Emitter::matmul(Value lhs, Value rhs, bool transposeLhs,
                      bool transposeRhs, Type type) {
  if (!lhs || !rhs)
    return nullptr;
  graph::Extents a = extents(lhs), b = extents(rhs);
  if (a.size() < 2 || b.size() < 2)
    return fail("a matrix product needs operands of rank 2 or more");
  SmallVector<AffineExpr, 2> tail = {a[a.size() - (transposeLhs ? 1 : 2)],
                                     b[b.size() - (transposeRhs ? 2 : 1)]};
  AffineExpr columns = a[a.size() - (transposeLhs ? 2 : 1)];
  AffineExpr rows = b[b.size() - (transposeRhs ? 1 : 2)];
  auto batch = graph::broadcastExtents(ArrayRef(a).drop_back(2),
                                       ArrayRef(b).drop_back(2));
  if (!batch || !graph::isEqual(columns, rows))
    return fail("shapes " + printShape(lhs) + " and " + printShape(rhs) +
                " do not fit a matrix product");
  batch->append(tail.begin(), tail.end());
  SmallVector<NamedAttribute> attributes;
  if (transposeLhs)
    attributes.push_back(flag("transpose_lhs"));
  if (transposeRhs)
    attributes.push_back(flag("transpose_rhs"));
  return create<graph::MatmulOp>(
      {lhs, rhs}, attributes,
      graph::makeTensorType(*batch, type ? type : elementType(lhs)));
}

} // namespace tcc
