#include "runtime/package/Pickle.h"

#include "runtime/base/PrintText.h"

#include <bit>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

static constexpr size_t kMaxStack = 1 << 20;
static constexpr size_t kMaxValues = 1 << 23;

const PickleValue *PickleValue::find(std::string_view key) const {
  for (auto [name, value] : entries)
    if (name->is(Kind::text) && name->text == key)
      return value;
  return nullptr;
}

bool Pickle::fail(std::string message) {
  if (problem.empty())
    problem = std::move(message);
  return false;
}

PickleValue *Pickle::make(Kind kind) {
  values.push_back({.kind = kind, .text = ""});
  return &values.back();
}

//===----------------------------------------------------------------------===//
// Bytes and the stack
//===----------------------------------------------------------------------===//

std::string_view Pickle::take(uint64_t count) {
  if (count > rest.size()) {
    fail("ends early");
    return "";
  }
  std::string_view taken = rest.substr(0, count);
  rest.remove_prefix(count);
  return taken;
}

/// Little-endian.
uint64_t Pickle::takeInteger(unsigned bytes) {
  std::string_view taken = take(bytes);
  uint64_t value = 0;
  for (size_t i = 0; i < taken.size(); ++i)
    value |= uint64_t(uint8_t(taken[i])) << (8 * i);
  return value;
}

std::string_view Pickle::takeLine() {
  size_t end = rest.find('\n');
  if (end == rest.npos) {
    fail("ends early");
    return "";
  }
  std::string_view line = take(end);
  take(1);
  return line;
}

bool Pickle::pop(PickleValue *&value) {
  size_t bottom = marks.empty() ? 0 : marks.back();
  if (stack.size() <= bottom)
    return fail("takes from an empty stack");
  value = stack.back();
  stack.pop_back();
  return true;
}

bool Pickle::pop(Values &popped, size_t count) {
  popped.resize(count);
  for (size_t i = count; i-- > 0;)
    if (!pop(popped[i]))
      return false;
  return true;
}

bool Pickle::popToMark(Values &popped) {
  if (marks.empty())
    return fail("has no mark");
  auto begin = stack.begin() + ptrdiff_t(marks.back());
  popped.assign(begin, stack.end());
  stack.erase(begin, stack.end());
  marks.pop_back();
  return true;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool Pickle::pushInteger(int64_t value) {
  PickleValue *made = make(Kind::integer);
  made->integer = value;
  stack.push_back(made);
  return problem.empty();
}

bool Pickle::pushLong() {
  constexpr uint64_t kMost = sizeof(int64_t);
  uint64_t length = takeInteger(1);
  if (length > kMost)
    return fail("has an integer of more than 64 bits");
  uint64_t value = takeInteger(unsigned(length));
  unsigned unused = unsigned(64 - 8 * length);
  return pushInteger(length == 0 ? 0 : int64_t(value << unused) >> unused);
}

bool Pickle::pushGlobal() {
  std::string_view module = takeLine(), name = takeLine();
  PickleValue *made = make(Kind::global);
  made->text = std::string(module) + "." + std::string(name);
  stack.push_back(made);
  return problem.empty();
}

bool Pickle::pushItems(Kind kind, Values items) {
  // Each is pushed once, and may be held by a tuple and by a call of it; more
  // are copies that a few bytes ask for.
  constexpr size_t kHolders = 2;
  itemCount += items.size();
  if (itemCount > kHolders * size)
    return fail("needs too large a stack");
  PickleValue *made = make(kind);
  made->items = std::move(items);
  stack.push_back(made);
  return true;
}

/// Pushes the call of a function, or of a class for an instance of it.
bool Pickle::pushCall() {
  PickleValue *arguments = nullptr, *called = nullptr;
  if (!pop(arguments) || !pop(called))
    return false;
  if (!called->is(Kind::global) || !arguments->is(Kind::tuple))
    return fail("calls what is no function");
  if (!pushItems(Kind::call, arguments->items))
    return false;
  stack.back()->text = called->text;
  return true;
}

bool Pickle::refer() {
  PickleValue *id = nullptr;
  return pop(id) && pushItems(Kind::reference, {id});
}

bool Pickle::memoize(uint64_t key) {
  if (stack.empty())
    return fail("takes from an empty stack");
  memo[key] = stack.back();
  return problem.empty();
}

bool Pickle::recall(uint64_t key) {
  auto found = memo.find(key);
  if (found == memo.end())
    return fail("recalls what it did not store");
  stack.push_back(found->second);
  return problem.empty();
}

bool Pickle::append(const Values &items) {
  if (stack.empty() || !stack.back()->is(Kind::list))
    return fail("appends to what is no list");
  Values &list = stack.back()->items;
  list.insert(list.end(), items.begin(), items.end());
  return true;
}

bool Pickle::setItems(const Values &items) {
  bool takesEntries = !stack.empty() && (stack.back()->is(Kind::dictionary) ||
                                         stack.back()->is(Kind::call));
  if (!takesEntries || items.size() % 2 != 0)
    return fail("adds to what is no dictionary");
  for (size_t i = 0; i < items.size(); i += 2)
    stack.back()->entries.emplace_back(items[i], items[i + 1]);
  return true;
}

bool Pickle::build() {
  PickleValue *state = nullptr;
  if (!pop(state))
    return false;
  if (stack.empty() || !stack.back()->is(Kind::call))
    return fail("builds what is no instance");
  stack.back()->state = state;
  return true;
}

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

/// Numbers, strings and names. False with `isKnown` unset for other opcodes.
bool Pickle::makeValue(uint8_t opcode) {
  switch (opcode) {
  case 'J': // BININT, BININT1, BININT2, LONG1
    return pushInteger(int32_t(takeInteger(4)));
  case 'K':
    return pushInteger(int64_t(takeInteger(1)));
  case 'M':
    return pushInteger(int64_t(takeInteger(2)));
  case 0x8a:
    return pushLong();
  case 'G': { // BINFLOAT, big-endian
    std::string_view bytes = take(sizeof(uint64_t));
    uint64_t bits = 0;
    for (char byte : bytes)
      bits = bits << 8 | uint8_t(byte);
    stack.push_back(make(Kind::real));
    stack.back()->real = std::bit_cast<double>(bits);
    return problem.empty();
  }
  case 'X': { // BINUNICODE
    std::string_view text = take(takeInteger(4));
    stack.push_back(make(Kind::text));
    stack.back()->text = text;
    return problem.empty();
  }
  case 0x88: // NEWTRUE, NEWFALSE
  case 0x89:
    stack.push_back(make(Kind::boolean));
    stack.back()->integer = opcode == 0x88;
    return true;
  case 'N':
    stack.push_back(make(Kind::none));
    return true;
  case 'c':
    return pushGlobal();
  }
  return isKnown = false;
}

/// Makes values that hold others. False with `isKnown` unset for other opcodes.
bool Pickle::makeSequence(uint8_t opcode) {
  constexpr uint8_t kTuple0 = 0x84; // TUPLE1 to TUPLE3 follow
  Values items;
  switch (opcode) {
  case '}':
    return pushItems(Kind::dictionary, {});
  case ']':
    return pushItems(Kind::list, {});
  case ')':
    return pushItems(Kind::tuple, {});
  case kTuple0 + 1:
  case kTuple0 + 2:
  case kTuple0 + 3:
    return pop(items, opcode - kTuple0) &&
           pushItems(Kind::tuple, std::move(items));
  case 't':
    return popToMark(items) && pushItems(Kind::tuple, std::move(items));
  case 'R':
  case 0x81: // NEWOBJ
    return pushCall();
  case 'Q':
    return refer();
  }
  return isKnown = false;
}

/// Changes values, memo or marks. False with `isKnown` unset for other opcodes.
bool Pickle::change(uint8_t opcode) {
  Values items;
  switch (opcode) {
  case 0x80: // PROTO
    take(1);
    return problem.empty();
  case '(':
    marks.push_back(stack.size());
    return true;
  case 'q': // BINPUT, LONG_BINPUT, BINGET, LONG_BINGET
    return memoize(takeInteger(1));
  case 'r':
    return memoize(takeInteger(4));
  case 'h':
    return recall(takeInteger(1));
  case 'j':
    return recall(takeInteger(4));
  case 'b':
    return build();
  case 'e':
    return popToMark(items) && append(items);
  case 'a':
    return pop(items, 1) && append(items);
  case 'u':
    return popToMark(items) && setItems(items);
  case 's':
    return pop(items, 2) && setItems(items);
  case '.':
    return isDone = true;
  }
  return isKnown = false;
}

bool Pickle::step(uint8_t opcode) {
  for (auto run :
       {&Pickle::makeValue, &Pickle::makeSequence, &Pickle::change}) {
    isKnown = true;
    bool isRun = (this->*run)(opcode);
    if (isKnown)
      return isRun;
  }
  return fail("has opcode " + std::to_string(int(opcode)) +
              ", which PyTorch does not write");
}

Result<Pickle> Pickle::read(std::span<const std::byte> bytes) {
  Pickle pickle;
  pickle.rest = {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  pickle.size = bytes.size();
  while (!pickle.isDone && pickle.problem.empty()) {
    std::string_view opcode = pickle.take(1);
    if (opcode.empty() || !pickle.step(uint8_t(opcode[0])))
      break;
    if (pickle.stack.size() > kMaxStack || pickle.values.size() > kMaxValues)
      pickle.fail("needs too large a stack");
  }
  if (!pickle.isDone || pickle.stack.size() != 1)
    pickle.fail("does not end in one object");
  if (!pickle.problem.empty())
    return Status(Code::BadData, pickle.problem);
  return pickle;
}
