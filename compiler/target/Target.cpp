#include "compiler/target/Target.h"

#include "compiler/target/Passes.h"
#include "runtime/package/Names.h"

using namespace mlir;

namespace tcc {

#define GEN_PASS_DEF_SETTARGETPASS
#include "compiler/target/Passes.h.inc"

namespace {

struct SetTargetPass : impl::SetTargetPassBase<SetTargetPass> {
  using SetTargetPassBase::SetTargetPassBase;
  void runOnOperation() override;
};

} // namespace

static SmallVector<const Target *> &getRegistry() {
  static SmallVector<const Target *> targets;
  return targets;
}

void registerTarget(const Target &target) {
  assert(!findTarget(target.getName()) && "the name is taken");
  assert(target.getCapabilities().accessBytes <= kMaxAccessBytes);
  getRegistry().push_back(&target);
}

ArrayRef<const Target *> getTargets() { return getRegistry(); }

const Target *findTarget(StringRef name) {
  auto hasName = [&](const Target *target) {
    return target->getName() == name;
  };
  auto found = llvm::find_if(getTargets(), hasName);
  return found == getTargets().end() ? nullptr : *found;
}

const Target &getHostTarget() {
  auto isHost = [](const Target *target) { return !target->hasDevice(); };
  auto found = llvm::find_if(getTargets(), isHost);
  assert(found != getTargets().end() && "no target is registered");
  return **found;
}

std::string listTargets(llvm::function_ref<bool(const Target &)> hasIt) {
  std::string names;
  for (const Target *target : getTargets())
    if (hasIt(*target))
      names += (names.empty() ? "" : " or ") + target->getName().str();
  return names;
}

/// The target of that name; the host without a name.
static const Target &resolve(StringAttr name) {
  if (!name)
    return getHostTarget();
  const Target *target = findTarget(name);
  if (!target)
    llvm::report_fatal_error("no target is named '" + name.getValue() + "'");
  return *target;
}

const Target &getTarget(ModuleOp module) {
  return resolve(
      module->getAttrOfType<StringAttr>(graph::GraphDialect::kTargetAttr));
}

/// The name that a module or a kernel has of `target`: none of the host.
static StringAttr getNameAttr(const Target &target, MLIRContext *context) {
  return &target == &getHostTarget()
             ? StringAttr()
             : StringAttr::get(context, target.getName());
}

void setTarget(ModuleOp module, const Target &target) {
  StringRef attribute = graph::GraphDialect::kTargetAttr;
  if (StringAttr name = getNameAttr(target, module.getContext()))
    module->setAttr(attribute, name);
  else
    module->removeAttr(attribute);
}

const Target &getTarget(exec::KernelOp kernel) {
  return resolve(kernel.getTargetAttr());
}

void setTarget(exec::KernelOp kernel, const Target &target) {
  kernel.setTargetAttr(getNameAttr(target, kernel.getContext()));
}

const Target &getTarget(func::FuncOp function) {
  StringRef prepare = format::nameOf(format::EntryKind::prepare);
  return function.getSymName() == prepare
             ? getHostTarget()
             : getTarget(function->getParentOfType<ModuleOp>());
}

void SetTargetPass::runOnOperation() {
  const Target *target = name.empty() ? &getHostTarget() : findTarget(name);
  if (!target) {
    getOperation().emitError("no target is named '")
        << name << "', expected " << listTargets();
    return signalPassFailure();
  }
  auto known = getOperation()->getAttrOfType<StringAttr>(
      graph::GraphDialect::kTargetAttr);
  if (known && known != target->getName()) {
    getOperation().emitError("is for the target '")
        << known.getValue() << "' already, not for '" << target->getName()
        << "'";
    return signalPassFailure();
  }
  setTarget(getOperation(), *target);
}

} // namespace tcc
