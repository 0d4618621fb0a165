#include "compiler/codegen/cpu/ExternalCode.h"

#include "compiler/codegen/cpu/object/Library.h"
#include "compiler/codegen/region/ExternalKernel.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;
using llvm::object::ELF64LEObjectFile;
using llvm::object::ELFSymbolRef;
using llvm::object::SymbolRef;

namespace tcc::cpu {

// --- Checks ------------------------------------------------------------------

namespace {

/// Looks at one object.
class ObjectChecker {
public:
  ObjectChecker(const ELF64LEObjectFile &object, StringRef function)
      : object(object), function(function) {}

  std::vector<std::string> run();

private:
  void report(const llvm::Twine &problem) { problems.push_back(problem.str()); }
  llvm::Error checkSymbols();
  llvm::Error checkSections();
  llvm::Error checkRelocations();

  const ELF64LEObjectFile &object;
  StringRef function;
  std::vector<std::string> problems;
};

} // namespace

llvm::Error ObjectChecker::checkSymbols() {
  bool isDefined = false;
  for (const ELFSymbolRef symbol : object.symbols()) {
    auto name = symbol.getName();
    auto flags = symbol.getFlags();
    auto type = symbol.getType();
    if (!name)
      return name.takeError();
    if (!flags)
      return flags.takeError();
    if (!type)
      return type.takeError();
    if (name->empty())
      continue;
    bool isHere = !(*flags & SymbolRef::SF_Undefined);
    isDefined |= *name == function && isHere &&
                 (*flags & SymbolRef::SF_Global) &&
                 *type == SymbolRef::ST_Function;
    if (!isHere && *name != "_GLOBAL_OFFSET_TABLE_" &&
        !hasLibraryFunction(*name))
      report("needs '" + *name + "', which no package has");
    if (symbol.getELFType() == llvm::ELF::STT_TLS)
      report("has thread-local '" + *name + "'");
    if (symbol.getELFType() == llvm::ELF::STT_GNU_IFUNC)
      report("has '" + *name + "', which is chosen when it is loaded");
    if (*flags & SymbolRef::SF_Common)
      report("has state '" + *name + "': kernels keep none");
  }
  if (!isDefined)
    report("has no global function '" + function + "'");
  return llvm::Error::success();
}

llvm::Error ObjectChecker::checkSections() {
  for (const llvm::object::ELFSectionRef section : object.sections()) {
    auto name = section.getName();
    if (!name)
      return name.takeError();
    uint64_t flags = section.getFlags();
    bool isLoaded = flags & llvm::ELF::SHF_ALLOC;
    bool isWritable = isLoaded && (flags & llvm::ELF::SHF_WRITE);
    // Constants that hold addresses are written while they are linked.
    bool isConstant = name->starts_with(".data.rel.ro");
    if (name->starts_with(".init") || name->starts_with(".fini") ||
        name->starts_with(".ctors") || name->starts_with(".preinit"))
      report("has constructors or destructors, in '" + *name + "'");
    else if (isWritable && (flags & llvm::ELF::SHF_EXECINSTR))
      report("has section '" + *name + "', which is writable code");
    else if (isWritable && section.getSize() > 0 && !isConstant)
      report("has section '" + *name +
             "', which holds state: kernels keep "
             "none");
  }
  return llvm::Error::success();
}

/// Addresses of 32 bits fit only where code is at a place that is fixed.
llvm::Error ObjectChecker::checkRelocations() {
  for (const llvm::object::SectionRef section : object.sections()) {
    auto relocated = section.getRelocatedSection();
    if (!relocated)
      return relocated.takeError();
    if (*relocated == object.section_end() ||
        !(llvm::object::ELFSectionRef(**relocated).getFlags() &
          llvm::ELF::SHF_ALLOC))
      continue;
    for (const llvm::object::RelocationRef relocation : section.relocations()) {
      uint64_t type = relocation.getType();
      if (type == llvm::ELF::R_X86_64_32 || type == llvm::ELF::R_X86_64_32S ||
          type == llvm::ELF::R_X86_64_16 || type == llvm::ELF::R_X86_64_8) {
        report(llvm::formatv("is not position-independent, at {0:x} of its "
                             "code: compile it with -fPIC",
                             relocation.getOffset())
                   .str());
        return llvm::Error::success();
      }
    }
  }
  return llvm::Error::success();
}

std::vector<std::string> ObjectChecker::run() {
  const auto &header = object.getELFFile().getHeader();
  if (header.e_machine != llvm::ELF::EM_X86_64 ||
      header.e_type != llvm::ELF::ET_REL)
    return {"is no relocatable object for x86-64"};
  llvm::Error error = checkSymbols();
  if (!error)
    error = checkSections();
  if (!error)
    error = checkRelocations();
  if (error)
    report("is damaged: " + llvm::toString(std::move(error)));
  return problems;
}

std::vector<std::string> checkCode(CustomKernelAttr kernel,
                                   CustomCodeAttr code) {
  std::string error;
  if (!resolveCpu(code.getMachine(), error))
    return {"is for machine '" + code.getMachine().str() + "': " + error};
  auto object = ELF64LEObjectFile::create(getBytes(code));
  if (!object) {
    llvm::consumeError(object.takeError());
    return {"is no relocatable object for x86-64"};
  }
  return ObjectChecker(*object, kernel.getSymbol()).run();
}

// --- Objects of an image -----------------------------------------------------

/// The code for the most able machine whose features `cpu` has; null if none
/// fits.
static CustomCodeAttr selectCode(CustomKernelAttr kernel, const Cpu &cpu) {
  CustomCodeAttr selected;
  size_t most = 0;
  for (auto code : kernel.getCodes().getAsRange<CustomCodeAttr>()) {
    std::string error;
    auto machine = resolveCpu(code.getMachine(), error);
    bool fits = machine && llvm::all_of(machine->features, [&](StringRef f) {
                  return cpu.hasFeature(f);
                });
    if (!fits || (selected && machine->features.size() <= most))
      continue;
    selected = code;
    most = machine->features.size();
  }
  return selected;
}

FailureOr<std::vector<Object>>
collectExternals(ArrayRef<exec::KernelOp> kernels, const Cpu &cpu) {
  std::vector<Object> objects;
  llvm::StringSet<> names;
  for (exec::KernelOp op : kernels) {
    auto kernel = findExternal(cast<FusedOp>(op.getComputation()),
                               getHostTarget().getName());
    if (!kernel || !names.insert(getExternalName(kernel)).second)
      continue;
    CustomCodeAttr code = selectCode(kernel, cpu);
    if (!code)
      return op.emitError("'") << kernel.getSymbol().getValue()
                               << "' has no code for CPU '" << cpu.name << "'";
    llvm::Expected<Object> object =
        isolate(getBytes(code), kernel.getSymbol(), getExternalName(kernel));
    if (!object)
      return op.emitError(llvm::toString(object.takeError()));
    objects.push_back(std::move(*object));
  }
  return objects;
}

} // namespace tcc::cpu
