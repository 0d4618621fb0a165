#include "compiler/train/Prologue.h"

#include "dialects/graph/GraphDialect.h"
#include "dialects/graph/Variants.h"
#include "dialects/graph/ops/TensorEmitter.h"
#include "frontends/IndexRanges.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::graph;
using namespace tcc::train;

static constexpr int64_t kNhwcToNchw[] = {0, 3, 1, 2};

static std::string nameOf(func::FuncOp main, unsigned argument) {
  auto name =
      main.getArgAttrOfType<StringAttr>(argument, GraphDialect::kNameAttr);
  return name ? name.str() : "";
}

/// One number for each channel of `like`.
static Expr alongChannels(const TensorEmitter &emitter, const Numbers &numbers,
                          Expr like) {
  auto type = cast<RankedTensorType>(like.value.getType());
  if (numbers.size() == 1)
    return like.like(numbers[0]);
  SmallVector<Attribute> elements;
  for (double number : numbers)
    elements.push_back(
        emitter.builder.getFloatAttr(type.getElementType(), number));
  auto values = DenseElementsAttr::get(
      RankedTensorType::get(int64_t(numbers.size()), type.getElementType()),
      elements);
  Value constant = emitter.emit<ConstantOp>(values);
  return {emitter.alongChannels(constant, like.value), &emitter};
}

/// What is wrong with an input of a type that is to be bytes; empty: nothing.
static std::string findProblem(const InputRecipe &input,
                               RankedTensorType type) {
  if (!type || !isa<FloatType>(type.getElementType()))
    return "is no tensor of floats";
  bool hasChannels = type.getRank() >= 2 && !type.isDynamicDim(1);
  if (input.isChannelsLast && (type.getRank() != 4 || !hasChannels))
    return "has no four dimensions, which layout = 'nhwc' orders";
  for (const Numbers *numbers : {&input.mean, &input.deviation})
    if (numbers->size() > 1 &&
        !(hasChannels && type.getDimSize(1) == int64_t(numbers->size())))
      return "has other channels than mean or std has numbers";
  return "";
}

/// The type of the bytes.
static RankedTensorType getStoredType(const InputRecipe &input,
                                      RankedTensorType type) {
  auto byte = IntegerType::get(type.getContext(), 8, IntegerType::Unsigned);
  SmallVector<int64_t> shape(type.getShape());
  if (input.isChannelsLast)
    shape = {shape[0], shape[2], shape[3], shape[1]};
  return RankedTensorType::get(shape, byte);
}

static void addPrologue(func::FuncOp main, unsigned argument,
                        const InputRecipe &input) {
  BlockArgument bytes = main.getArgument(argument);
  auto type = cast<RankedTensorType>(bytes.getType());
  OpBuilder builder = OpBuilder::atBlockBegin(&main.front());
  TensorEmitter emitter(builder, bytes.getLoc());
  bytes.setType(getStoredType(input, type));
  Value stored = bytes;
  SmallPtrSet<Operation *, 1> own;
  if (input.isChannelsLast) {
    stored = emitter.emit<TransposeOp>(stored, kNhwcToNchw);
    own.insert(stored.getDefiningOp());
  }
  Expr x = {emitter.castTo(stored, type), &emitter};
  if (own.empty())
    own.insert(x.value.getDefiningOp());
  x = x / 255.0;
  if (input.mean != Numbers{0})
    x = x - alongChannels(emitter, input.mean, x);
  if (input.deviation != Numbers{1})
    x = x / alongChannels(emitter, input.deviation, x);
  bytes.replaceAllUsesExcept(x.value, own);
  main.setType(FunctionType::get(main.getContext(),
                                 main.getBody().getArgumentTypes(),
                                 main.getResultTypes()));
  setIndexRanges(main);
}

static void addPrologues(func::FuncOp main, const Recipe &recipe,
                         Problems &problems) {
  for (const InputRecipe &input : recipe.inputs) {
    std::string known, problem;
    std::optional<unsigned> found;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      known += (known.empty() ? "'" : ", '") + nameOf(main, i) + "'";
      if (nameOf(main, i) == input.name)
        found = i;
    }
    if (found)
      problem = findProblem(input, dyn_cast<RankedTensorType>(
                                       main.getArgument(*found).getType()));
    if (!found)
      problems.add(ProblemClass::usage, "the recipe has input '" + input.name +
                                            "', the model's are " + known);
    else if (!problem.empty())
      problems.add(ProblemClass::usage,
                   "input '" + input.name + "' " + problem);
    else
      addPrologue(main, *found, input);
  }
}

void train::addPrologues(ModuleOp module, const Recipe &recipe,
                         Problems &problems) {
  for (func::FuncOp main : getMains(module)) {
    ::addPrologues(main, recipe, problems);
    if (!problems.empty())
      return;
  }
}
