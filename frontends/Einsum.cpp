#include "frontends/Einsum.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using tcc::graph::ReduceKind;

namespace tcc {

/// A tensor with a letter for each of its axes. The axes of an ellipsis get the
/// characters from 1 on, counted from the end.
struct Term {
  Value value;
  std::string labels;
};

/// Writes the ellipsis of `text` as `count` labels; other than letters fails.
static std::optional<std::string> expandLabels(Emitter &emitter, StringRef text,
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
      emitter.fail("equation has an unexpected character");
      return std::nullopt;
    }
  }
  return labels;
}

/// Keeps the diagonal of axes that share a label.
static Term takeDiagonals(Emitter &emitter, Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    size_t other = term.labels.find(term.labels[i], i + 1);
    if (other == std::string::npos)
      continue;
    Type index = IntegerType::get(emitter.getContext(), 64);
    graph::Extents extents = emitter.extents(term.value);
    Value onDiagonal =
        emitter.compare(graph::CompareKind::eq, emitter.iota(extents, i, index),
                        emitter.iota(extents, other, index));
    Value kept = emitter.select(onDiagonal, term.value,
                                emitter.constantLike(0, term.value));
    term.value = emitter.reduce(ReduceKind::sum, kept, {int64_t(other)}, false);
    term.labels.erase(other, 1);
    --i; // a label may stand for three axes
    if (!term.value)
      return term;
  }
  return term;
}

/// Sums over the axes whose labels are not in `needed`.
static Term sumOut(Emitter &emitter, Term term, StringRef needed) {
  SmallVector<int64_t> axes;
  std::string kept;
  for (auto [axis, label] : llvm::enumerate(term.labels))
    if (needed.contains(label))
      kept += label;
    else
      axes.push_back(axis);
  return {emitter.reduce(ReduceKind::sum, term.value, axes, false), kept};
}

/// The axes in the order of `labels`.
static Value arrange(Emitter &emitter, const Term &term, StringRef labels) {
  SmallVector<int64_t> permutation;
  for (char label : labels)
    permutation.push_back(term.labels.find(label));
  return emitter.transpose(term.value, permutation);
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

static AffineExpr getExtent(Emitter &emitter, const Term &term, char label) {
  return graph::getExtent(term.value, term.labels.find(label));
}

/// Gives the axes shared by both terms one extent: one may be the constant 1.
static bool broadcastShared(Emitter &emitter, Term &a, Term &b) {
  auto expand = [&](Term &term, const Term &other) {
    graph::Extents extents = emitter.extents(term.value);
    for (auto [axis, label] : llvm::enumerate(term.labels))
      if (other.labels.find(label) != std::string::npos &&
          graph::getConstant(extents[axis]) == 1)
        extents[axis] = getExtent(emitter, other, label);
    term.value = emitter.broadcast(term.value, extents);
    return term.value != nullptr;
  };
  return expand(a, b) && expand(b, a);
}

/// One product: [batch, m] x [contracted] x [n] as a matrix product.
static Term contract(Emitter &emitter, Term a, Term b, StringRef needed) {
  if (!broadcastShared(emitter, a, b))
    return {};
  std::string batch = filter(a.labels, {b.labels, needed}, {});
  std::string summed = filter(a.labels, {b.labels}, {needed});
  std::string rows = filter(a.labels, {needed}, {b.labels});
  std::string columns = filter(b.labels, {needed}, {a.labels});
  a = sumOut(emitter, a, batch + summed + rows);
  b = sumOut(emitter, b, batch + summed + columns);
  if (!a.value || !b.value)
    return {};
  auto collect = [&](const Term &term, StringRef labels) {
    graph::Extents extents;
    for (char label : labels)
      extents.push_back(getExtent(emitter, term, label));
    return extents;
  };
  graph::Extents batchExtents = collect(a, batch), result = batchExtents;
  graph::Extents m = collect(a, rows), n = collect(b, columns);
  Size rowCount = emitter.getSizes().product(m);
  Size columnCount = emitter.getSizes().product(n);
  Size depth = emitter.getSizes().product(collect(a, summed));
  if (!rowCount || !columnCount || !depth)
    return {emitter.fail("an operand is too large"), ""};
  graph::Extents lhs = batchExtents, rhs = batchExtents;
  lhs.append({*rowCount, *depth});
  rhs.append({*depth, *columnCount});
  Value product = emitter.matmul(
      emitter.reshape(arrange(emitter, a, batch + rows + summed), lhs),
      emitter.reshape(arrange(emitter, b, batch + summed + columns), rhs));
  result.append(m);
  result.append(n);
  return {emitter.reshape(product, result), batch + rows + columns};
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
static std::optional<SmallVector<Term>> readTerms(Emitter &emitter,
                                                  StringRef inputs,
                                                  ArrayRef<Value> operands,
                                                  int64_t &ellipsisRank) {
  SmallVector<StringRef> texts;
  inputs.split(texts, ',');
  if (texts.size() != operands.size()) {
    emitter.fail("equation has " + llvm::Twine(texts.size()) + " terms for " +
                 llvm::Twine(operands.size()) + " inputs");
    return std::nullopt;
  }
  SmallVector<Term> terms;
  for (auto [i, text] : llvm::enumerate(texts)) {
    Value value = operands[i];
    int64_t letters = text.size() - 3 * text.count("...");
    int64_t hidden = text.contains("...") ? emitter.rank(value) - letters : 0;
    auto labels =
        expandLabels(emitter, text, std::clamp<int64_t>(hidden, 0, 32));
    if (!labels || !value)
      return std::nullopt;
    if (int64_t(labels->size()) != emitter.rank(value)) {
      emitter.fail("equation term " + llvm::Twine(i) +
                   " does not have the rank " +
                   llvm::Twine(emitter.rank(value)) + " of its input");
      return std::nullopt;
    }
    ellipsisRank = std::max(ellipsisRank, hidden);
    terms.push_back({value, *labels});
  }
  return terms;
}

Value emitEinsum(Emitter &emitter, std::string equation,
                 ArrayRef<Value> operands) {
  llvm::erase(equation, ' ');
  auto [inputs, outputText] = StringRef(equation).split("->");
  int64_t ellipsisRank = 0;
  auto terms = readTerms(emitter, inputs, operands, ellipsisRank);
  if (!terms)
    return nullptr;
  std::string all;
  for (const Term &term : *terms)
    all += term.labels;
  auto output = StringRef(equation).contains("->")
                    ? expandLabels(emitter, outputText, ellipsisRank)
                    : std::optional(getImplicitOutput(all));
  if (!output)
    return nullptr;
  for (char label : *output)
    if (StringRef(all).count(label) == 0 ||
        StringRef(*output).count(label) != 1)
      return emitter.fail("equation has a wrong output");
  Term result = takeDiagonals(emitter, terms->front());
  for (size_t i = 1; i < terms->size() && result.value; ++i) {
    std::string needed = *output;
    for (const Term &later : ArrayRef(*terms).drop_front(i + 1))
      needed += later.labels;
    result =
        contract(emitter, result, takeDiagonals(emitter, (*terms)[i]), needed);
  }
  if (emitter.hasFailed())
    return nullptr;
  result = sumOut(emitter, result, *output);
  return result.value ? arrange(emitter, result, *output) : nullptr;
}

} // namespace tcc
