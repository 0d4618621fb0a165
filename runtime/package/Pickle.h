//===- Pickle.h - Python's pickles, as data ---------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_PICKLE_H
#define TCC_RUNTIME_PACKAGE_PICKLE_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tcc::runtime {

/// What a pickle describes. Values may hold each other, in circles too: whoever
/// follows them counts how deep.
struct PickleValue {
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,
    list,
    tuple,
    dictionary,
    global,   ///< a class or a function by its name
    call,     ///< of a global
    reference ///< what a persistent id stands for
  };

  Kind kind = Kind::none;
  int64_t integer = 0; ///< 0 or 1 of a boolean
  double real = 0;
  std::string text; ///< or the name: "MODULE.NAME"
  /// Elements, arguments of a call, or the one persistent id.
  std::vector<PickleValue *> items = {};
  /// The entries of a dictionary, or those given to one that a call makes.
  std::vector<std::pair<PickleValue *, PickleValue *>> entries = {};
  PickleValue *state = nullptr; ///< that an instance is built from; or null

  bool is(Kind other) const { return kind == other; }
  bool isSequence() const { return is(Kind::list) || is(Kind::tuple); }
  bool isCallOf(std::string_view name) const {
    return is(Kind::call) && text == name;
  }
  /// The value of a text in a dictionary; null if there is none.
  const PickleValue *find(std::string_view key) const;
};

/// A pickle is a program for a stack machine, which could call anything. This
/// runs the opcodes that make data, as PyTorch writes them (protocol 2), and
/// notes what would be called.
class Pickle {
public:
  /// Code::BadData where it is none; the message follows the file's name.
  static Result<Pickle> read(std::span<const std::byte> bytes);

  const PickleValue &root() const { return *stack.back(); }

private:
  using Kind = PickleValue::Kind;
  using Values = std::vector<PickleValue *>;

  Pickle() = default;

  PickleValue *make(Kind kind);
  bool step(uint8_t opcode);
  bool makeValue(uint8_t opcode);
  bool makeSequence(uint8_t opcode);
  bool change(uint8_t opcode);
  bool pushInteger(int64_t value);
  bool pushLong();
  bool pushGlobal();
  bool pushCall();
  bool pushItems(Kind kind, Values items);
  bool memoize(uint64_t key);
  bool recall(uint64_t key);
  bool append(const Values &items);
  bool setItems(const Values &items);
  bool build();
  bool refer();
  bool pop(PickleValue *&value);
  bool pop(Values &values, size_t count);
  bool popToMark(Values &values);
  bool fail(std::string message);
  std::string_view take(uint64_t count);
  uint64_t takeInteger(unsigned bytes);
  std::string_view takeLine();

  std::deque<PickleValue> values; ///< all that were made
  std::string_view rest;          ///< what is not read yet
  size_t size = 0, itemCount = 0;
  bool isDone = false, isKnown = true;
  std::string problem;
  Values stack;
  std::vector<size_t> marks;
  std::map<uint64_t, PickleValue *> memo;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_PICKLE_H
