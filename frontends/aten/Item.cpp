#include "frontends/aten/Item.h"

#include "dialects/graph/Shape.h"
#include "llvm/ADT/STLExtras.h"

namespace tcc::aten {

using Kind = Item::Kind;

void destroy(std::vector<Item> items) {
  // What the outermost call still has to destroy.
  static thread_local std::vector<Item> *pending = nullptr;
  if (pending) {
    std::move(items.begin(), items.end(), std::back_inserter(*pending));
    return;
  }
  pending = &items;
  while (!items.empty()) {
    Item last = std::move(items.back());
    items.pop_back();
  }
  pending = nullptr;
}

std::vector<Item> Object::release() { return {}; }

// --- Scopes ------------------------------------------------------------------

static thread_local ItemScope *innermost = nullptr;

ItemScope::ItemScope() : outer(std::exchange(innermost, this)) {}

ItemScope::~ItemScope() {
  innermost = outer;
  for (auto &list : lists)
    if (auto held = list.lock())
      destroy(std::move(*held));
  for (auto &object : objects)
    if (auto held = object.lock())
      destroy(held->release());
}

template <typename Made>
void ItemScope::add(std::vector<std::weak_ptr<Made>> &all,
                    std::weak_ptr<Made> made) {
  if (all.size() >= room) {
    llvm::erase_if(all, [](auto &each) { return each.expired(); });
    room = std::max(room, 2 * all.size());
  }
  all.push_back(std::move(made));
}

// --- Items -------------------------------------------------------------------

Item Item::ofItems(Kind kind, std::vector<Item> items) {
  Item item;
  item.kind = kind;
  item.items = {new std::vector<Item>(std::move(items)),
                [](std::vector<Item> *held) {
                  destroy(std::move(*held));
                  delete held;
                }};
  if (innermost)
    innermost->add<std::vector<Item>>(innermost->lists, item.items);
  return item;
}

Item Item::ofObject(std::shared_ptr<Object> object) {
  Item item;
  item.kind = Kind::object;
  item.object = std::move(object);
  if (innermost)
    innermost->add<Object>(innermost->objects, item.object);
  return item;
}

llvm::StringRef getKindName(const Item &item) {
  constexpr llvm::StringLiteral names[] = {"None",    "a boolean", "an integer",
                                           "a float", "a string",  "a tensor",
                                           "a list",  "a tuple",   "an object"};
  return names[int(item.kind)];
}

std::optional<double> getNumber(const Item &item) {
  if (item.is(Kind::real))
    return item.number;
  if (!item.isNumber())
    return std::nullopt;
  auto known = graph::getConstant(item.size);
  return known ? std::optional(double(*known)) : std::nullopt;
}

} // namespace tcc::aten
