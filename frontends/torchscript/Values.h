//===- Values.h - What TorchScript code computes with -----------*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_VALUES_H
#define TCC_FRONTENDS_TORCHSCRIPT_VALUES_H

#include "frontends/aten/Item.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace tcc::torchscript {

struct Node;

/// An instance of a class of the archive: a module, or what a model defines.
struct Instance : aten::Object {
  std::string className;
  std::map<std::string, aten::Item> attributes;
  /// Where the model keeps it, "layer1.0"; empty for the model itself.
  std::string path;

  ~Instance() override { aten::destroy(Instance::release()); }
  std::vector<aten::Item> release() override {
    std::vector<aten::Item> held;
    for (auto &[name, value] : attributes)
      held.push_back(std::move(value));
    attributes.clear();
    return held;
  }
};

struct Dictionary : aten::Object {
  std::vector<std::pair<aten::Item, aten::Item>> entries;

  ~Dictionary() override { aten::destroy(Dictionary::release()); }
  std::vector<aten::Item> release() override {
    std::vector<aten::Item> held;
    for (auto &[key, value] : entries) {
      held.push_back(std::move(key));
      held.push_back(std::move(value));
    }
    entries.clear();
    return held;
  }
};

/// A dotted name that is no value yet: torch.add, __torch__.Net.
struct Path : aten::Object {
  std::string name;
};

/// A function of a class and what it is called on.
struct Method : aten::Object {
  aten::Item self;
  const Node *function = nullptr;

  std::vector<aten::Item> release() override { return {std::move(self)}; }
};

/// The names of a named tuple's elements.
struct TupleNames : aten::Object {
  std::vector<std::string> names;
};

template <typename T> std::shared_ptr<T> getAs(const aten::Item &item) {
  return std::dynamic_pointer_cast<T>(item.object);
}

/// Python's ==, of numbers, strings and lists of them; lists in lists a hundred
/// deep are not compared.
bool isSame(const aten::Item &a, const aten::Item &b, int depth = 0);

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_VALUES_H
