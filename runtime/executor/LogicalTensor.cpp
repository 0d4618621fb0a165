#include "runtime/executor/LogicalTensor.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

static std::span<const int64_t>
spanOf(const flatbuffers::Vector<int64_t> &numbers) {
  return {numbers.data(), numbers.size()};
}

/// Elements of a shape, of which it was verified that they do not overflow.
static uint64_t countOf(std::span<const int64_t> shape) {
  uint64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

/// A variable that is one tensor, or a part of one.
static LogicalTensor describeWhole(const format::Variable &variable,
                                   size_t index) {
  LogicalTensor tensor = {};
  tensor.name = variable.name()->string_view();
  if (variable.parameter())
    tensor.parameter = variable.parameter()->string_view();
  tensor.dtype = variable.dtype();
  tensor.shape = spanOf(*variable.shape());
  if (variable.global_shape()) {
    tensor.extents = tensor.shape;
    tensor.offset = spanOf(*variable.offset());
    tensor.shape = spanOf(*variable.global_shape());
  }
  tensor.count = countOf(tensor.shape);
  tensor.variable = index;
  return tensor;
}

/// What lies in a variable that ranks divide.
static LogicalTensor describePiece(const format::Variable &variable,
                                   const format::Piece &piece, size_t index) {
  LogicalTensor tensor = {};
  tensor.name = piece.name()->string_view();
  if (piece.parameter())
    tensor.parameter = piece.parameter()->string_view();
  tensor.dtype = variable.dtype();
  tensor.shape = spanOf(*piece.shape());
  tensor.count = countOf(tensor.shape);
  tensor.variable = index;
  tensor.first = piece.begin();
  tensor.isDivided = true;
  return tensor;
}

std::vector<LogicalTensor>
runtime::listTensors(const format::Program &program) {
  std::vector<LogicalTensor> tensors;
  for (uint32_t i = 0; program.variables() && i < program.variables()->size();
       ++i) {
    const format::Variable &variable = *program.variables()->Get(i);
    if (variable.ranks() == 0)
      tensors.push_back(describeWhole(variable, i));
    for (uint32_t k = 0; variable.pieces() && k < variable.pieces()->size();
         ++k)
      tensors.push_back(describePiece(variable, *variable.pieces()->Get(k), i));
  }
  return tensors;
}

/// The rows of a part of a tensor; those that follow each other are one piece.
static void addRows(const LogicalTensor &tensor, size_t index,
                    std::vector<Piece> &pieces) {
  size_t rank = tensor.extents.size(), before = pieces.size();
  uint64_t row = tensor.extents.back(), count = countOf(tensor.extents);
  std::vector<int64_t> place(rank);
  for (uint64_t at = 0; at < count; at += row) {
    uint64_t begin = 0;
    for (size_t axis = 0; axis < rank; ++axis)
      begin = begin * tensor.shape[axis] + tensor.offset[axis] + place[axis];
    if (pieces.size() > before &&
        pieces.back().begin + pieces.back().count == begin)
      pieces.back().count += row;
    else
      pieces.push_back({index, begin, row, at});
    for (size_t axis = rank - 1;
         axis-- > 0 && ++place[axis] == tensor.extents[axis];)
      place[axis] = 0;
  }
}

std::vector<Piece>
runtime::cutPieces(std::span<const LogicalTensor> tensors, int rank,
                   const std::function<uint64_t(size_t)> &partCount) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const LogicalTensor &tensor = tensors[i];
    uint64_t part = partCount(tensor.variable);
    uint64_t from = tensor.isDivided ? part * rank : 0;
    uint64_t begin = std::max(tensor.first, from);
    uint64_t end = std::min(tensor.first + tensor.count, from + part);
    if (tensor.count == 0)
      pieces.push_back({i, 0, 0, 0});
    else if (!tensor.extents.empty())
      addRows(tensor, i, pieces);
    else if (begin < end)
      pieces.push_back({i, begin - tensor.first, end - begin, begin - from});
  }
  return pieces;
}
