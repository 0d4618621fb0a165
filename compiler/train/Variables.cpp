#include "compiler/train/Variables.h"

#include "dialects/graph/Phases.h"
#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

// --- VariableTable -----------------------------------------------------------

Initial makeSplat(double value) {
  return [value](OpBuilder &builder, Location loc, RankedTensorType type) {
    return TensorEmitter(builder, loc).splat(type, value);
  };
}

void VariableTable::declare(Variable variable) {
  for (PieceAttr piece : variable.pieces)
    if (!pieces.insert(piece.getName().getValue()).second ||
        places.contains(piece.getName().getValue()))
      clashes.push_back(piece.getName().str());
  if (pieces.contains(variable.name) ||
      !places.try_emplace(variable.name, variables.size()).second)
    return clashes.push_back(variable.name);
  variables.push_back(std::move(variable));
}

void VariableTable::declare(std::string name, VariableKind kind,
                            RankedTensorType type, double value,
                            std::string parameter) {
  declare({std::move(name), kind, type, makeSplat(value), value == 0,
           std::move(parameter)});
}

void VariableTable::declare(StepField field, Type elementType, double value) {
  declare({.name = format::variableOf(field),
           .kind = VariableKind::step,
           .type = RankedTensorType::get({}, elementType),
           .initial = makeSplat(value),
           .isZero = value == 0,
           .field = field});
}

const Variable &VariableTable::get(StringRef name) const {
  auto place = places.find(name);
  assert(place != places.end() && "no such variable");
  return variables[place->second];
}

static VariableAttr describe(Builder &builder, const Variable &variable) {
  IntegerAttr bucket, room;
  ArrayAttr pieces;
  StringAttr parameter;
  if (variable.bucket)
    bucket = builder.getI64IntegerAttr(*variable.bucket);
  if (variable.room)
    room = builder.getI64IntegerAttr(*variable.room);
  if (!variable.pieces.empty())
    pieces = builder.getArrayAttr(
        SmallVector<Attribute>(variable.pieces.begin(), variable.pieces.end()));
  if (!variable.parameter.empty())
    parameter = builder.getStringAttr(variable.parameter);
  return VariableAttr::get(
      builder.getContext(), builder.getStringAttr(variable.name), variable.kind,
      variable.type, parameter, variable.field, /*slice=*/SliceAttr(),
      variable.setting, bucket, room, pieces);
}

ArrayAttr VariableTable::describe() const {
  Builder builder(getContext());
  SmallVector<Attribute> all;
  for (const Variable &variable : variables)
    all.push_back(train::describe(builder, variable));
  return builder.getArrayAttr(all);
}

void VariableTable::moveToBucket(ArrayRef<std::string> names, int64_t bucket,
                                 ArrayRef<int64_t> rooms) {
  std::vector<Variable> moved;
  for (auto [i, name] : llvm::enumerate(names)) {
    moved.push_back(get(name));
    moved.back().bucket = bucket;
    if (!rooms.empty())
      moved.back().room = rooms[i];
  }
  llvm::erase_if(variables, [&](const Variable &variable) {
    return llvm::is_contained(names, variable.name);
  });
  llvm::append_range(variables, moved);
  for (auto [place, variable] : llvm::enumerate(variables))
    places[variable.name] = place;
}

// --- StepFunction ------------------------------------------------------------

StepFunction::StepFunction(ModuleOp module, format::EntryKind entry,
                           const VariableTable &table, uint16_t variant)
    : table(table), builder(module.getContext()) {
  builder.setInsertionPointToEnd(module.getBody());
  std::string name = format::nameOf(entry, variant);
  auto loc = NameLoc::get(builder.getStringAttr(name));
  function =
      builder.create<func::FuncOp>(loc, name, builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
}

Value StepFunction::addInput(RankedTensorType type, DictionaryAttr attributes) {
  function.insertArgument(function.getNumArguments(), type, attributes,
                          getLoc());
  return function.getArguments().back();
}

void StepFunction::addOutput(StringRef name, Value value) {
  outputs.push_back({name.str(), value});
}

Value StepFunction::read(StringRef name) {
  const Variable &variable = table.get(name);
  if (Value written = results.lookup(variable.name))
    return written;
  Value &argument = arguments[variable.name];
  // The function's own arguments are complete only at its end.
  if (!argument)
    argument = getBody().addArgument(variable.type,
                                     NameLoc::get(builder.getStringAttr(name)));
  return argument;
}

Value StepFunction::readAs(StringRef name, RankedTensorType type) {
  if (table.get(name).type == type)
    return read(name);
  Value &cast = casts[name];
  if (!cast)
    cast = TensorEmitter(builder, getLoc()).castTo(read(name), type);
  return cast;
}

std::optional<StringRef> StepFunction::findName(Value value) const {
  for (const auto &[name, argument] : arguments)
    if (argument == value)
      return name;
  return std::nullopt;
}

void StepFunction::write(StringRef name, Value value) {
  const Variable &variable = table.get(name);
  assert(value.getType() == variable.type && "a value of another type");
  results[variable.name] = value;
}

/// Gradients have the locations of the ops that they are of, phase included.
/// What is emitted between ops of earlier phases has none yet.
void StepFunction::endPhase(format::Phase phase) {
  bool isNew = !phaseEnd;
  for (Operation &op : getBody()) {
    if (isNew || !getPhase(op.getLoc()))
      op.walk([&](Operation *inner) {
        inner->setLoc(withPhase(inner->getLoc(), phase));
      });
    isNew |= &op == phaseEnd;
  }
  phaseEnd = getBody().empty() ? nullptr : &getBody().back();
}

void StepFunction::finish() {
  auto makeAttrs = [&](StringRef key, StringRef name) {
    return builder.getDictionaryAttr(
        builder.getNamedAttr(key, builder.getStringAttr(name)));
  };
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> resultAttrs, argumentAttrs;
  for (const Output &output : outputs) {
    values.push_back(output.value);
    resultAttrs.push_back(makeAttrs(GraphDialect::kNameAttr, output.name));
  }
  for (const auto &[name, value] : results) {
    values.push_back(value);
    resultAttrs.push_back(makeAttrs(GraphDialect::kVariableAttr, name));
  }
  function.getAllArgAttrs(argumentAttrs);
  for (const auto &[name, value] : arguments)
    argumentAttrs.push_back(makeAttrs(GraphDialect::kVariableAttr, name));
  builder.create<func::ReturnOp>(getLoc(), values);
  function.setFunctionType(builder.getFunctionType(
      getBody().getArgumentTypes(), ValueRange(values).getTypes()));
  function.setAllArgAttrs(argumentAttrs);
  function.setAllResultAttrs(resultAttrs);
}

} // namespace tcc::train
