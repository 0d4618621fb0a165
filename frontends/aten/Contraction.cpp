#include "frontends/aten/Call.h"

using namespace mlir;

namespace tcc::aten {

/// self times other, whatever the second parameter's name is.
static void importProduct(Call &call) {
  StringRef second = call.getSchema().parameters[1].name;
  call.give(call.product(call.tensor("self"), call.tensor(second)));
}

/// x weight^T + bias
static void importLinear(Call &call) {
  Value x = call.tensor("input"), weight = call.tensor("weight");
  if (!x || !weight)
    return;
  if (call.rank(weight) != 2 || call.rank(x) < 1)
    return (void)call.fail("a matrix of weights is expected");
  Value row = call.rank(x) == 1 ? call.unsqueeze(x, {0}) : x;
  Value y = call.matmul(row, weight, false, true);
  if (call.rank(x) == 1)
    y = call.squeeze(y, {0});
  Value bias = call.optional("bias");
  call.give(bias ? call.add(y, bias) : y);
}

/// beta self + alpha (first second)
static void importAddProduct(Call &call) {
  const Schema &schema = call.getSchema();
  Value x = call.tensor("self");
  Value product = call.product(call.tensor(schema.parameters[1].name),
                               call.tensor(schema.parameters[2].name));
  auto scale = [&](Value value, StringRef name) {
    double factor = call.real(name);
    return factor == 1 ? value
                       : call.mul(value, call.constantLike(factor, value));
  };
  if (getNumber(call.get("beta")) == 0.0)
    return call.give(scale(product, "alpha"));
  call.give(call.add(scale(product, "alpha"), scale(x, "beta")));
}

static void importOuter(Call &call) {
  Value x = call.tensor("self"), y = call.tensor("vec2");
  if (x && y && (call.rank(x) != 1 || call.rank(y) != 1))
    return (void)call.fail("vectors are expected");
  call.give(call.mul(call.unsqueeze(x, {1}), y));
}

// --- Sums of products --------------------------------------------------------

namespace {

/// An operand of einsum: a letter for each axis.
struct Factor {
  std::string letters;
  Value value;
};

} // namespace

/// The axes of `factor` in the order of `letters`, of which it may lack some:
/// these get extent 1.
static Value arrange(Call &call, const Factor &factor, StringRef letters) {
  SmallVector<int64_t> permutation, missing;
  for (auto [i, letter] : llvm::enumerate(letters)) {
    size_t axis = factor.letters.find(letter);
    if (axis == std::string::npos)
      missing.push_back(i);
    else
      permutation.push_back(axis);
  }
  Value moved = call.transpose(factor.value, permutation);
  return missing.empty() ? moved : call.unsqueeze(moved, missing);
}

/// The product of two factors; letters that nothing else needs are summed.
static Factor multiply(Call &call, const Factor &a, const Factor &b,
                       StringRef needed) {
  std::string batch, rows, columns, inner;
  for (char letter : a.letters) {
    bool isShared = b.letters.find(letter) != std::string::npos;
    bool isNeeded = needed.contains(letter);
    (isShared ? (isNeeded ? batch : inner) : rows) += letter;
  }
  for (char letter : b.letters)
    if (a.letters.find(letter) == std::string::npos)
      columns += letter;
  Value lhs = arrange(call, a, batch + rows + inner);
  Value rhs = arrange(call, b, batch + inner + columns);
  if (!lhs || !rhs)
    return {"", nullptr};
  auto flatten = [&](Value x, ArrayRef<size_t> counts) {
    graph::Extents all = call.extents(x), merged;
    size_t first = 0;
    for (size_t count : counts) {
      Size size = call.getSizes().product(ArrayRef(all).slice(first, count));
      merged.push_back(size ? *size : call.getSizes().constant(0));
      first += count;
    }
    return call.reshape(x, merged);
  };
  graph::Extents result = call.extents(lhs);
  result.truncate(batch.size() + rows.size());
  graph::Extents right = call.extents(rhs);
  result.append(right.end() - columns.size(), right.end());
  Value product =
      call.matmul(flatten(lhs, {batch.size(), rows.size(), inner.size()}),
                  flatten(rhs, {batch.size(), inner.size(), columns.size()}));
  return {batch + rows + columns, call.reshape(product, result)};
}

static void importEinsum(Call &call) {
  std::string equation = call.text("equation");
  llvm::erase(equation, ' ');
  auto [inputs, output] = StringRef(equation).split("->");
  SmallVector<StringRef> terms;
  inputs.split(terms, ',');
  auto values = call.tensors("tensors");
  if (!StringRef(equation).contains("->") ||
      equation.find('.') != std::string::npos)
    return (void)call.unsupported("an equation with ... or without ->");
  if (terms.size() != values.size() || values.empty())
    return (void)call.fail("the equation does not fit the tensors");
  std::vector<Factor> factors;
  for (auto [term, value] : llvm::zip(terms, values)) {
    std::string letters = term.str();
    std::string sorted = letters;
    llvm::sort(sorted);
    if (std::unique(sorted.begin(), sorted.end()) != sorted.end())
      return (void)call.unsupported("a letter twice in one operand");
    if (!value || call.rank(value) != int64_t(letters.size()))
      return (void)call.fail("the equation does not fit the tensors");
    factors.push_back({letters, value});
  }
  Factor result = factors.front();
  for (size_t i = 1; i < factors.size(); ++i) {
    std::string needed = output.str();
    for (size_t j = i + 1; j < factors.size(); ++j)
      needed += factors[j].letters;
    result = multiply(call, result, factors[i], needed);
    if (!result.value)
      return;
  }
  // Letters of one operand alone that the output lacks are summed.
  SmallVector<int64_t> summed;
  std::string kept;
  for (auto [axis, letter] : llvm::enumerate(result.letters)) {
    if (output.contains(letter))
      kept += letter;
    else
      summed.push_back(axis);
  }
  if (kept.size() != output.size())
    return (void)call.fail("the output has a letter that no operand has");
  Value y = call.reduce(graph::ReduceKind::sum, result.value, summed, false);
  call.give(arrange(call, {kept, y}, output));
}

static const OpRow rows[] = {
    {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
     "alpha=1) -> Tensor",
     importAddProduct},
    {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, "
     "Scalar alpha=1) -> Tensor",
     importAddProduct},
    {"bmm(Tensor self, Tensor mat2) -> Tensor", importProduct},
    {"dot(Tensor self, Tensor tensor) -> Tensor", importProduct},
    {"einsum(str equation, Tensor[] tensors, *, Any? path=None) -> Tensor",
     importEinsum},
    {"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
     importLinear},
    {"matmul(Tensor self, Tensor other) -> Tensor", importProduct},
    {"mm(Tensor self, Tensor mat2) -> Tensor", importProduct},
    {"mv(Tensor self, Tensor vec) -> Tensor", importProduct},
    {"outer(Tensor self, Tensor vec2) -> Tensor", importOuter},
};

ArrayRef<OpRow> getContractionOps() { return rows; }

} // namespace tcc::aten
