#include "dialects/graph/GraphDialect.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/ParseName.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/graph/GraphDialect.cpp.inc"
#include "dialects/graph/GraphEnums.cpp.inc"
#include "dialects/graph/GraphInterfaces.cpp.inc"

static FailureOr<tcc::format::VariableKind>
parseVariableKind(AsmParser &parser) {
  return tcc::graph::parseName(parser,
                               ArrayRef(tcc::format::EnumValuesVariableKind()));
}

static FailureOr<tcc::format::MetricRule> parseMetricRule(AsmParser &parser) {
  return tcc::graph::parseName(parser,
                               ArrayRef(tcc::format::EnumValuesMetricRule()));
}

static FailureOr<std::optional<tcc::format::StepField>>
parseStepField(AsmParser &parser) {
  auto field = tcc::graph::parseName(
      parser, ArrayRef(tcc::format::EnumValuesStepField()));
  if (failed(field))
    return failure();
  return std::optional(*field);
}

#define GET_ATTRDEF_CLASSES
#include "dialects/graph/GraphAttributes.cpp.inc"

namespace tcc::graph {

/// `<"name", 1 to 8 by 1 computed within <limit>>`
Attribute SymbolAttr::parse(AsmParser &parser, Type) {
  StringAttr name;
  int64_t min = 0, max = 0, divisor = 1;
  if (parser.parseLess() || parser.parseAttribute(name) ||
      parser.parseComma() || parser.parseInteger(min) ||
      parser.parseKeyword("to") || parser.parseInteger(max) ||
      parser.parseKeyword("by") || parser.parseInteger(divisor))
    return {};
  bool isComputed = succeeded(parser.parseOptionalKeyword("computed"));
  LimitAttr limit;
  if (succeeded(parser.parseOptionalKeyword("within"))) {
    limit = cast_if_present<LimitAttr>(LimitAttr::parse(parser, {}));
    if (!limit)
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), name, min, max, divisor, isComputed, limit);
}

void SymbolAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName() << ", " << getMin() << " to " << getMax()
          << " by " << getDivisor() << (getIsComputed() ? " computed" : "");
  if (getLimit()) {
    printer << " within ";
    getLimit().print(printer);
  }
  printer << '>';
}

void GraphDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/graph/GraphAttributes.cpp.inc"
      >();
  addStructureOps();
  addPointwiseOps();
  addReductionOps();
  addContractionOps();
  addConvolutionOps();
  addNormalizationOps();
  addAttentionOps();
  addMovementOps();
  addIndexingOps();
  addRandomOps();
  addControlOps();
  addCollectiveOps();
  addCustomOps();
}

Operation *GraphDialect::materializeConstant(OpBuilder &builder,
                                             Attribute value, Type type,
                                             Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return builder.create<ConstantOp>(loc, type, elements);
}

} // namespace tcc::graph
