#include "compiler/train/Parameters.h"

#include "dialects/graph/GraphOps.h"
#include "dialects/graph/Variants.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

/// Where `weight` is read, through ops that only move or convert it.
static SmallVector<ParameterSlot> findSlots(Value weight) {
  SmallVector<ParameterSlot> slots;
  llvm::SetVector<Value> values;
  values.insert(weight);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *op = use.getOwner();
      ParameterSlot slot = ParameterSlot::none;
      if (auto slotted = dyn_cast<ParameterSlotOpInterface>(op))
        slot = slotted.getParameterSlot(use.getOperandNumber());
      if (slot != ParameterSlot::none)
        slots.push_back(slot);
      else if (isa<ElementOpInterface, CastOp>(op))
        values.insert(op->result_begin(), op->result_end());
    }
  return slots;
}

namespace {

class TableBuilder {
public:
  TableBuilder(ModuleOp module, const WeightStore &weights,
               const ParamsRecipe &recipe, Problems &problems)
      : module(module), weights(weights), recipe(recipe), problems(problems) {}

  std::vector<Parameter> build();

private:
  /// One tensor of the store and all that reads it.
  struct Tensor {
    const Weight *weight;
    SmallVector<ParameterSlot> slots;
    bool has(ParameterSlot slot) const {
      return llvm::is_contained(slots, slot);
    }
  };

  std::vector<Tensor> collect();
  Parameter describe(const Tensor &tensor);
  void setRole(Parameter &parameter, const Tensor &tensor);
  void setFoldedRole(Parameter &parameter, const Tensor &tensor);
  void applyRecipe(Parameter &parameter);
  void checkPatterns(ArrayRef<Parameter> table);
  void refuse(const std::string &message) {
    problems.add(ProblemClass::unsupported, message);
  }

  ModuleOp module;
  const WeightStore &weights;
  const ParamsRecipe &recipe;
  Problems &problems;
};

} // namespace

static bool isFloatType(RankedTensorType type) {
  return isa<FloatType>(type.getElementType());
}

std::vector<TableBuilder::Tensor> TableBuilder::collect() {
  std::vector<Tensor> tensors;
  llvm::StringMap<size_t> places;
  for (func::FuncOp main : getMains(module))
    main.walk([&](WeightOp op) {
      const Weight *weight = weights.find(op.getName());
      if (!weight || !isFloatType(weight->type))
        return;
      auto [place, isNew] = places.try_emplace(op.getName(), tensors.size());
      if (isNew)
        tensors.push_back({weight, {}});
      llvm::append_range(tensors[place->second].slots, findSlots(op));
    });
  return tensors;
}

// --- Roles -------------------------------------------------------------------

static bool isMatrix(RankedTensorType type) { return type.getRank() == 2; }

/// True for one value a channel: at most one axis is longer than 1.
static bool isVector(RankedTensorType type) {
  return llvm::count_if(type.getShape(), [](int64_t n) { return n != 1; }) <= 1;
}

/// The sources that are no intermediate results of the exporter's own.
static SmallVector<StringRef> getModelSources(const Weight &weight) {
  SmallVector<StringRef> names;
  for (StringRef source : weight.sources) {
    StringRef number = source;
    bool isOwn =
        number.consume_front("val_") && llvm::all_of(number, llvm::isDigit);
    if (!isOwn)
      names.push_back(source);
  }
  return names;
}

/// A tensor that the exporter computed. From one that is absent it made the
/// transpose of a matrix, as products read it; another form of it, such as one
/// repeated for the batch, cannot be undone.
void TableBuilder::setFoldedRole(Parameter &parameter, const Tensor &tensor) {
  const Weight &weight = *tensor.weight;
  SmallVector<StringRef> sources = getModelSources(weight);
  std::string names = llvm::join(sources, ", ");
  parameter.reason = "computed by the exporter from " + names;
  if (sources.size() != 1 || weights.find(sources.front()))
    return;
  if (weight.sources.size() == 1 && tensor.has(ParameterSlot::matrix) &&
      isMatrix(weight.type)) {
    parameter.traits.name = sources.front();
    parameter.role = Role::Parameter;
    parameter.reason = "transposed by the exporter";
    parameter.isTransposed = true;
    return;
  }
  if (!matchesAny(recipe.constant, parameter.traits))
    refuse(
        "'" + weight.name + "' was computed by the exporter from '" + names +
        "', which may be a parameter: export with optimize=False, or name '" +
        weight.name + "' in [params] constant");
}

void TableBuilder::setRole(Parameter &parameter, const Tensor &tensor) {
  const Weight &weight = *tensor.weight;
  auto set = [&](Role role, const char *reason) {
    parameter.role = role;
    parameter.reason = reason;
  };
  switch (weight.role) {
  case WeightRole::parameter:
    return set(Role::Parameter, "the model says so");
  case WeightRole::buffer:
    return set(Role::Buffer, "the model says so");
  case WeightRole::constant:
    return set(Role::Constant, "the model says so");
  case WeightRole::unknown:
    break;
  }
  if (tensor.has(ParameterSlot::statistic))
    return set(Role::Buffer, "statistics of a batch norm");
  if (!weight.sources.empty())
    return setFoldedRole(parameter, tensor);
  if (weight.type.getNumElements() <= 1)
    return set(Role::Constant, "one element");
  if (tensor.has(ParameterSlot::matrix))
    return set(Role::Parameter, "of a product or convolution");
  if (tensor.has(ParameterSlot::table))
    return set(Role::Parameter, "an embedding");
  if (tensor.has(ParameterSlot::norm_scale) ||
      tensor.has(ParameterSlot::norm_shift))
    return set(Role::Parameter, "of a norm");
  bool isAffine =
      tensor.has(ParameterSlot::summand) || tensor.has(ParameterSlot::factor);
  if (isAffine && isVector(weight.type))
    return set(Role::Parameter, "a scale or shift of channels");
  set(Role::Constant, isAffine ? "no vector of channels: name it in [params] "
                                 "train if it is a parameter"
                               : "not where parameters are");
}

Parameter TableBuilder::describe(const Tensor &tensor) {
  Parameter parameter;
  const Weight &weight = *tensor.weight;
  parameter.weights = {weight.name};
  parameter.type = weight.type;
  ParameterTraits &traits = parameter.traits;
  traits.name = weight.name;
  traits.rank = weight.type.getRank();
  traits.isNorm = tensor.has(ParameterSlot::norm_scale) ||
                  tensor.has(ParameterSlot::norm_shift);
  traits.isBias = isVector(weight.type) && !traits.isNorm &&
                  tensor.has(ParameterSlot::summand);
  traits.isBias |= tensor.has(ParameterSlot::norm_shift);
  traits.isEmbedding = tensor.has(ParameterSlot::table);
  setRole(parameter, tensor);
  applyRecipe(parameter);
  return parameter;
}

/// The recipe knows better, but for what the exporter destroyed.
void TableBuilder::applyRecipe(Parameter &parameter) {
  const ParameterTraits &traits = parameter.traits;
  if (matchesAny(recipe.constant, traits)) {
    parameter.role = Role::Constant;
    parameter.reason = "the recipe says so";
    return;
  }
  bool isNamed = matchesAny(recipe.train, traits);
  if (isNamed && parameter.role == Role::Constant) {
    parameter.role = Role::Parameter;
    parameter.reason = "the recipe says so";
  }
  parameter.isTrained = parameter.role == Role::Parameter &&
                        (recipe.train.empty() || isNamed) &&
                        !matchesAny(recipe.freeze, traits);
}

// --- The table ---------------------------------------------------------------

/// A pattern without a match is a mistake in its name.
void TableBuilder::checkPatterns(ArrayRef<Parameter> table) {
  for (const Patterns *patterns :
       {&recipe.train, &recipe.freeze, &recipe.constant})
    for (const Pattern &pattern : *patterns)
      if (llvm::none_of(table, [&](const Parameter &parameter) {
            return pattern.matches(parameter.traits);
          }))
        problems.add(ProblemClass::badBytes,
                     "[params]: '" + pattern.text +
                         "' matches no tensor of the model");
}

std::vector<Parameter> TableBuilder::build() {
  std::vector<Parameter> table;
  llvm::DenseMap<std::pair<const char *, size_t>, size_t> byStorage;
  for (const Tensor &tensor : collect()) {
    ArrayRef<char> bytes = tensor.weight->bytes;
    if (!bytes.empty()) {
      auto [place, isNew] = byStorage.try_emplace(
          std::pair(bytes.data(), bytes.size()), table.size());
      if (!isNew && table[place->second].type == tensor.weight->type) {
        table[place->second].weights.push_back(tensor.weight->name);
        continue;
      }
    }
    table.push_back(describe(tensor));
  }
  checkPatterns(table);
  return table;
}

std::string describe(const Parameter &row) {
  constexpr const char *kRoles[] = {"parameter", "buffer", "constant"};
  std::string text = kRoles[int(row.role)];
  if (row.role == Role::Parameter && !row.isTrained)
    text = "frozen parameter";
  text += " " + row.getName() + ":";
  llvm::raw_string_ostream(text) << " " << row.type;
  for (const std::string &weight : row.weights)
    if (weight != row.getName())
      text += ", stored as " + weight;
  return text + " (" + row.reason + ")";
}

std::vector<Parameter> buildParameterTable(ModuleOp module,
                                           const WeightStore &weights,
                                           const ParamsRecipe &recipe,
                                           Problems &problems) {
  return TableBuilder(module, weights, recipe, problems).build();
}

ArrayAttr describeStoredTensors(ArrayRef<Parameter> table, Builder &builder) {
  SmallVector<Attribute> tensors;
  auto add = [&](const Parameter &row, StringRef weight) {
    tensors.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("name", builder.getStringAttr(weight)),
         builder.getNamedAttr("variable", builder.getStringAttr(row.getName())),
         builder.getNamedAttr("transposed",
                              builder.getBoolAttr(row.isTransposed))}));
  };
  for (const Parameter &row : table)
    for (const std::string &weight : row.weights)
      if (row.role != Role::Constant && weight != row.getName())
        add(row, weight);
  return builder.getArrayAttr(tensors);
}

} // namespace tcc::train
