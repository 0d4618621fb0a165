#include "frontends/Einsum.h"
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

static void importEinsum(Call &call) {
  SmallVector<Value> operands = call.tensors("tensors");
  call.give(emitEinsum(call, call.text("equation"), operands));
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
