//===- Builtins.cpp - Lists, dictionaries, strings and sizes --------------===//

#include "frontends/torchscript/Interpreter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tcc::torchscript {

using Kind = aten::Item::Kind;
using llvm::StringRef;

bool isSame(const aten::Item &a, const aten::Item &b, int depth) {
  constexpr int kMaxDepth = 100;
  if (a.isNumber() && b.isNumber()) {
    auto x = aten::getNumber(a), y = aten::getNumber(b);
    return x && y ? *x == *y : a.kind == b.kind && a.size == b.size;
  }
  if (a.kind != b.kind)
    return false;
  if (a.isSequence())
    return depth < kMaxDepth && a.items->size() == b.items->size() &&
           llvm::all_of(
               llvm::zip(*a.items, *b.items),
               [&](const auto &pair) {
                 return isSame(std::get<0>(pair), std::get<1>(pair), depth + 1);
               });
  return a.text == b.text && a.tensor == b.tensor && a.object == b.object;
}

/// A position that is known, counted from the end if it is negative.
static std::optional<int64_t> getPosition(const aten::Item &item,
                                          int64_t count) {
  auto known =
      item.is(Kind::integer) ? graph::getConstant(item.size) : std::nullopt;
  if (!known)
    return std::nullopt;
  return *known < 0 ? *known + count : *known;
}

// --- Lists -------------------------------------------------------------------

static aten::Item sliceList(const aten::Item &list,
                            ArrayRef<aten::Item> bounds) {
  int64_t count = list.items->size();
  auto bound = [&](size_t i, int64_t fallback) {
    auto known =
        i < bounds.size() ? getPosition(bounds[i], count) : std::nullopt;
    return std::clamp<int64_t>(known.value_or(fallback), 0, count);
  };
  int64_t start = bound(0, 0), end = bound(1, count), step = 1;
  if (bounds.size() > 2 && bounds[2].is(Kind::integer))
    step = graph::getConstant(bounds[2].size).value_or(1);
  std::vector<aten::Item> items;
  for (int64_t i = start; i < end && step > 0; i += step)
    items.push_back((*list.items)[i]);
  return aten::Item::ofItems(list.kind, std::move(items));
}

/// What changes a list.
std::optional<aten::Item>
Interpreter::changeList(StringRef name, Arguments &arguments, bool &isKnown) {
  ArrayRef<Item> items = arguments.positional;
  std::vector<Item> &list = *items[0].items;
  bool isPair = items.size() == 2;
  auto position = isPair || items.size() == 3
                      ? getPosition(items[1], list.size())
                      : std::nullopt;
  bool isInside =
      position && *position >= 0 && *position < int64_t(list.size());
  if (name == "append" && isPair) {
    list.push_back(items[1]);
    ++mutations;
    return items[0];
  }
  if (name == "extend" && isPair && items[1].isSequence()) {
    std::vector<Item> more = *items[1].items; // it may be the list itself
    list.insert(list.end(), more.begin(), more.end());
    ++mutations;
    return Item();
  }
  if (name == "insert" && items.size() == 3 && position) {
    int64_t place = std::clamp<int64_t>(*position, 0, list.size());
    list.insert(list.begin() + place, items[2]);
    ++mutations;
    return Item();
  }
  if (name == "pop") {
    int64_t place = position.value_or(int64_t(list.size()) - 1);
    if (place < 0 || place >= int64_t(list.size()))
      return malformed("pop from a list that has no such element");
    Item item = list[place];
    list.erase(list.begin() + place);
    ++mutations;
    return item;
  }
  if (name == "_set_item" && items.size() == 3 && isInside) {
    list[*position] = items[2];
    ++mutations;
    return Item();
  }
  isKnown = false;
  return std::nullopt;
}

std::optional<aten::Item>
Interpreter::callList(StringRef name, Arguments &arguments, bool &isKnown) {
  ArrayRef<Item> items = arguments.positional;
  std::vector<Item> &list = *items[0].items;
  // Functions but those of one element walk the list, or two.
  if (name != "append" && name != "__getitem__" && name != "len")
    steps += list.size();
  if (items.size() > 1 && items[1].isSequence())
    steps += items[1].items->size();
  if (steps > kMaxSteps)
    return unsupported("code that runs for more than 4 million steps");
  auto changed = changeList(name, arguments, isKnown);
  if (isKnown)
    return changed;
  isKnown = true;
  bool isPair = items.size() == 2;
  auto position = isPair ? getPosition(items[1], list.size()) : std::nullopt;
  bool isInside =
      position && *position >= 0 && *position < int64_t(list.size());
  if (name == "__getitem__" && isPair)
    return isInside ? std::optional(list[*position])
                    : malformed("an index of a list is out of range");
  bool isAll = name == "all";
  if ((isAll || name == "any") && items.size() == 1) {
    auto isTrue = [](const Item &item) {
      return aten::getNumber(item).value_or(0) != 0;
    };
    if (llvm::all_of(list, [](const Item &item) { return item.isNumber(); }))
      return ofBoolean(isAll ? llvm::all_of(list, isTrue)
                             : llvm::any_of(list, isTrue));
  }
  if (name == "len")
    return ofInteger(list.size());
  if (name == "slice")
    return sliceList(items[0], items.drop_front());
  if (name == "list")
    return Item::ofItems(Kind::list, list);
  if (name == "copy")
    return Item::ofItems(Kind::list, list);
  if (name == "__contains__" && isPair)
    return ofBoolean(llvm::any_of(
        list, [&](const Item &item) { return isSame(item, items[1]); }));
  if (name == "add" && isPair && items[1].isSequence()) {
    std::vector<Item> joined = list;
    joined.insert(joined.end(), items[1].items->begin(), items[1].items->end());
    return Item::ofItems(Kind::list, std::move(joined));
  }
  if (name == "mul" && isPair && items[1].is(Kind::integer)) {
    auto count = graph::getConstant(items[1].size);
    if (!count || *count * int64_t(list.size()) > kMaxContent)
      return unsupported("a list that is repeated so often");
    std::vector<Item> repeated;
    for (int64_t i = 0; i < *count; ++i)
      repeated.insert(repeated.end(), list.begin(), list.end());
    return Item::ofItems(Kind::list, std::move(repeated));
  }
  if ((name == "eq" || name == "ne") && isPair && items[1].isSequence())
    return ofBoolean(isSame(items[0], items[1]) == (name == "eq"));
  isKnown = false;
  return std::nullopt;
}

// --- Dictionaries ------------------------------------------------------------

std::optional<aten::Item> Interpreter::callDictionary(StringRef name,
                                                      Dictionary &dictionary,
                                                      Arguments &arguments,
                                                      bool &isKnown) {
  ArrayRef<Item> items = arguments.positional;
  auto found = dictionary.entries.end();
  if (items.size() > 1)
    found = llvm::find_if(dictionary.entries, [&](const auto &entry) {
      return isSame(entry.first, items[1]);
    });
  bool isThere = found != dictionary.entries.end();
  if (name == "_set_item" && items.size() == 3) {
    if (isThere)
      found->second = items[2];
    else
      dictionary.entries.push_back({items[1], items[2]});
    ++mutations;
    return Item();
  }
  if (name == "__getitem__" && items.size() == 2)
    return isThere ? std::optional(found->second)
                   : malformed("a dictionary lacks a key");
  if (name == "__contains__" && items.size() == 2)
    return ofBoolean(isThere);
  if (name == "get")
    return isThere ? found->second : items.size() > 2 ? items[2] : Item();
  if (name == "len")
    return ofInteger(dictionary.entries.size());
  std::vector<Item> list;
  for (const auto &[key, value] : dictionary.entries)
    list.push_back(name == "keys" ? key
                   : name == "values"
                       ? value
                       : Item::ofItems(Kind::tuple, {key, value}));
  isKnown = name == "keys" || name == "values" || name == "items";
  return Item::ofItems(Kind::list, std::move(list));
}

// --- Sizes of tensors --------------------------------------------------------

std::optional<aten::Item>
Interpreter::callShape(StringRef name, Arguments &arguments, bool &isKnown) {
  ArrayRef<Item> items = arguments.positional;
  RankedTensorType type = tracer.getType(*items[0].tensor);
  if (!type)
    return malformed("a tensor has no value");
  graph::Extents extents = graph::getExtents(type);
  std::string refusal;
  if (name == "size" && items.size() == 1)
    return getTensorAttribute(items[0], "shape");
  if (name == "size") {
    auto size = aten::computeNumber(tracer, "sym_size", items, refusal);
    return size ? size : malformed(refusal);
  }
  if (name == "numel") {
    auto count = aten::computeNumber(tracer, "sym_numel", items[0], refusal);
    return count ? count : unsupported("so large a tensor");
  }
  if (name == "dim")
    return ofInteger(type.getRank());
  if (name == "len")
    return extents.empty() ? malformed("a scalar has no length")
                           : std::optional(Item::ofInteger(extents[0]));
  if (name == "is_floating_point")
    return ofBoolean(isa<FloatType>(type.getElementType()));
  if (name == "item" || name == "Int" || name == "IntImplicit" ||
      name == "Float" || name == "FloatImplicit" || name == "Bool" ||
      name == "ScalarImplicit") {
    StringRef target = name.starts_with("Int")     ? "int"
                       : name.starts_with("Float") ? "float"
                       : name == "Bool"            ? "bool"
                                                   : "";
    if (!target.empty())
      return convert(target, items[0]);
    auto number = tracer.getNumber(*items[0].tensor);
    return number ? number : items[0];
  }
  isKnown = false;
  return std::nullopt;
}

// --- Ranges ------------------------------------------------------------------

/// Steps from a to b, and the value of step i from a on: loops over lists.
std::optional<aten::Item> Interpreter::callRange(StringRef name,
                                                 ArrayRef<Item> items) {
  SmallVector<int64_t, 3> numbers;
  for (const Item &item : items) {
    auto known =
        item.is(Kind::integer) ? graph::getConstant(item.size) : std::nullopt;
    if (!known || std::abs(*known) > kMaxElements)
      return unsupported("a loop of a number of steps that is not known");
    numbers.push_back(*known);
  }
  if (numbers.size() != 3)
    return malformed("a range needs three numbers");
  auto [first, second, third] = std::tie(numbers[0], numbers[1], numbers[2]);
  if (name == "__derive_index") { // index, start, step
    int64_t offset;
    if (llvm::MulOverflow(first, third, offset))
      return malformed("a range is too long");
    return ofInteger(second + offset);
  }
  if (third == 0)
    return malformed("a range has no step");
  int64_t span = third > 0 ? second - first : first - second;
  int64_t step = std::abs(third);
  return ofInteger(span <= 0 ? 0 : (span + step - 1) / step);
}

// --- All of them -------------------------------------------------------------

std::optional<aten::Item>
Interpreter::callBuiltin(StringRef name, Arguments &arguments, bool &isKnown) {
  ArrayRef<Item> items = arguments.positional;
  bool isFalse = llvm::StringSwitch<bool>(name)
                     .Cases("is_grad_enabled", "is_autocast_enabled",
                            "is_autocast_cpu_enabled", "is_scripting", true)
                     .Default(false);
  if (isFalse)
    return ofBoolean(false);
  if (name == "warn" || name == "set_grad_enabled" || name == "_assert" ||
      name == "manual_seed")
    return Item();
  if (name == "format" || name == "device")
    return Item::ofText(items.empty() ? "cpu" : items[0].text);
  if (name == "dict")
    return aten::Item::ofObject(std::make_shared<Dictionary>());
  if (name == "list" && items.empty())
    return Item::ofItems(Kind::list, {});
  if (items.empty()) {
    isKnown = false;
    return std::nullopt;
  }
  bool isIs = name == "__is__";
  if ((isIs || name == "__isnot__") && items.size() == 2) {
    bool areBoth = items[0].is(Kind::none) && items[1].is(Kind::none);
    bool isOne = items[0].is(Kind::none) || items[1].is(Kind::none);
    bool isSameObject = isOne ? areBoth : isSame(items[0], items[1]);
    return ofBoolean(isSameObject == isIs);
  }
  if ((name == "__and__" || name == "__or__") && items.size() == 2 &&
      items[0].is(Kind::boolean) && items[1].is(Kind::boolean)) {
    bool a = aten::getNumber(items[0]) != 0.0,
         b = aten::getNumber(items[1]) != 0.0;
    return ofBoolean(name == "__and__" ? a && b : a || b);
  }
  if (name == "len" && items[0].is(Kind::text))
    return ofInteger(items[0].text.size());
  if (name == "__range_length" || name == "__derive_index")
    return callRange(name, items);
  if (items[0].is(Kind::text) || (items.size() > 1 && items[1].is(Kind::text)))
    if ((name == "eq" || name == "ne") && items.size() == 2)
      return ofBoolean(isSame(items[0], items[1]) == (name == "eq"));
  if (items[0].isSequence())
    return callList(name, arguments, isKnown);
  if (auto dictionary = getAs<Dictionary>(items[0]))
    return callDictionary(name, *dictionary, arguments, isKnown);
  if (items[0].is(Kind::tensor))
    return callShape(name, arguments, isKnown);
  if (items[0].is(Kind::boolean) && name == "__not__") {
    auto value = aten::getNumber(items[0]);
    if (value)
      return ofBoolean(*value == 0);
  }
  isKnown = false;
  return std::nullopt;
}

} // namespace tcc::torchscript
