//===- Kernels.cpp - The kernels of a call --------------------------------===//

#include "frontends/plugin/ElementTypes.h"
#include "frontends/plugin/Importer.h"

#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace tcc::plugin {

using aten::Item;
using Kind = Item::Kind;

// --- Element types -----------------------------------------------------------

static std::string printType(Value value) {
  return getName(getElementTypeOrSelf(value)).str();
}

static std::string join(ArrayRef<std::string> types) {
  return llvm::join(types, ", ");
}

std::string Importer::printTypes(const Kernel &kernel) const {
  return join(kernel.arguments) + " -> " + join(kernel.results);
}

bool Importer::hasTypes(const Kernel &kernel) const {
  return llvm::equal(kernel.arguments, inputs, [](StringRef type, Value input) {
    return type == printType(input);
  });
}

/// What there is without a body must be a kernel.
bool Importer::findKernels() {
  for (const Kernel &kernel : op.kernels)
    if (hasTypes(kernel) && llvm::none_of(kernels, [&](const Kernel *other) {
          return other->target == kernel.target;
        }))
      kernels.push_back(&kernel);
  if (op.body || !kernels.empty())
    return true;
  std::vector<std::string> types, known;
  for (Value input : inputs)
    types.push_back(printType(input));
  for (const Kernel &kernel : op.kernels)
    known.push_back(printTypes(kernel));
  tracer.report(request, ProblemClass::unsupported,
                "no kernel takes " + join(types) + "; there are " +
                    llvm::join(known, "; "));
  return false;
}

std::optional<SmallVector<RankedTensorType>> Importer::getKernelTypes() {
  SmallVector<RankedTensorType> types;
  for (auto [shape, type] : llvm::zip(op.shapes, kernels.front()->results)) {
    auto extents = evaluateShape(shape);
    if (!extents)
      return std::nullopt;
    for (AffineExpr extent : *extents)
      if (auto where = tracer.getSizes().findNegative(extent)) {
        refuse("shape '" + shape.text + "' is negative for " + *where);
        return std::nullopt;
      }
    if (tracer.getSizes().getMaxElements(*extents) > kMaxElements) {
      refuse("shape '" + shape.text + "' has too many elements");
      return std::nullopt;
    }
    types.push_back(graph::makeTensorType(
        *extents, makeType(*findElementType(type), emitter.getContext())));
  }
  return types;
}

// --- Attributes --------------------------------------------------------------

/// The values of expressions, floats as their bits. Counts are integers that
/// are not negative.
AffineMapAttr Importer::evaluateAll(ArrayRef<Expression> expressions,
                                    bool areCounts) {
  const Sizes &sizes = tracer.getSizes();
  graph::Extents values;
  for (const Expression &expression : expressions) {
    auto item = evaluate(*expression.function, arguments);
    if (!item)
      return {};
    bool isReal = item->is(Kind::real) && !areCounts;
    if (!isReal && !item->is(Kind::integer) && !item->is(Kind::boolean)) {
      refuse("'" + expression.text + "' is " + aten::getKindName(*item) +
             ", expected a number");
      return {};
    }
    values.push_back(isReal
                         ? sizes.constant(llvm::bit_cast<int64_t>(item->number))
                         : item->size);
    auto where = areCounts ? sizes.findNegative(values.back()) : std::nullopt;
    if (where) {
      refuse("'" + expression.text + "' is negative for " + *where);
      return {};
    }
  }
  return AffineMapAttr::get(graph::makeSizeMap(values, emitter.getContext()));
}

/// The bytes under the name of their digest, which all that is made of the
/// attribute, such as the key of a cache, then has.
static Attribute keepBytes(const KernelCode &code, MLIRContext *context) {
  auto &manager = DenseResourceElementsHandle::getManagerInterface(context);
  auto *dialect = context->getLoadedDialect<BuiltinDialect>();
  auto *entry = manager.getBlobManager().lookup(code.name);
  auto handle =
      entry ? DenseResourceElementsHandle(entry, dialect)
            : manager.insert(code.name,
                             HeapAsmResourceBlob::allocateAndCopyWithAlign(
                                 ArrayRef(code.bytes.data(), code.bytes.size()),
                                 alignof(std::max_align_t)));
  auto type = RankedTensorType::get({int64_t(code.bytes.size())},
                                    IntegerType::get(context, 8));
  Builder b(context);
  return graph::CustomCodeAttr::get(
      context, code.form, b.getStringAttr(code.machine),
      DenseResourceElementsAttr::get(type, handle));
}

Attribute Importer::describe(const Kernel &kernel) {
  AffineMapAttr sizes = evaluateAll(kernel.sizes, false),
                tasks = evaluateAll(kernel.tasks, true),
                scratch = evaluateAll(kernel.scratch, true);
  if (!sizes || !tasks || !scratch)
    return {};
  MLIRContext *context = emitter.getContext();
  SmallVector<Attribute> codes;
  for (const KernelCode &code : kernel.codes)
    codes.push_back(keepBytes(code, context));
  Builder b(context);
  return graph::CustomKernelAttr::get(
      context, b.getStringAttr(kernel.target), b.getStringAttr(kernel.symbol),
      sizes, tasks, scratch, kernel.threads, kernel.sharedBytes,
      b.getArrayAttr(codes));
}

bool Importer::addKernels(OperationState &state) {
  SmallVector<Attribute> described;
  for (const Kernel *kernel : kernels) {
    for (auto [i, type, result] :
         llvm::enumerate(kernel->results, state.types)) {
      StringRef found = getName(getElementTypeOrSelf(result));
      if (type != found)
        return refuse("result " + llvm::Twine(i) + " of kernel '" +
                      printTypes(*kernel) + "' is " + found);
    }
    described.push_back(describe(*kernel));
    if (!described.back())
      return false;
  }
  Builder b(emitter.getContext());
  if (!described.empty())
    state.addAttribute("kernels", b.getArrayAttr(described));
  if (op.flops.empty())
    return true;
  AffineMapAttr flops = evaluateAll(op.flops, true);
  if (flops)
    state.addAttribute("flops", flops);
  return bool(flops);
}

} // namespace tcc::plugin
