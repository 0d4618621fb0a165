//===- Control.cpp - Branches at run time ---------------------------------===//

#include "frontends/aten/Tracer.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tcc::aten {

using Kind = Item::Kind;

/// What the code of one branch leaves.
struct Tracer::Branch {
  Region *region;
  std::vector<Item> results;
  /// Bases that it wrote to, with their values at its end.
  llvm::MapVector<Variable *, Value> written;
};

/// Runs the code with its ops in the branch's region, and takes back what it
/// did to variables from outside.
bool Tracer::runBranch(const Request &request, Branch &branch,
                       llvm::function_ref<std::optional<Item>()> body) {
  std::vector<Variable> before(variables.begin(), variables.end());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&branch.region->emplaceBlock());
  std::optional<Item> results = body();
  auto loc = NameLoc::get(builder.getStringAttr(request.node));
  Emitter emitter(builder, loc, sizes);
  if (results)
    branch.results = *results->items;
  for (Item &item : branch.results)
    if (item.is(Kind::tensor)) {
      Value value = materialize(emitter, *item.tensor);
      item = Item::of(makeVariable(value)); // as it is at the branch's end
    }
  bool isKnown = true;
  for (size_t i = 0; i < before.size(); ++i) {
    Variable &variable = variables[i];
    isKnown &= variable.isUnknown == before[i].isUnknown;
    // Stored tensors are values of the function's start: they may stay.
    if (!variable.base && variable.version != before[i].version)
      branch.written[&variable] = variable.value;
    bool isRead = variable.stored && variable.version == 0;
    if (!isRead)
      variable = before[i];
  }
  if (!isKnown)
    report(request, ProblemClass::unsupported,
           "a branch at run time that writes to what may be a copy or a view "
           "is not supported");
  return results.has_value() && isKnown && !emitter.hasFailed();
}

/// Ends a branch with its results and the values of what either wrote to.
SmallVector<Value> Tracer::yield(Emitter &emitter, Branch &branch,
                                 ArrayRef<Variable *> written) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&branch.region->front());
  SmallVector<Value> values;
  for (Item &item : branch.results) {
    if (!item.is(Kind::tensor))
      item = Item::of(makeNumber(item));
    values.push_back(materialize(emitter, *item.tensor));
  }
  for (Variable *variable : written) {
    auto own = branch.written.find(variable);
    values.push_back(own != branch.written.end()
                         ? own->second
                         : materialize(emitter, *variable));
  }
  if (!llvm::is_contained(values, Value()))
    builder.create<graph::YieldOp>(emitter.getLoc(), values);
  return values;
}

/// True for tensors of one type, and for numbers of one kind.
static bool fits(const Item &a, const Item &b) {
  if (a.is(Kind::tensor) && b.is(Kind::tensor)) {
    Value x = a.tensor->value, y = b.tensor->value;
    return x && y && x.getType() == y.getType();
  }
  return a.isNumber() && a.kind == b.kind;
}

std::optional<Item>
Tracer::branch(const Request &request, Variable &condition,
               llvm::function_ref<std::optional<Item>(bool isThen)> body) {
  auto loc = NameLoc::get(builder.getStringAttr(request.node));
  Emitter emitter(builder, loc, sizes);
  Value predicate =
      emitter.reshape(materialize(emitter, condition), ArrayRef<AffineExpr>());
  if (predicate && !emitter.elementType(predicate).isInteger(1))
    predicate = emitter.compare(graph::CompareKind::ne, predicate,
                                emitter.constantLike(0, predicate));
  OperationState state(loc, graph::IfOp::getOperationName());
  Branch branches[2];
  for (Branch &branch : branches)
    branch.region = state.addRegion();
  bool isWhole = predicate != nullptr;
  for (int i = 0; i < 2 && isWhole; ++i)
    isWhole = runBranch(request, branches[i], [&] { return body(i == 0); });
  auto refuse = [&](StringRef reason) {
    known.forget(); // the regions go with `state`
    if (reason.empty() && !emitter.hasFailed())
      return std::nullopt; // reported already
    report(request, ProblemClass::unsupported,
           emitter.hasFailed() ? emitter.getMessage() : reason.str());
    return std::nullopt;
  };
  if (!isWhole)
    return refuse("");
  std::vector<Item> &first = branches[0].results, &second = branches[1].results;
  if (first.size() != second.size())
    return refuse("branches with different numbers of results are not "
                  "supported");
  llvm::SetVector<Variable *> written;
  for (Branch &branch : branches)
    for (auto &[variable, value] : branch.written)
      written.insert(variable);
  // Results that do not fit together are none.
  SmallVector<bool> isMerged;
  for (size_t i = 0; i < first.size(); ++i)
    isMerged.push_back(fits(first[i], second[i]));
  for (size_t i = first.size(); i-- > 0;)
    if (!isMerged[i]) {
      first.erase(first.begin() + i);
      second.erase(second.begin() + i);
    }
  state.addOperands(predicate);
  SmallVector<Value> values[2];
  for (int i = 0; i < 2; ++i) {
    values[i] = yield(emitter, branches[i], written.getArrayRef());
    if (llvm::is_contained(values[i], Value()))
      return refuse("a branch gives a value that is not known");
  }
  if (ValueRange(values[0]).getTypes() != ValueRange(values[1]).getTypes())
    return refuse("branches at run time that give different types or shapes "
                  "are not supported");
  state.addTypes(ValueRange(values[0]).getTypes());
  Operation *op = builder.create(state);
  if (!emitter.check(op))
    return refuse("");
  std::vector<Item> results;
  size_t next = 0;
  for (bool isResult : isMerged)
    results.push_back(isResult ? Item::of(makeVariable(op->getResult(next++)))
                               : Item());
  for (auto [i, variable] : llvm::enumerate(written))
    write(emitter, *variable, op->getResult(first.size() + i));
  return Item::ofItems(Kind::list, std::move(results));
}

// --- Loops -------------------------------------------------------------------

/// Numbers become tensors that a loop can carry.
static Value lift(Tracer &tracer, Emitter &emitter, const Item &item) {
  if (item.is(Kind::tensor))
    return tracer.materialize(emitter, *item.tensor);
  if (!item.isNumber())
    return emitter.unsupported("a loop at run time that changes " +
                               getKindName(item));
  return tracer.materialize(emitter, *tracer.makeNumber(item));
}

std::optional<Item>
Tracer::loop(const Request &request, const Item &condition,
             ArrayRef<Item> carried,
             llvm::function_ref<std::optional<Item>(ArrayRef<Item>)> body) {
  auto loc = NameLoc::get(builder.getStringAttr(request.node));
  Emitter emitter(builder, loc, sizes);
  SmallVector<Value> inits;
  for (const Item &item : carried)
    inits.push_back(lift(*this, emitter, item));
  Value goesOn = lift(*this, emitter, condition);
  std::vector<Variable> before(variables.begin(), variables.end());
  bool isReported = false;
  auto emitBody = [&](Value, ValueRange values) -> SmallVector<Value> {
    known.forget(); // an earlier body is erased
    std::vector<Item> items;
    for (Value value : values)
      items.push_back(Item::of(makeVariable(value)));
    auto results = body(items);
    isReported = !results.has_value();
    SmallVector<Value> yielded;
    for (size_t i = 0; results && i < results->items->size(); ++i)
      yielded.push_back(lift(*this, emitter, (*results->items)[i]));
    for (size_t i = 0; i < before.size(); ++i) {
      if (!variables[i].base && variables[i].version != before[i].version)
        emitter.unsupported("a loop at run time that writes to a tensor from "
                            "outside");
      if (variables[i].isUnknown != before[i].isUnknown)
        emitter.unsupported("a loop at run time that writes to what may be a "
                            "view of a tensor from outside");
      if (!variables[i].stored || variables[i].version != 0)
        variables[i] = before[i];
    }
    return yielded;
  };
  SmallVector<Value> results =
      goesOn ? emitter.loop({.condition = goesOn}, inits, emitBody)
             : SmallVector<Value>();
  if (results.size() != inits.size() || inits.empty()) {
    known.forget();
    if (!isReported)
      report(request, ProblemClass::unsupported,
             emitter.hasFailed() ? emitter.getMessage()
                                 : "a loop without results is not supported");
    return std::nullopt;
  }
  std::vector<Item> items;
  for (Value value : results)
    items.push_back(Item::of(makeVariable(value)));
  return Item::ofItems(Kind::list, std::move(items));
}

} // namespace tcc::aten
