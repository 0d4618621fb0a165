//===- Item.h - What PyTorch code computes with -----------------*- C++ -*-===//
//
// Readers of PyTorch's files run a model's code once, at import: numbers, lists
// and branches on sizes vanish, what happens to tensors becomes ops.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_ATEN_ITEM_H
#define TCC_FRONTENDS_ATEN_ITEM_H

#include "frontends/Sizes.h"
#include <memory>
#include <string>
#include <vector>

namespace tcc::aten {

struct Item;
struct Variable;

/// Destroys items one after the other: a chain of lists, each within the one
/// before, may be too long for the stack.
void destroy(std::vector<Item> items);

/// What a reader adds: dictionaries, instances of classes.
struct Object {
  virtual ~Object() = default;
  /// Moves out the items that it holds.
  virtual std::vector<Item> release();
};

/// A value of the code. Lists and objects are shared, as in Python.
struct Item {
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,
    tensor,
    list,
    tuple,
    object
  };

  Kind kind = Kind::none;
  /// A boolean (0 or 1) or an integer.
  mlir::AffineExpr size;
  double number = 0;
  std::string text;
  Variable *tensor = nullptr;
  std::shared_ptr<std::vector<Item>> items; // of a list or tuple
  std::shared_ptr<Object> object;

  static Item of(Variable *tensor) {
    Item item;
    item.kind = Kind::tensor;
    item.tensor = tensor;
    return item;
  }
  static Item ofInteger(mlir::AffineExpr size) {
    Item item;
    item.kind = Kind::integer;
    item.size = size;
    return item;
  }
  static Item ofBoolean(mlir::AffineExpr size) {
    Item item = ofInteger(size);
    item.kind = Kind::boolean;
    return item;
  }
  static Item ofReal(double number) {
    Item item;
    item.kind = Kind::real;
    item.number = number;
    return item;
  }
  static Item ofText(std::string text) {
    Item item;
    item.kind = Kind::text;
    item.text = std::move(text);
    return item;
  }
  static Item ofItems(Kind kind, std::vector<Item> items);
  static Item ofObject(std::shared_ptr<Object> object);

  bool is(Kind other) const { return kind == other; }
  bool isSequence() const { return is(Kind::list) || is(Kind::tuple); }
  bool isNumber() const {
    return is(Kind::boolean) || is(Kind::integer) || is(Kind::real);
  }
};

/// What this thread makes while one lives does not outlive it: lists and
/// objects that are left are emptied, so that those that hold themselves are
/// freed.
class ItemScope {
public:
  ItemScope();
  ~ItemScope();
  ItemScope(const ItemScope &) = delete;

private:
  friend struct Item;
  template <typename Made>
  void add(std::vector<std::weak_ptr<Made>> &all, std::weak_ptr<Made> made);

  ItemScope *outer;
  std::vector<std::weak_ptr<std::vector<Item>>> lists;
  std::vector<std::weak_ptr<Object>> objects;
  size_t room = 1024; ///< of each before those that are gone are dropped
};

/// "a tensor", for messages.
llvm::StringRef getKindName(const Item &item);
/// The number of an item that is one and is known.
std::optional<double> getNumber(const Item &item);

} // namespace tcc::aten

#endif // TCC_FRONTENDS_ATEN_ITEM_H
