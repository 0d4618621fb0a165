#include "compiler/train/Settings.h"
#include "compiler/train/Keys.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::train;
using namespace tcc::graph;

static std::string getVariableName(StringRef key) {
  return ("set/" + key).str();
}

/// A constant with this value.
static Initial makeConstant(DenseElementsAttr value) {
  return [value](OpBuilder &builder, Location loc, RankedTensorType) {
    return builder.create<ConstantOp>(loc, value).getResult();
  };
}

static DenseElementsAttr makeScalar(TypedAttr value) {
  return DenseElementsAttr::get(RankedTensorType::get({}, value.getType()),
                                Attribute(value));
}

static RangeAttr makeRange(Builder builder, const train::Range &range) {
  bool isFreeBelow = range.min == -kNoBound;
  bool isFreeAbove = range.max == kNoBound;
  return RangeAttr::get(
      builder.getContext(),
      builder.getF64FloatAttr(isFreeBelow ? -kInfinity : range.min),
      builder.getF64FloatAttr(isFreeAbove ? kInfinity : range.max),
      range.opensAtMin || isFreeBelow, range.opensAtMax || isFreeAbove);
}

namespace {

/// Declares a variable for the value of a field.
struct SettingDeclaration {
  VariableTable &table;
  Builder builder;
  std::string key;
  const train::Range *range;
  SmallVector<StringRef> words;

  /// The words and numbers of a recipe's key.
  SettingDeclaration(VariableTable &table, StringRef name, const Key &key)
      : table(table), builder(table.getContext()), key(name), range(key.range),
        words(splitWords(key.words)) {}
  SettingDeclaration(VariableTable &table, StringRef name,
                     const train::Range &range)
      : table(table), builder(table.getContext()), key(name), range(&range) {}

  void declare(DenseElementsAttr initial) {
    auto setting = SettingAttr::get(
        builder.getContext(), builder.getStringAttr(key),
        range ? makeRange(builder, *range) : RangeAttr(),
        words.empty() ? ArrayAttr() : builder.getStrArrayAttr(words), initial);
    table.declare({.name = getVariableName(key),
                   .kind = VariableKind::setting,
                   .type = cast<RankedTensorType>(initial.getType()),
                   .initial = makeConstant(initial),
                   .setting = setting});
  }
  void operator()(double *value) {
    declare(makeScalar(builder.getF64FloatAttr(*value)));
  }
  void operator()(int64_t *value) {
    declare(makeScalar(builder.getI64IntegerAttr(*value)));
  }
  void operator()(bool *value) {
    words = {"false", "true"};
    int64_t position = *value;
    (*this)(&position);
  }
  void operator()(NumberOrWord *value) { (*this)(&value->number); }
  void operator()(WordField word) {
    int64_t position = word.get(word.at);
    (*this)(&position);
  }
  void operator()(Betas *betas) {
    auto type = RankedTensorType::get({2}, builder.getF64Type());
    declare(DenseElementsAttr::get(type, ArrayRef<double>(*betas)));
  }
  /// What is absent is 0, which is in no range of such a key; only a group's
  /// values may be absent as variables, too.
  template <typename T> void operator()(std::optional<T> *value) {
    T copy = value->value_or(T{});
    (*this)(&copy);
  }
  template <typename T> void operator()(T) {
    llvm_unreachable("no run-time key is of this type");
  }
};

} // namespace

/// Whether a key is a setting; no key of another kind of loss or optimizer is.
static bool isSetting(const Key &key, Recipe &recipe) {
  // The seed is a part of the step's state.
  return key.isRuntime && key.name != StringRef("seed") &&
         key.getTable() != "optimizer.group" && isOfKind(key, recipe) &&
         (!key.isCompiled || key.isCompiled(recipe));
}

void tcc::train::declareSettings(VariableTable &table, const Recipe &given) {
  Recipe recipe = given;
  for (const Key &key : getKeys())
    if (isSetting(key, recipe))
      std::visit(SettingDeclaration(table, key.getSettingName(), key),
                 key.field(recipe));
  for (auto [i, group] : llvm::enumerate(recipe.optimizer.groups)) {
    std::string prefix = "group." + std::to_string(i) + ".";
    auto declare = [&](StringRef name, auto *value) {
      const Key &key = *findKey(("optimizer.group." + name).str());
      SettingDeclaration(table, prefix + name.str(), key)(value);
    };
    if (group.weightDecay)
      declare("weight_decay", &*group.weightDecay);
    if (group.betas)
      declare("betas", &*group.betas);
  }
}

void tcc::train::declareSetting(VariableTable &table, StringRef key,
                                double value, const train::Range &range) {
  SettingDeclaration(table, key, range)(&value);
}

void tcc::train::declareSeed(VariableTable &table, int64_t value,
                             Builder builder) {
  DenseElementsAttr initial = makeScalar(builder.getI64IntegerAttr(value));
  const Key &key = *findKey("seed");
  auto setting = SettingAttr::get(
      builder.getContext(), builder.getStringAttr(key.getSettingName()),
      makeRange(builder, *key.range), ArrayAttr(), initial);
  table.declare({.name = format::variableOf(StepField::seed),
                 .kind = VariableKind::step,
                 .type = cast<RankedTensorType>(initial.getType()),
                 .initial = makeConstant(initial),
                 .field = StepField::seed,
                 .setting = setting});
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
