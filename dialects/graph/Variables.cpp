#include "dialects/graph/Variables.h"

#include "runtime/base/Alignment.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tcc::graph {

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
    bucket.offsets.push_back(alignTensor(end));
    end = bucket.offsets.back() + countBytes(variable.getType());
  }
  bucket.bytes = end;
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
