#include "frontends/onnx/Contraction.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

/// A tensor with a letter for each of its axes. The axes of an ellipsis get the
/// characters from 1 on, counted from the end.
struct Term {
  Value value;
  std::string labels;
};

/// Writes the ellipsis of `text` as `count` labels; other than letters fails.
static std::optional<std::string> expandLabels(Node &node, StringRef text,
                                               int64_t count) {
  std::string labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("...")) {
      for (int64_t axis = count; axis > 0; --axis)
        labels += char(axis);
      i += 2;
    } else if (llvm::isAlpha(text[i])) {
      labels += text[i];
    } else {
      node.fail("equation has an unexpected character");
      return std::nullopt;
    }
  }
  return labels;
}

/// Keeps the diagonal of axes that share a label.
static Term takeDiagonals(Node &node, Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    size_t other = term.labels.find(term.labels[i], i + 1);
    if (other == std::string::npos)
      continue;
    Type index = IntegerType::get(node.getContext(), 64);
    graph::Extents extents = node.extents(term.value);
    Value onDiagonal =
        node.compare(graph::CompareKind::eq, node.iota(extents, i, index),
                     node.iota(extents, other, index));
    Value kept =
        node.select(onDiagonal, term.value, node.constantLike(0, term.value));
    term.value = node.reduce(ReduceKind::sum, kept, {int64_t(other)}, false);
    term.labels.erase(other, 1);
    --i; // a label may stand for three axes
    if (!term.value)
      return term;
  }
  return term;
}

/// Sums over the axes whose labels are not in `needed`.
static Term sumOut(Node &node, Term term, StringRef needed) {
  SmallVector<int64_t> axes;
  std::string kept;
  for (auto [axis, label] : llvm::enumerate(term.labels))
    if (needed.contains(label))
      kept += label;
    else
      axes.push_back(axis);
  return {node.reduce(ReduceKind::sum, term.value, axes, false), kept};
}

/// The axes in the order of `labels`.
static Value arrange(Node &node, const Term &term, StringRef labels) {
  SmallVector<int64_t> permutation;
  for (char label : labels)
    permutation.push_back(term.labels.find(label));
  return node.transpose(term.value, permutation);
}

/// Labels of `text` that are in all of `in` and none of `out`.
static std::string filter(StringRef text, ArrayRef<StringRef> in,
                          ArrayRef<StringRef> out) {
  std::string result;
  for (char label : text) {
    auto contains = [&](StringRef set) { return set.contains(label); };
    if (llvm::all_of(in, contains) && llvm::none_of(out, contains))
      result += label;
  }
  return result;
}

static AffineExpr getExtent(Node &node, const Term &term, char label) {
  return graph::getExtent(term.value, term.labels.find(label));
}

/// Gives the axes shared by both terms one extent: one may be the constant 1.
static bool broadcastShared(Node &node, Term &a, Term &b) {
  auto expand = [&](Term &term, const Term &other) {
    graph::Extents extents = node.extents(term.value);
    for (auto [axis, label] : llvm::enumerate(term.labels))
      if (other.labels.find(label) != std::string::npos &&
          graph::getConstant(extents[axis]) == 1)
        extents[axis] = getExtent(node, other, label);
    term.value = node.broadcast(term.value, extents);
    return term.value != nullptr;
  };
  return expand(a, b) && expand(b, a);
}

/// One product: [batch, m] x [contracted] x [n] as a matrix product.
static Term contract(Node &node, Term a, Term b, StringRef needed) {
  if (!broadcastShared(node, a, b))
    return {};
  std::string batch = filter(a.labels, {b.labels, needed}, {});
  std::string summed = filter(a.labels, {b.labels}, {needed});
  std::string rows = filter(a.labels, {needed}, {b.labels});
  std::string columns = filter(b.labels, {needed}, {a.labels});
  a = sumOut(node, a, batch + summed + rows);
  b = sumOut(node, b, batch + summed + columns);
  if (!a.value || !b.value)
    return {};
  auto collect = [&](const Term &term, StringRef labels) {
    graph::Extents extents;
    for (char label : labels)
      extents.push_back(getExtent(node, term, label));
    return extents;
  };
  graph::Extents batchExtents = collect(a, batch), result = batchExtents;
  graph::Extents m = collect(a, rows), n = collect(b, columns);
  Size rowCount = node.getSizes().product(m);
  Size columnCount = node.getSizes().product(n);
  Size depth = node.getSizes().product(collect(a, summed));
  if (!rowCount || !columnCount || !depth)
    return {node.fail("an operand is too large"), ""};
  graph::Extents lhs = batchExtents, rhs = batchExtents;
  lhs.append({*rowCount, *depth});
  rhs.append({*depth, *columnCount});
  Value product = node.matmul(
      node.reshape(arrange(node, a, batch + rows + summed), lhs),
      node.reshape(arrange(node, b, batch + summed + columns), rhs));
  result.append(m);
  result.append(n);
  return {node.reshape(product, result), batch + rows + columns};
}

/// The output's labels where the equation has none: those used once, sorted.
static std::string getImplicitOutput(StringRef inputs) {
  std::string letters, ellipsis;
  for (char label : inputs)
    if (llvm::isAlpha(label) && inputs.count(label) == 1)
      letters += label;
    else if (!llvm::isAlpha(label) && !StringRef(ellipsis).contains(label))
      ellipsis += label;
  llvm::sort(letters);
  llvm::sort(ellipsis, std::greater<char>());
  return ellipsis + letters;
}

/// Reads the terms; the longest ellipsis in `ellipsisRank`.
static std::optional<SmallVector<Term>> readTerms(Node &node, StringRef inputs,
                                                  int64_t &ellipsisRank) {
  SmallVector<StringRef> texts;
  inputs.split(texts, ',');
  if (int64_t(texts.size()) != node.getNumInputs()) {
    node.fail("equation has " + llvm::Twine(texts.size()) + " terms for " +
              llvm::Twine(node.getNumInputs()) + " inputs");
    return std::nullopt;
  }
  SmallVector<Term> terms;
  for (auto [i, text] : llvm::enumerate(texts)) {
    Value value = node.input(i);
    int64_t letters = text.size() - 3 * text.count("...");
    int64_t hidden = text.contains("...") ? node.rank(value) - letters : 0;
    auto labels = expandLabels(node, text, std::clamp<int64_t>(hidden, 0, 32));
    if (!labels || !value)
      return std::nullopt;
    if (int64_t(labels->size()) != node.rank(value)) {
      node.fail("equation term " + llvm::Twine(i) + " does not have the rank " +
                llvm::Twine(node.rank(value)) + " of its input");
      return std::nullopt;
    }
    ellipsisRank = std::max(ellipsisRank, hidden);
    terms.push_back({value, *labels});
  }
  return terms;
}

void importEinsum(Node &node) {
  std::string equation = node.stringAttr("equation", "");
  llvm::erase(equation, ' ');
  auto [inputs, outputText] = StringRef(equation).split("->");
  int64_t ellipsisRank = 0;
  auto terms = readTerms(node, inputs, ellipsisRank);
  if (!terms)
    return;
  std::string all;
  for (const Term &term : *terms)
    all += term.labels;
  auto output = StringRef(equation).contains("->")
                    ? expandLabels(node, outputText, ellipsisRank)
                    : std::optional(getImplicitOutput(all));
  if (!output)
    return;
  for (char label : *output)
    if (StringRef(all).count(label) == 0 ||
        StringRef(*output).count(label) != 1)
      return (void)node.fail("equation has a wrong output");
  Term result = takeDiagonals(node, terms->front());
  for (size_t i = 1; i < terms->size() && result.value; ++i) {
    std::string needed = *output;
    for (const Term &later : ArrayRef(*terms).drop_front(i + 1))
      needed += later.labels;
    result = contract(node, result, takeDiagonals(node, (*terms)[i]), needed);
  }
  if (node.hasFailed())
    return;
  result = sumOut(node, result, *output);
  if (result.value)
    node.setResult(0, arrange(node, result, *output));
}

} // namespace tcc::onnx_import
