#include "tests/compiler/passes/exec/RandomProgram.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

using namespace tcc::tests;

namespace {

constexpr char kKernels[] = R"(
exec.kernel @unary {
^bb0(%x: tensor<4xf32>):
  %y = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
}
exec.kernel @binary {
^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
  %z = graph.fused <pointwise> (%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %c = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %c : tensor<4xf32>
  }
}
)";

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {
    // One to three kinds of what is started: a lane each.
    for (int kind = 0; kind < 3; ++kind)
      if (pick(2))
        kinds.push_back(kind);
    if (kinds.empty())
      kinds.push_back(pick(3));
  }

  std::string run();

private:
  using Buffers = std::vector<int>;
  struct Flight {
    std::string token;
    int from, to;
  };

  int pick(int count) { return int(random() % unsigned(count)); }
  std::string name(int buffer) const { return "%b" + std::to_string(buffer); }
  int declare(const char *storage, int size, bool isIndexed);
  void addBlock(Buffers readable, int depth);
  void addStep(Buffers &readable, std::vector<Flight> &flights, int depth);
  void addLaunch(Buffers &readable);
  void addStart(Buffers &readable, std::vector<Flight> &flights);
  void addWait(Buffers &readable, std::vector<Flight> &flights);
  void addControl(const Buffers &readable, int depth);
  int chooseRead(const Buffers &readable);
  int chooseWrite(const Buffers &readable);

  std::mt19937 random;
  std::vector<int> kinds;
  std::string text;
  int buffers = 0, tokens = 0, slots = 0;
  bool isInBranch = false;
  std::map<int, int> readers; ///< in flight, of each buffer
  std::vector<int> written;   ///< by what is in flight
};

} // namespace

int Generator::declare(const char *storage, int size, bool isIndexed) {
  std::string bytes = std::to_string(size);
  text += name(buffers) + " = exec.buffer " + storage + " " +
          (isIndexed ? "0 " : "") + "bytes affine_map<() -> (" + bytes +
          ")> bound " + bytes + " : !exec.buffer<host>\n";
  return buffers++;
}

/// Any that nothing in flight writes.
int Generator::chooseRead(const Buffers &readable) {
  for (;;) {
    int buffer = readable[size_t(pick(int(readable.size())))];
    if (!std::ranges::count(written, buffer))
      return buffer;
  }
}

/// A new one, or an old one that nothing in flight uses. The input is not
/// written.
int Generator::chooseWrite(const Buffers &readable) {
  int old = readable[size_t(pick(int(readable.size())))];
  bool isFree =
      old != 0 && readers[old] == 0 && !std::ranges::count(written, old);
  if (isFree && pick(4) == 0)
    return old;
  constexpr int kUnit = 64;
  return declare("scratch", kUnit * (1 + pick(6)), /*isIndexed=*/false);
}

static void insert(std::vector<int> &buffers, int buffer) {
  if (!std::ranges::count(buffers, buffer))
    buffers.push_back(buffer);
}

void Generator::addLaunch(Buffers &readable) {
  int x = chooseRead(readable), y = chooseRead(readable);
  int result = chooseWrite(readable);
  if (result == x || result == y)
    return;
  bool isBinary = x != y;
  text += std::string("exec.launch @") + (isBinary ? "binary" : "unary") +
          " ins(" + name(x) + (isBinary ? ", " + name(y) : "") + ") outs(" +
          name(result) + ") node \"n\" : (!exec.buffer<host>" +
          (isBinary ? ", !exec.buffer<host>" : "") +
          ") -> !exec.buffer<host>\n";
  insert(readable, result);
}

void Generator::addStart(Buffers &readable, std::vector<Flight> &flights) {
  int from = chooseRead(readable), to = chooseWrite(readable);
  int kind = kinds[size_t(pick(int(kinds.size())))];
  if (kind > 0 && isInBranch)
    return;
  bool isInPlace = kind > 0 && from != 0 && readers[from] == 0 && pick(3) == 0;
  if (isInPlace)
    to = from;
  if (from == to && !isInPlace)
    return;
  std::string token = "%t" + std::to_string(tokens++);
  text += token + " = exec.start_" + (kind ? "all_reduce " : "copy ") +
          name(from) + " to " + name(to);
  text += kind ? " as f32 count affine_map<() -> (1)> {group = " +
                     std::to_string(kind) + " : i64}"
               : " bytes affine_map<() -> (4)>";
  text += " : !exec.buffer<host>, !exec.buffer<host>\n";
  ++readers[from];
  written.push_back(to);
  flights.push_back({token, from, to});
}

void Generator::addWait(Buffers &readable, std::vector<Flight> &flights) {
  if (flights.empty())
    return;
  auto flight = flights.begin() + pick(int(flights.size()));
  text += "exec.wait " + flight->token + "\n";
  --readers[flight->from];
  written.erase(std::ranges::find(written, flight->to));
  insert(readable, flight->to);
  flights.erase(flight);
}

/// What is written in a block for the first time is not read after it.
void Generator::addControl(const Buffers &readable, int depth) {
  if (pick(2)) {
    text += "exec.if " + name(0) + " : !exec.buffer<host> {\n";
    // Both branches run the same collectives: none.
    bool before = std::exchange(isInBranch, true);
    addBlock(readable, depth);
    isInBranch = before;
    text += "} else {\n}\n";
    return;
  }
  std::string trips = std::to_string(1 + pick(3));
  text += "exec.loop " + std::to_string(slots++) + " trips affine_map<() -> (" +
          trips + ")> max " + trips + " node \"l\" {\n";
  addBlock(readable, depth);
  text += "}\n";
}

void Generator::addStep(Buffers &readable, std::vector<Flight> &flights,
                        int depth) {
  switch (pick(8)) {
  case 0:
  case 1:
    return addStart(readable, flights);
  case 2:
    return addWait(readable, flights);
  case 3:
    if (depth < 2 && pick(2))
      return addControl(readable, depth + 1);
    [[fallthrough]];
  default:
    return addLaunch(readable);
  }
}

void Generator::addBlock(Buffers readable, int depth) {
  std::vector<Flight> flights;
  for (int steps = (depth ? 3 : 10) + pick(depth ? 6 : 25); steps > 0; --steps)
    addStep(readable, flights, depth);
  while (!flights.empty())
    addWait(readable, flights);
}

std::string Generator::run() {
  int input = declare("input", 64, /*isIndexed=*/true);
  addBlock({input}, 0);
  std::string head = "exec.entry @main inputs [#exec.tensor<\"x\", "
                     "tensor<16xf32>>] outputs [] attributes {slots = ";
  return kKernels + head + std::to_string(slots) + " : i64} {\n" + text + "}\n";
}

std::string tcc::tests::makeRandomProgram(unsigned seed) {
  return Generator(seed).run();
}
