#include "compiler/train/Settings.h"
#include "compiler/train/Keys.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::train;
using namespace tcc::graph;

static std::string getVariableName(StringRef key) {
  return ("set/" + key).str();
}

namespace {

/// Declares a variable for the value of a field.
struct SettingDeclaration {
  VariableTable &table;
  Builder builder;
  std::string name;
  std::string values; ///< words, or the interval of numbers

  void declare(Type elementType, double value) {
    table.declare(name, VariableKind::setting,
                  RankedTensorType::get({}, elementType), value, values);
  }
  void operator()(double *value) { declare(builder.getF64Type(), *value); }
  void operator()(int64_t *value) {
    declare(builder.getI64Type(), double(*value));
  }
  void operator()(bool *value) {
    values = "false true";
    declare(builder.getI64Type(), *value);
  }
  void operator()(NumberOrWord *value) {
    declare(builder.getF64Type(), value->number);
  }
  void operator()(WordField word) {
    declare(builder.getI64Type(), double(word.get(word.at)));
  }
  void operator()(Betas *betas) {
    auto type = RankedTensorType::get({2}, builder.getF64Type());
    auto elements = DenseElementsAttr::get(type, ArrayRef<double>(*betas));
    auto emit = [elements](OpBuilder &builder, Location loc, RankedTensorType) {
      return builder.create<ConstantOp>(loc, elements).getResult();
    };
    table.declare({name, VariableKind::setting, type, values, emit});
  }
  /// Only a group's values may be absent as variables, too.
  template <typename T> void operator()(std::optional<T> *value) {
    T copy = value->value_or(T{});
    (*this)(&copy);
  }
  template <typename T> void operator()(T) {
    llvm_unreachable("no run-time key is of this type");
  }
};

} // namespace

/// What the key's variable has for its owner.
static std::string getValues(const Key &key) {
  if (!key.range)
    return key.words;
  return (*key.words ? std::string(key.words) + " " : "") + key.range->print();
}

static bool isSetting(const Key &key, StringRef optimizer) {
  // The seed is a part of the step's state.
  return key.isRuntime && key.name != StringRef("seed") &&
         (!StringRef(key.name).starts_with("optimizer.") ||
          key.appliesTo(optimizer));
}

void tcc::train::declareSettings(VariableTable &table, const Recipe &given) {
  Recipe recipe = given;
  const Key &kind = *findKey("optimizer.kind");
  StringRef optimizer = splitWords(kind.words)[int(recipe.optimizer.kind)];
  Builder builder(table.get("step/iteration").type.getContext());
  for (const Key &key : getKeys()) {
    if (!isSetting(key, optimizer) || key.getTable() == "optimizer.group")
      continue;
    std::string name = getVariableName(key.getSettingName());
    std::visit(SettingDeclaration{table, builder, name, getValues(key)},
               key.field(recipe));
  }
  for (auto [i, group] : llvm::enumerate(recipe.optimizer.groups)) {
    std::string prefix = getVariableName("group." + std::to_string(i)) + ".";
    auto declare = [&](StringRef key, auto *value) {
      std::string values =
          getValues(*findKey(("optimizer.group." + key).str()));
      SettingDeclaration{table, builder, prefix + key.str(), values}(value);
    };
    if (group.weightDecay)
      declare("weight_decay", &*group.weightDecay);
    if (group.betas)
      declare("betas", &*group.betas);
  }
}

Expr tcc::train::toNumber(const TensorEmitter &emitter, Value count) {
  return {emitter.castTo(
              count, RankedTensorType::get({}, emitter.builder.getF64Type())),
          &emitter};
}

Expr Settings::get(StringRef key) const {
  return toNumber(emitter, step.read(getVariableName(key)));
}

Expr Settings::get(StringRef key, int64_t index) const {
  Value list = step.read(getVariableName(key));
  Builder &builder = emitter.builder;
  auto start =
      makeSizeMap(builder.getAffineConstantExpr(index), builder.getContext());
  auto one = RankedTensorType::get({1}, getElementTypeOrSelf(list));
  Value element = emitter.emit<SliceOp>(one, list, start, ArrayRef<int64_t>{1});
  return {emitter.reshape(element, {}), &emitter};
}

Expr Settings::isPosition(StringRef key, int64_t position) const {
  Expr value{step.read(getVariableName(key)), &emitter};
  return compare(CompareKind::eq, value, value.like(double(position)));
}
