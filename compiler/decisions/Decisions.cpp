#include "compiler/decisions/Decisions.h"

#include "dialects/graph/NodeNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Threading.h"
#include <deque>

using namespace mlir;

namespace tcc {

static constexpr llvm::StringLiteral kDecisionsAttr = "graph.decisions";
static constexpr llvm::StringLiteral kUnrecordedAttr = "graph.unrecorded";

static Attribute toAttribute(const Decision &decision, Builder &builder) {
  NamedAttrList numbers;
  for (const auto &[name, value] : decision.numbers)
    numbers.set(name, builder.getF64FloatAttr(value));
  NamedAttrList fields;
  fields.set("pass", builder.getStringAttr(decision.pass));
  fields.set("node", builder.getStringAttr(decision.node));
  fields.set("decision", builder.getStringAttr(decision.decision));
  fields.set("reason", builder.getStringAttr(decision.reason));
  if (!decision.entry.empty())
    fields.set("entry", builder.getStringAttr(decision.entry));
  if (!numbers.empty())
    fields.set("numbers", numbers.getDictionary(builder.getContext()));
  return fields.getDictionary(builder.getContext());
}

static std::string getString(DictionaryAttr fields, StringRef name) {
  auto string = fields.getAs<StringAttr>(name);
  return string ? string.str() : std::string();
}

static Decision fromAttribute(DictionaryAttr fields) {
  Decision decision{getString(fields, "pass"),
                    getString(fields, "node"),
                    getString(fields, "decision"),
                    getString(fields, "reason"),
                    {},
                    getString(fields, "entry")};
  if (auto numbers = fields.getAs<DictionaryAttr>("numbers"))
    for (NamedAttribute number : numbers)
      if (auto value = dyn_cast<FloatAttr>(number.getValue()))
        decision.numbers.emplace_back(number.getName().str(),
                                      value.getValueAsDouble());
  return decision;
}

void stopRecording(ModuleOp module) {
  module->setAttr(kUnrecordedAttr, UnitAttr::get(module.getContext()));
}

DecisionLog::~DecisionLog() {
  if (decisions.empty() || module->hasAttr(kUnrecordedAttr))
    return;
  Builder builder(module.getContext());
  SmallVector<Attribute> attributes;
  if (auto previous = module->getAttrOfType<ArrayAttr>(kDecisionsAttr))
    llvm::append_range(attributes, previous);
  for (const Decision &decision : decisions)
    attributes.push_back(toAttribute(decision, builder));
  module->setAttr(kDecisionsAttr, builder.getArrayAttr(attributes));
}

void DecisionLog::add(Operation *op, StringRef decision, StringRef reason,
                      ArrayRef<std::pair<StringRef, double>> numbers,
                      StringRef entry) {
  Decision &row = decisions.emplace_back(Decision{
      pass, getNodeName(op), decision.str(), reason.str(), {}, entry.str()});
  for (const auto &[name, value] : numbers)
    row.numbers.emplace_back(name.str(), value);
}

LogicalResult
forEachFunction(ModuleOp module, StringRef pass,
                function_ref<LogicalResult(func::FuncOp, DecisionLog &)> work) {
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  std::deque<DecisionLog> logs; // each writes its decisions when it goes
  for (size_t i = 0; i < functions.size(); ++i)
    logs.emplace_back(module, pass);
  LogicalResult result = failableParallelForEach(
      module.getContext(), llvm::seq(functions.size()),
      [&](size_t i) { return work(functions[i], logs[i]); });
  while (!logs.empty())
    logs.pop_front();
  return result;
}

std::vector<Decision> getDecisions(ModuleOp module) {
  std::vector<Decision> decisions;
  if (auto entries = module->getAttrOfType<ArrayAttr>(kDecisionsAttr))
    for (Attribute entry : entries)
      if (auto fields = dyn_cast<DictionaryAttr>(entry))
        decisions.push_back(fromAttribute(fields));
  return decisions;
}

} // namespace tcc
