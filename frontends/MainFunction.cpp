#include "frontends/MainFunction.h"

#include "frontends/IndexRanges.h"
#include "mlir/IR/Verifier.h"
#include "runtime/package/Names.h"

using namespace mlir;

namespace tcc {

DenseElementsAttr getFixedValue(const ModelInput &input) {
  if (input.type.getNumElements() == 0)
    return DenseElementsAttr::get(input.type, ArrayRef<Attribute>());
  if (!input.type.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(
        input.type, ArrayRef(input.fixed->data(), input.fixed->size()));
  SmallVector<bool> bits;
  for (char byte : *input.fixed)
    bits.push_back(byte != 0);
  return DenseElementsAttr::get(input.type, bits);
}

MainFunction::MainFunction(OpBuilder &builder, StringRef name,
                           ArrayRef<ModelInput> inputs)
    : builder(builder) {
  auto loc = NameLoc::get(builder.getStringAttr(name));
  module = ModuleOp::create(loc);
  SmallVector<Type> types;
  for (const ModelInput &input : inputs)
    types.push_back(input.type);
  builder.setInsertionPointToStart(module->getBody());
  function =
      builder.create<func::FuncOp>(loc, format::nameOf(format::EntryKind::main),
                                   builder.getFunctionType(types, {}));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToStart(block);
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto nameAttr = builder.getStringAttr(input.name);
    function.setArgAttr(i, graph::GraphDialect::kNameAttr, nameAttr);
    block->getArgument(i).setLoc(NameLoc::get(nameAttr));
    if (input.fixed)
      function.setArgAttr(i, "graph.fixed", getFixedValue(input));
    inputNames.push_back(input.name);
  }
}

void MainFunction::setResults(ArrayRef<std::string> names,
                              ArrayRef<Value> values) {
  outputNames = names;
  builder.create<func::ReturnOp>(function.getLoc(), values);
  function.setFunctionType(builder.getFunctionType(
      function.getArgumentTypes(), ValueRange(values).getTypes()));
  for (auto [i, name] : llvm::enumerate(names))
    function.setResultAttr(i, graph::GraphDialect::kNameAttr,
                           builder.getStringAttr(name));
}

std::optional<int64_t> MainFunction::find(ArrayRef<std::string> names,
                                          const std::string &name,
                                          StringRef kind, Problems &problems) {
  auto found = llvm::find(names, name);
  if (found != names.end())
    return found - names.begin();
  problems.add(ProblemClass::usage,
               ("no " + kind + " is named '" + name + "'").str());
  return std::nullopt;
}

void MainFunction::setStates(ArrayRef<StatePair> states, Problems &problems) {
  SmallVector<Attribute> pairs;
  llvm::SmallDenseSet<int64_t> updated, kept;
  FunctionType type = function.getFunctionType();
  for (const StatePair &state : states) {
    auto input = find(inputNames, state.input, "input", problems);
    auto output = find(outputNames, state.output, "output", problems);
    if (!input || !output)
      continue;
    if (type.getInput(*input) != type.getResult(*output))
      problems.add(ProblemClass::usage,
                   "state '" + state.output + "' = '" + state.input +
                       "' joins tensors of different types");
    if (!updated.insert(*input).second)
      problems.add(ProblemClass::usage,
                   "input '" + state.input + "' is in more than one state");
    if (!kept.insert(*output).second)
      problems.add(ProblemClass::usage,
                   "output '" + state.output + "' is in more than one state");
    pairs.push_back(builder.getI64ArrayAttr({*input, *output}));
  }
  if (!pairs.empty())
    function->setAttr("graph.states", builder.getArrayAttr(pairs));
}

OwningOpRef<ModuleOp> MainFunction::take(const Sizes &sizes, Problems &problems,
                                         std::vector<std::string> &notes) {
  for (const std::string &name : sizes.getUnusedBounds())
    problems.add(ProblemClass::usage,
                 "--bound " + name +
                     ": no size that a run computes is named so");
  llvm::append_range(notes, sizes.describeBounds());
  setIndexRanges(function);
  graph::setSymbols(*module, sizes.getSymbols());
  return std::move(module);
}

} // namespace tcc
