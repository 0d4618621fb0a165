#include "dialects/graph/Variables.h"

#include "runtime/base/Alignment.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tcc::graph {

int64_t getRanks(ModuleOp module) {
  auto ranks = module->getAttrOfType<IntegerAttr>(GraphDialect::kRanksAttr);
  return ranks ? ranks.getInt() : 0;
}

SmallVector<VariableAttr> getVariables(ModuleOp module) {
  SmallVector<VariableAttr> variables;
  if (auto list =
          module->getAttrOfType<ArrayAttr>(GraphDialect::kVariablesAttr))
    llvm::append_range(variables, list.getAsRange<VariableAttr>());
  return variables;
}

size_t findVariable(ArrayRef<VariableAttr> variables, StringAttr name) {
  auto isNamed = [&](VariableAttr v) { return v.getName() == name; };
  return std::distance(variables.begin(), llvm::find_if(variables, isNamed));
}

int64_t countBytes(RankedTensorType type) {
  return type.getNumElements() *
         int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

int64_t getRoom(VariableAttr variable) {
  int64_t bytes = alignTensor(countBytes(variable.getType()));
  IntegerAttr room = variable.getRoom();
  return room ? std::max(bytes, room.getInt()) : bytes;
}

std::optional<Bucket> findBucket(ArrayRef<VariableAttr> variables,
                                 size_t index) {
  IntegerAttr number = variables[index].getBucket();
  if (!number)
    return std::nullopt;
  auto isOther = [&](VariableAttr v) { return v.getBucket() != number; };
  Bucket bucket{index, {}, 0};
  while (bucket.first > 0 && !isOther(variables[bucket.first - 1]))
    --bucket.first;
  int64_t end = 0;
  for (VariableAttr variable :
       variables.drop_front(bucket.first).take_until(isOther)) {
    bucket.offsets.push_back(end);
    bucket.bytes = end + (variable.getRoom() ? getRoom(variable)
                                             : countBytes(variable.getType()));
    end += getRoom(variable);
  }
  return bucket;
}

StringAttr getArgVariable(FunctionOpInterface function, unsigned index) {
  return function.getArgAttrOfType<StringAttr>(index,
                                               GraphDialect::kVariableAttr);
}

StringAttr getResultVariable(FunctionOpInterface function, unsigned index) {
  return function.getResultAttrOfType<StringAttr>(index,
                                                  GraphDialect::kVariableAttr);
}

/// Checks that `variable` lies in the tensor that it is a slice of.
static bool isInside(VariableAttr variable) {
  SliceAttr slice = variable.getSlice();
  if (!slice)
    return true;
  ArrayRef<int64_t> own = variable.getType().getShape();
  ArrayRef<int64_t> all = slice.getShape(), offset = slice.getOffset();
  if (all.size() != own.size() || offset.size() != own.size())
    return false;
  for (auto [extent, begin, whole] : llvm::zip(own, offset, all))
    if (begin < 0 || begin > whole - extent)
      return false;
  return true;
}

/// Checks that the pieces of `variable` follow each other in what `ranks` have
/// of it.
static bool holdsPieces(VariableAttr variable, int64_t ranks) {
  RankedTensorType type = variable.getType();
  if (!variable.getPieces())
    return true;
  if (type.getRank() != 1 || ranks < 1)
    return false;
  int64_t end = 0;
  for (Attribute attr : variable.getPieces()) {
    auto piece = dyn_cast<PieceAttr>(attr);
    if (!piece || !piece.getType().hasStaticShape() || piece.getBegin() < end ||
        piece.getType().getElementType() != type.getElementType())
      return false;
    end = piece.getBegin() + piece.getType().getNumElements();
  }
  return end <= ranks * type.getNumElements();
}

/// Checks that `variable` has its bytes, in multiples of the alignment.
static bool hasRoom(VariableAttr variable) {
  IntegerAttr room = variable.getRoom();
  return !room || (room.getInt() >= countBytes(variable.getType()) &&
                   room.getInt() % kTensorAlignment == 0);
}

/// Checks the list of a module.
static LogicalResult verifyVariables(Operation *op, Attribute attr) {
  auto list = dyn_cast<ArrayAttr>(attr);
  if (!isa<ModuleOp>(op) || !list ||
      !llvm::all_of(list, llvm::IsaPred<VariableAttr>))
    return op->emitOpError("expected ")
           << GraphDialect::kVariablesAttr << " to be a module's array of "
           << VariableAttr::getMnemonic() << " attributes";
  llvm::DenseSet<StringAttr> names;
  llvm::DenseSet<Attribute> buckets;
  auto ranks = op->getAttrOfType<IntegerAttr>(GraphDialect::kRanksAttr);
  IntegerAttr bucket;
  for (auto variable : list.getAsRange<VariableAttr>()) {
    if (!names.insert(variable.getName()).second)
      return op->emitOpError("has two variables ") << variable.getName();
    if (!variable.getType().hasStaticShape())
      return op->emitOpError("variable ")
             << variable.getName() << " has no static shape";
    if (!isInside(variable))
      return op->emitOpError("variable ")
             << variable.getName() << " is no part of what it is a slice of";
    if (!hasRoom(variable))
      return op->emitOpError("variable ")
             << variable.getName() << " has no room for itself, or an odd one";
    if (!holdsPieces(variable, ranks ? ranks.getInt() : 0))
      return op->emitOpError("variable ")
             << variable.getName() << " does not hold its pieces";
    if (variable.getBucket() && variable.getBucket() != bucket &&
        !buckets.insert(variable.getBucket()).second)
      return op->emitOpError("variable ")
             << variable.getName() << " does not follow those of its bucket";
    bucket = variable.getBucket();
    SettingAttr setting = variable.getSetting();
    if (setting && setting.getInitial().getType() != variable.getType())
      return op->emitOpError("setting ")
             << setting.getKey() << " begins as "
             << setting.getInitial().getType() << ", its variable is "
             << variable.getType();
  }
  return success();
}

/// Checks that `type` is that of the variable which `attr` names.
static LogicalResult verifyUse(Operation *op, Attribute attr, Type type) {
  auto module = op->getParentOfType<ModuleOp>();
  auto name = dyn_cast<StringAttr>(attr);
  if (!module || !name)
    return op->emitOpError("expected the name of a variable, found ") << attr;
  SmallVector<VariableAttr> variables = getVariables(module);
  size_t index = findVariable(variables, name);
  if (index == variables.size())
    return op->emitOpError("the module has no variable ") << name;
  if (variables[index].getType() != type)
    return op->emitOpError("variable ")
           << name << " is " << variables[index].getType() << ", not " << type;
  return success();
}

LogicalResult GraphDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attr) {
  if (attr.getName() == kTargetAttr && !isa<StringAttr>(attr.getValue()))
    return op->emitOpError("expected a name for ") << kTargetAttr;
  if (attr.getName() == kSymbolsAttr)
    return verifySizes(op, attr.getValue());
  return attr.getName() == kVariablesAttr ? verifyVariables(op, attr.getValue())
                                          : success();
}

LogicalResult GraphDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned index,
                                                     NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function || attr.getName() != kVariableAttr)
    return success();
  return verifyUse(op, attr.getValue(), function.getArgumentTypes()[index]);
}

LogicalResult GraphDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                        unsigned index,
                                                        NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function || attr.getName() != kVariableAttr)
    return success();
  return verifyUse(op, attr.getValue(), function.getResultTypes()[index]);
}

} // namespace tcc::graph
