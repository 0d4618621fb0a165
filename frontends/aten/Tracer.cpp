#include "frontends/aten/Tracer.h"

#include "dialects/graph/NodeNames.h"
#include "frontends/plugin/Operator.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tcc::aten {

using Kind = Item::Kind;

/// Larger constants are weights.
constexpr int64_t kMaxConstantBytes = 64 << 10;

/// Where a tensor lies and what it may be shared with: nothing is computed from
/// it.
static bool isPlacement(StringRef name) {
  static const llvm::StringSet<> names = {
      "device",        "layout",   "pin_memory",  "non_blocking",
      "memory_format", "implicit", "sparse_grad", "cudnn_enabled"};
  return names.contains(name);
}

// --- Variables ---------------------------------------------------------------

Variable *Tracer::makeVariable(Value value) {
  variables.emplace_back();
  variables.back().value = value;
  return &variables.back();
}

bool Tracer::noteIndices(Value value) {
  Value origin = getOrigin(value);
  if (!untyped.contains(origin))
    return false;
  indices.insert(origin);
  return true;
}

Variable *Tracer::makeStored(Weight weight) {
  Variable *variable = makeVariable(nullptr);
  variable->stored = std::move(weight);
  return variable;
}

Variable *Tracer::makeNumber(Item number) {
  Variable *variable = makeVariable(nullptr);
  variable->number = std::move(number);
  return variable;
}

static DenseElementsAttr makeDense(const Weight &weight) {
  if (weight.type.getNumElements() == 0)
    return DenseElementsAttr::get(weight.type, ArrayRef<Attribute>());
  if (!weight.type.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(weight.type, weight.bytes);
  SmallVector<bool> bits;
  for (char byte : weight.bytes)
    bits.push_back(byte != 0);
  return DenseElementsAttr::get(weight.type, bits);
}

/// Small integers are constants, what may be trained is a weight.
Value Tracer::makeStoredValue(Emitter &emitter, Weight weight) {
  bool isFloat = isa<FloatType>(weight.type.getElementType());
  bool isSmall = getByteSize(weight.type) <= kMaxConstantBytes &&
                 (!isFloat || weight.type.getNumElements() <= 1) &&
                 weight.role != WeightRole::parameter;
  bool isLeftOut = int64_t(weight.bytes.size()) != getByteSize(weight.type);
  Weight &added = weights.add(std::move(weight));
  if (!isSmall || isLeftOut) {
    auto name = builder.getStringAttr(added.name);
    return emitter.create<graph::WeightOp>({}, {emitter.attr("name", name)},
                                           added.type);
  }
  added.structural = true;
  return emitter.create<graph::ConstantOp>(
      {}, {emitter.attr("value", makeDense(added))}, added.type);
}

Value Tracer::materialize(Emitter &emitter, Variable &variable) {
  if (emitter.hasFailed())
    return nullptr;
  if (variable.value || variable.base)
    return read(emitter, variable);
  if (variable.number) {
    const Item &number = *variable.number;
    Type type = number.is(Kind::real)      ? Type(builder.getF32Type())
                : number.is(Kind::boolean) ? Type(builder.getI1Type())
                                           : Type(builder.getI64Type());
    if (number.is(Kind::real))
      return variable.value = emitter.constant(number.number, type);
    return variable.value = emitter.cast(emitter.size(number.size), type);
  }
  OpBuilder constants(entry, entry->begin());
  if (lastStored)
    constants.setInsertionPointAfter(lastStored);
  auto loc = NameLoc::get(builder.getStringAttr(variable.stored->name));
  Emitter stored(constants, loc, sizes);
  variable.value = makeStoredValue(stored, *variable.stored);
  if (!variable.value)
    return emitter.fail(stored.getMessage());
  lastStored = variable.value.getDefiningOp();
  return variable.value;
}

RankedTensorType Tracer::getType(Variable &variable) {
  if (variable.value)
    return cast<RankedTensorType>(variable.value.getType());
  if (variable.stored)
    return variable.stored->type;
  Emitter emitter(builder, builder.getUnknownLoc(), sizes);
  Value value = materialize(emitter, variable);
  return value ? cast<RankedTensorType>(value.getType()) : nullptr;
}

const HostTensor *Tracer::getElements(Variable &variable) {
  Emitter emitter(builder, builder.getUnknownLoc(), sizes);
  Value value = materialize(emitter, variable);
  return value ? known.evaluate(value) : nullptr;
}

std::optional<Item> Tracer::getNumber(Variable &variable) {
  if (variable.number)
    return variable.number;
  const HostTensor *elements = getElements(variable);
  if (!elements || elements->elements.size() != 1)
    return std::nullopt;
  known.markStructural(variable.value);
  if (elements->isFloat())
    return Item::ofReal(elements->elements[0].f);
  Type type = elements->type.getElementType();
  AffineExpr size = sizes.constant(getInteger(elements->elements[0], type));
  return type.isInteger(1) ? Item::ofBoolean(size) : Item::ofInteger(size);
}

// --- Overloads ---------------------------------------------------------------

bool Tracer::bind(const Schema &schema, const Request &request,
                  SmallVectorImpl<Item> &arguments, std::string &refusal) {
  size_t count = schema.parameters.size();
  SmallVector<bool> isGiven(count, false);
  arguments.assign(count, Item());
  size_t next = 0;
  for (const Item &item : request.positional) {
    if (next == count || schema.parameters[next].isKeyword) {
      refusal = "has too many arguments";
      return false;
    }
    arguments[next] = item;
    isGiven[next++] = true;
  }
  for (const auto &[name, item] : request.named) {
    auto position = schema.find(name);
    if (!position && isPlacement(name))
      continue;
    if (!position || isGiven[*position]) {
      refusal = ("argument '" + name + "' is unknown or given twice").str();
      return false;
    }
    arguments[*position] = item;
    isGiven[*position] = true;
  }
  for (size_t i = 0; i < count; ++i) {
    const Parameter &parameter = schema.parameters[i];
    if (!isGiven[i] && parameter.fallback) {
      arguments[i] = readDefault(*parameter.fallback, builder.getContext());
    } else if (!isGiven[i] || !parameter.accepts(arguments[i])) {
      refusal = ("argument '" + parameter.name + "' is " +
                 (isGiven[i] ? getKindName(arguments[i]) : "missing"))
                    .str();
      return false;
    }
  }
  return true;
}

const Overload *Tracer::select(const Request &request,
                               ArrayRef<Overload> overloads,
                               SmallVectorImpl<Item> &arguments,
                               std::string &refusal) {
  for (const Overload &overload : overloads)
    if (bind(overload.schema, request, arguments, refusal))
      return &overload;
  return nullptr;
}

// --- Calls -------------------------------------------------------------------

void Tracer::report(const Request &request, ProblemClass kind,
                    std::string message) {
  if (!request.place.empty())
    message += ", at " + request.place;
  problems.add({kind, request.node, request.name.str(), std::move(message)});
}

/// Puts the call's result into its first argument, in that one's type.
bool Tracer::writeResult(Call &call, const Item &self) {
  if (!self.is(Kind::tensor) || call.getResults().size() != 1 ||
      !call.getResults()[0].is(Kind::tensor)) {
    call.fail("is not an operator of a tensor");
    return false;
  }
  Value old = materialize(call, *self.tensor);
  Value value = materialize(call, *call.getResults()[0].tensor);
  if (!old || !value)
    return false;
  value = call.broadcast(call.castTo(value, call.elementType(old)),
                         call.extents(old));
  if (value)
    write(call, *self.tensor, value);
  return !call.hasFailed();
}

/// The results as the code sees them; those that only move elements of the
/// first argument are views of it.
Item Tracer::takeResults(const Call &call, ArrayRef<Item> arguments) {
  ArrayRef<Item> results = call.getResults();
  if (call.getSchema().isView && arguments[0].is(Kind::tensor))
    for (const Item &result : results)
      if (result.is(Kind::tensor) && result.tensor != arguments[0].tensor)
        (call.getSchema().mayCopy ? setBaseOrCopy : setBase)(
            *result.tensor, *arguments[0].tensor);
  if (call.getSchema().isList)
    return Item::ofItems(Kind::list, results.vec());
  if (results.size() == 1)
    return results[0];
  return results.empty() ? Item() : Item::ofItems(Kind::tuple, results.vec());
}

Location Tracer::getLocation(const Request &request) const {
  if (enclosing)
    return *enclosing;
  bool isCustom = request.name.contains("::");
  return makeNodeLocation(
      builder.getContext(),
      {.name = request.node,
       .op = isCustom ? request.name.str() : ("aten." + request.name).str(),
       .module = request.site});
}

Tracer::Within::Within(Tracer &tracer, const Request &request)
    : tracer(tracer), outer(tracer.enclosing) {
  tracer.enclosing = tracer.getLocation(request);
  ++tracer.bodyDepth;
}

Tracer::Within::~Within() {
  tracer.enclosing = outer;
  --tracer.bodyDepth;
}

std::optional<Item> Tracer::run(const Request &request) {
  StringRef name = request.name;
  if (const plugin::Operator *op = operators ? operators->find(name) : nullptr)
    return plugin::call(*op, *this, request);
  bool isInPlace = name.ends_with("_") && !name.ends_with("__");
  ArrayRef<Overload> overloads =
      findOverloads(isInPlace ? name.drop_back() : name);
  if (overloads.empty()) {
    report(request, ProblemClass::unsupported, "is not supported");
    return std::nullopt;
  }
  SmallVector<Item> arguments;
  std::string refusal;
  const Overload *overload = select(request, overloads, arguments, refusal);
  if (!overload) {
    report(request, ProblemClass::unsupported, refusal);
    return std::nullopt;
  }
  site = request.site.empty() ? request.node : request.site;
  Call call(*this, overload->schema, arguments, getLocation(request));
  overload->row->import(call);
  if (!call.hasFailed() && isInPlace) {
    writeResult(call, arguments[0]);
    if (!call.hasFailed())
      return arguments[0];
  }
  if (!call.hasFailed())
    return takeResults(call, arguments);
  report(request,
         call.isUnsupported() ? ProblemClass::unsupported
                              : ProblemClass::badBytes,
         call.getMessage());
  return std::nullopt;
}

} // namespace tcc::aten
