//===- Ngrams.cpp - How often short sequences of tokens occur -------------===//

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"
#include <set>

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

/// More comparisons of all places are not unrolled.
constexpr int64_t kMaxComparisons = 4096;

namespace {

/// The n-grams of one length that a TfIdfVectorizer node looks for.
struct Grams {
  int64_t length;
  SmallVector<int64_t> tokens;  // [n-gram, length]
  SmallVector<int64_t> columns; // [n-gram], of the result

  int64_t count() const { return columns.size(); }
};

struct Vocabulary {
  std::vector<Grams> grams;
  SmallVector<float> weights; ///< of all n-grams; empty for 1
  int64_t columns;            ///< the result's
  int64_t absent;             ///< a token that no n-gram has
  int64_t maxSkip;
  bool counts; ///< else what matters is whether an n-gram occurs
};

} // namespace

static bool isIn(int64_t value, int64_t low, int64_t high) {
  return value >= low && value <= high;
}

/// The n-grams of all lengths, without their columns; the node fails where the
/// attributes do not fit one another.
static std::vector<Grams> readPool(Node &node) {
  if (node.findAttr("pool_strings"))
    return node.unsupported("a pool of strings"), std::vector<Grams>();
  auto tokens = node.intsAttr("pool_int64s");
  auto starts = node.intsAttr("ngram_counts");
  std::vector<Grams> pool;
  if (!tokens || !starts || starts->empty() || starts->front() != 0)
    return node.fail("pool_int64s, and ngram_counts from 0 on, are expected"),
           pool;
  for (auto [i, start] : llvm::enumerate(*starts)) {
    int64_t length = i + 1, last = tokens->size();
    int64_t end = length < int64_t(starts->size()) ? (*starts)[length] : last;
    if (!isIn(start, 0, end) || end > last || (end - start) % length != 0) {
      node.fail("ngram_counts does not divide the pool's " + llvm::Twine(last) +
                " tokens into n-grams");
      return pool;
    }
    auto own = ArrayRef(*tokens).slice(start, end - start);
    Grams grams{length, SmallVector<int64_t>(own), {}};
    grams.columns.resize((end - start) / length);
    pool.push_back(std::move(grams));
  }
  return pool;
}

/// Gives the n-grams their columns; the number of these.
static int64_t readColumns(Node &node, std::vector<Grams> &pool) {
  auto indexes = node.intsAttr("ngram_indexes");
  size_t total = 0;
  for (const Grams &grams : pool)
    total += grams.columns.size();
  if (!indexes || indexes->empty() || indexes->size() != total)
    return node.fail("ngram_indexes needs " + llvm::Twine(total) + " values"),
           0;
  int64_t columns = 0;
  size_t next = 0;
  for (Grams &grams : pool)
    for (int64_t &column : grams.columns) {
      column = (*indexes)[next++];
      if (!isIn(column, 0, kMaxElements - 1))
        return node.fail("ngram_indexes are out of range"), 0;
      columns = std::max(columns, column + 1);
    }
  return columns;
}

/// Weights of the n-grams, in the order of the pool; empty for 1.
static SmallVector<float> readWeights(Node &node, size_t total, bool isUsed) {
  auto given = node.floatsAttr("weights");
  SmallVector<float> weights;
  if (!given || given->empty())
    return weights;
  if (given->size() != total)
    return node.fail("weights needs " + llvm::Twine(total) + " values"),
           weights;
  if (isUsed)
    llvm::append_range(weights, *given);
  return weights;
}

/// The node fails where an n-gram comes twice, or n-grams share a column
/// although `isWeighed`: what they have in common is not defined.
static void checkDistinct(Node &node, ArrayRef<Grams> pool, bool isWeighed) {
  std::set<int64_t> columns;
  for (const Grams &grams : pool) {
    std::set<std::vector<int64_t>> known;
    for (int64_t i = 0; i < grams.count(); ++i) {
      auto tokens =
          ArrayRef(grams.tokens).slice(i * grams.length, grams.length);
      if (!known.insert(tokens.vec()).second)
        return (void)node.fail("an n-gram comes twice in the pool");
      if (!columns.insert(grams.columns[i]).second && isWeighed)
        return (void)node.unsupported("n-grams of one column in a mode other "
                                      "than TF");
    }
  }
}

static int64_t findAbsent(ArrayRef<Grams> pool) {
  std::set<int64_t> known;
  for (const Grams &grams : pool)
    known.insert(grams.tokens.begin(), grams.tokens.end());
  int64_t absent = 0;
  while (known.count(absent))
    ++absent;
  return absent;
}

static std::optional<Vocabulary> readVocabulary(Node &node) {
  Vocabulary vocabulary;
  std::string mode = node.stringAttr("mode", "");
  int64_t shortest = node.intAttr("min_gram_length", 0);
  int64_t longest = node.intAttr("max_gram_length", 0);
  vocabulary.maxSkip = node.intAttr("max_skip_count", -1);
  vocabulary.counts = mode != "IDF";
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    node.fail("mode must be TF, IDF or TFIDF");
  else if (shortest < 1 || longest < shortest || vocabulary.maxSkip < 0)
    node.fail("min_gram_length, max_gram_length or max_skip_count is out of "
              "range");
  if (node.hasFailed())
    return std::nullopt;
  std::vector<Grams> pool = readPool(node);
  if (!node.hasFailed())
    vocabulary.columns = readColumns(node, pool);
  if (node.hasFailed())
    return std::nullopt;
  auto weights = readWeights(node, node.intsAttr("ngram_indexes")->size(),
                             /*isUsed=*/mode != "TF");
  checkDistinct(node, pool, mode != "TF");
  vocabulary.absent = findAbsent(pool);
  size_t first = 0;
  for (Grams &grams : pool) {
    size_t count = grams.count();
    if (isIn(grams.length, shortest, longest) && count > 0) {
      if (!weights.empty())
        llvm::append_range(vocabulary.weights,
                           ArrayRef(weights).slice(first, count));
      vocabulary.grams.push_back(std::move(grams));
    }
    first += count;
  }
  return node.hasFailed() ? std::nullopt : std::optional(std::move(vocabulary));
}

template <typename T>
static Value makeVector(Node &node, ArrayRef<T> numbers, Type type) {
  GraphImporter &importer = node.getImporter();
  return importer.materialize(
      *importer.makeLiteral(node.getProto().output(0) + ".vocabulary",
                            int64_t(numbers.size()), type, numbers));
}

/// The tokens at each place of n-grams, vectors [n-gram].
static SmallVector<Value> makePlaces(Node &node, const Grams &grams) {
  SmallVector<Value> places;
  for (int64_t i = 0; i < grams.length; ++i) {
    SmallVector<int64_t> tokens;
    for (int64_t gram = 0; gram < grams.count(); ++gram)
      tokens.push_back(grams.tokens[gram * grams.length + i]);
    places.push_back(makeVector(node, ArrayRef<int64_t>(tokens),
                                IntegerType::get(node.getContext(), 64)));
  }
  return places;
}

/// Where n-grams begin whose tokens are `distance` apart: [batch, place,
/// n-gram] of tokens [batch, place]. Those that would end beyond the last place
/// find a token that no n-gram has.
static Value findGrams(Node &node, Value tokens, ArrayRef<Value> places,
                       int64_t distance, int64_t absent) {
  int64_t behind = distance * int64_t(places.size() - 1);
  Value padded =
      node.pad(tokens, node.constant(double(absent), node.elementType(tokens)),
               {0, 0}, {0, behind});
  Value isFound;
  for (auto [i, place] : llvm::enumerate(places)) {
    Value own =
        node.slice(padded, 1, node.getSizes().constant(distance * int64_t(i)),
                   graph::getExtent(tokens, 1));
    Value isEqual =
        node.compare(CompareKind::eq, node.unsqueeze(own, {2}), place);
    isFound =
        i == 0 ? isEqual : node.pointwise<graph::AndOp>({isFound, isEqual});
  }
  return isFound;
}

/// How often each n-gram occurs at any distance that the node allows, [batch,
/// n-gram]; tokens alone have none. `left` comparisons may be made.
static Value countGrams(Node &node, Value tokens, const Grams &grams,
                        const Vocabulary &vocabulary, int64_t &left) {
  AffineExpr extent = graph::getExtent(tokens, 1);
  int64_t most = node.getSizes().getRange(extent).max;
  Type f32 = Float32Type::get(node.getContext());
  SmallVector<Value> places = makePlaces(node, grams);
  Value total;
  for (int64_t distance = 1; distance - 1 <= vocabulary.maxSkip; ++distance) {
    bool isOne = grams.length == 1;
    if (distance > 1 && (isOne || distance * (grams.length - 1) >= most))
      break;
    left -= grams.length;
    if (left < 0)
      return node.unsupported("more than " + llvm::Twine(kMaxComparisons) +
                              " comparisons, as max_skip_count and the lengths "
                              "ask for,");
    Value found = node.cast(
        findGrams(node, tokens, places, distance, vocabulary.absent), f32);
    total = distance == 1 ? found : node.add(total, found);
    if (!total)
      return nullptr;
  }
  return node.reduce(graph::ReduceKind::sum, total, {1}, /*keepAxes=*/false);
}

/// The counts, or what they weigh, of all n-grams in their columns.
static Value placeCounts(Node &node, Value counts, AffineExpr batch,
                         const Vocabulary &vocabulary) {
  Type f32 = Float32Type::get(node.getContext());
  if (!vocabulary.counts)
    counts = node.min(counts, node.constant(1, f32));
  if (!vocabulary.weights.empty())
    counts = node.mul(
        counts, makeVector(node, ArrayRef<float>(vocabulary.weights), f32));
  SmallVector<int64_t> columns;
  for (const Grams &grams : vocabulary.grams)
    llvm::append_range(columns, grams.columns);
  Type i64 = IntegerType::get(node.getContext(), 64);
  Value none =
      node.broadcast(node.constant(0, f32),
                     {batch, node.getSizes().constant(vocabulary.columns)});
  Value places =
      node.broadcast(makeVector(node, ArrayRef<int64_t>(columns), i64),
                     {batch, node.getSizes().constant(columns.size())});
  auto kind =
      graph::ScatterKindAttr::get(node.getContext(), graph::ScatterKind::add);
  return node.create<graph::ScatterElementsOp>(
      {none, places, counts},
      {node.attr("axis", int64_t(1)), node.attr("kind", kind)});
}

static void importTfIdfVectorizer(Node &node) {
  Value x = node.input(0);
  int64_t rank = node.rank(x);
  auto vocabulary = x ? readVocabulary(node) : std::nullopt;
  if (!vocabulary)
    return;
  Type own = node.elementType(x);
  if ((rank != 1 && rank != 2) || !(own.isInteger(32) || own.isInteger(64)))
    return (void)node.fail("tokens [place] or [batch, place] of type int32 or "
                           "int64 are expected");
  Value tokens = node.cast(x, IntegerType::get(node.getContext(), 64));
  if (rank == 1)
    tokens = node.unsqueeze(tokens, {0});
  if (!tokens)
    return;
  AffineExpr batch = graph::getExtent(tokens, 0);
  AffineExpr width = node.getSizes().constant(vocabulary->columns);
  int64_t left = kMaxComparisons;
  SmallVector<Value> counts;
  for (const Grams &grams : vocabulary->grams)
    counts.push_back(countGrams(node, tokens, grams, *vocabulary, left));
  Value result =
      counts.empty()
          ? node.broadcast(
                node.constant(0, Float32Type::get(node.getContext())),
                {batch, width})
          : placeCounts(node, node.concat(counts, 1), batch, *vocabulary);
  node.setResult(0, rank == 1 ? node.squeeze(result, {0}) : result);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"TfIdfVectorizer", 9, last, importTfIdfVectorizer},
};

ArrayRef<OpRow> getNgramOps() { return rows; }

} // namespace tcc::onnx_import
