#include "frontends/Signature.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

using namespace mlir;

namespace tcc {

void Signature::usage(const llvm::Twine &message) {
  problems.add(ProblemClass::usage, message.str());
}

const InputLength *Signature::findLength(const std::string &name,
                                         bool isSequence, bool isOptional) {
  containers.insert(name);
  auto given =
      llvm::find_if(options.inputLengths, [&](const InputLength &length) {
        return length.name == name;
      });
  std::string kind = !isSequence  ? "an optional"
                     : isOptional ? "an optional sequence"
                                  : "a sequence";
  if (given == options.inputLengths.end()) {
    usage("input '" + name + "' is " + kind + "; give --input-length " + name +
          (isSequence ? "=N" : "=1") +
          (isOptional ? " or " + name + "=none" : ""));
    return nullptr;
  }
  int64_t least = isSequence ? 0 : 1, most = isSequence ? kMaxContent : 1;
  bool isValid = given->count ? *given->count >= least && *given->count <= most
                              : isOptional;
  if (isValid)
    return &*given;
  usage("input '" + name + "' is " + kind + ", whose length is " +
        llvm::Twine(least) + (isSequence ? ".." + llvm::Twine(most) : "") +
        (isOptional ? " or none" : ""));
  return nullptr;
}

void Signature::add(DeclaredInput declared) {
  Input input{declared.name, declared.elementType, {}};
  auto given = llvm::find_if(options.inputShapes, [&](const InputShape &shape) {
    return shape.name == declared.name;
  });
  if (declared.dims)
    input.dims = std::move(*declared.dims);
  else if (given == options.inputShapes.end())
    usage("input '" + declared.name +
          "' has no shape in the model; give --input-shape");
  else
    for (size_t axis = 0; axis < given->extents.size(); ++axis)
      input.dims.push_back({declared.name + "." + std::to_string(axis)});
  inputs.push_back(std::move(input));
}

// --- What the options say ----------------------------------------------------

void Signature::bind(DimBinding binding) {
  // The bounds become multiples of the step themselves.
  binding.min = llvm::divideCeil(binding.min, binding.step) * binding.step;
  binding.max = binding.max / binding.step * binding.step;
  if (binding.min > binding.max)
    return usage("dimension '" + binding.name + "' has no size in its range");
  auto [entry, isNew] = bindings.try_emplace(binding.name, binding);
  const DimBinding &other = entry->second;
  if (!isNew && (other.min != binding.min || other.max != binding.max ||
                 other.step != binding.step || other.sizes != binding.sizes))
    usage("dimension '" + binding.name + "' is given two sizes");
}

void Signature::applyShape(Input &input, const InputShape &shape) {
  if (shape.extents.size() != input.dims.size())
    return usage("input '" + shape.name + "' has rank " +
                 llvm::Twine(input.dims.size()) + ", the shape given has " +
                 llvm::Twine(shape.extents.size()));
  for (auto [axis, extent] : llvm::enumerate(shape.extents)) {
    const Dim &dim = input.dims[axis];
    if (!dim.name.empty())
      bind({dim.name, extent, extent});
    else if (dim.extent != extent)
      usage("axis " + llvm::Twine(axis) + " of input '" + shape.name +
            "' has extent " + llvm::Twine(dim.extent) + ", not " +
            llvm::Twine(extent));
  }
}

void Signature::applyInputShapes() {
  for (const InputShape &shape : options.inputShapes) {
    auto input = llvm::find_if(
        inputs, [&](const Input &i) { return i.name == shape.name; });
    if (input == inputs.end())
      usage("no input is named '" + shape.name + "'");
    else
      applyShape(*input, shape);
  }
}

void Signature::bindDims() {
  llvm::StringSet<> names;
  for (const Input &input : inputs)
    for (const Dim &dim : input.dims)
      names.insert(dim.name);
  for (const DimBinding &binding : options.dims) {
    if (!names.contains(binding.name))
      usage("no input has a dimension '" + binding.name + "'");
    bind(binding);
  }
}

void Signature::checkRanges() {
  llvm::StringSet<> checked;
  for (const Input &input : inputs)
    for (const Dim &dim : input.dims) {
      auto binding = bindings.find(dim.name);
      if (dim.name.empty() || binding == bindings.end() ||
          !checked.insert(dim.name).second)
        continue;
      if (binding->second.min < dim.min || binding->second.max > dim.max)
        usage("dimension '" + dim.name + "' of the model is in " +
              llvm::Twine(dim.min) + ".." + llvm::Twine(dim.max));
    }
}

void Signature::checkLists() {
  const DimBinding *first = nullptr;
  std::vector<std::vector<int64_t>> variants;
  for (const auto &entry : bindings) {
    const DimBinding &binding = entry.second;
    if (binding.sizes.empty())
      continue;
    if (!first)
      first = &binding;
    if (binding.sizes.size() != first->sizes.size())
      return usage("dimension '" + first->name + "' has " +
                   llvm::Twine(first->sizes.size()) + " sizes and '" +
                   binding.name + "' " + llvm::Twine(binding.sizes.size()) +
                   ": lists are paired by place");
    variants.resize(binding.sizes.size());
    for (auto [sizes, size] : llvm::zip_equal(variants, binding.sizes))
      sizes.push_back(size);
  }
  llvm::sort(variants);
  if (std::adjacent_find(variants.begin(), variants.end()) != variants.end())
    usage("dimension '" + first->name +
          "': two variants of the program have the same sizes");
  if (first && !options.states.empty())
    usage("dimension '" + first->name +
          "' has several sizes, which states do not go with");
}

/// What `symbol` is in each variant, where its dimension has a list.
void Signature::addSizes(const std::string &symbol, const DimBinding &binding) {
  if (binding.sizes.empty())
    return;
  variants.resize(binding.sizes.size());
  for (auto [values, size] : llvm::zip_equal(variants, binding.sizes))
    values[symbol] = size / binding.step;
}

void Signature::findBatch() {
  std::string common;
  for (const Input &input : inputs) {
    if (input.dims.empty())
      continue;
    const std::string &name = input.dims[0].name;
    if (name.empty() || (!common.empty() && name != common))
      return;
    common = name;
  }
  batch = common;
}

void Signature::bindBatch() {
  if (batch.empty() || bindings.contains(batch))
    return;
  int64_t min = options.minBatch, max = options.maxBatch;
  if (min < max)
    for (const Input &input : inputs) {
      if (input.dims.empty())
        continue;
      min = std::max(min, input.dims[0].min);
      max = std::min(max, input.dims[0].max);
    }
  bind({batch, min, max});
  if (min != 1 || max != 1)
    return;
  notes.push_back("dimension '" + batch +
                  "' is the batch: it is 1 unless --dim " + batch +
                  "=N is given");
}

std::string Signature::getBatch() const {
  // One in steps, or bound to a size, is no symbol.
  auto symbol = dyn_cast_if_present<AffineSymbolExpr>(extents.lookup(batch));
  return symbol ? sizes.getSymbols()[symbol.getPosition()].getName().str()
                : std::string();
}

AffineExpr Signature::getExtent(const Input &input, const Dim &dim) {
  auto check = [&](int64_t extent) {
    if (extent > kMaxElements)
      problems.add(ProblemClass::badBytes,
                   "input '" + input.name + "' has an invalid shape");
    return std::min(extent, kMaxElements);
  };
  if (dim.name.empty())
    return sizes.constant(check(dim.extent));
  auto [entry, isNew] = extents.try_emplace(dim.name);
  if (!isNew)
    return entry->second;
  auto binding = bindings.find(dim.name);
  if (binding == bindings.end()) {
    usage("dimension '" + dim.name + "' of input '" + input.name +
          "' is unbound; give --dim " + dim.name + "=N or " + dim.name +
          "=MIN..MAX");
    // A stand-in, so that the rest of the model is checked too.
    return entry->second = sizes.addSymbol(dim.name, 1, 1 << 16);
  }
  const DimBinding &bound = binding->second;
  int64_t max = check(bound.max);
  if (bound.min == max)
    return entry->second = sizes.constant(max);
  std::string name = bound.name;
  // The symbol counts the steps, so that affine simplification knows of them.
  if (bound.step > 1)
    name += "/" + std::to_string(bound.step);
  addSizes(name, bound);
  AffineExpr steps =
      sizes.addSymbol(name, bound.min / bound.step, max / bound.step);
  return entry->second = steps * bound.step;
}

// --- Fixed inputs ------------------------------------------------------------

/// Appends `text` as one element of `type`.
static bool appendElement(llvm::StringRef text, Type type, std::string &bytes) {
  text = text.trim();
  uint64_t bits = 0;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    llvm::APFloat value(floatType.getFloatSemantics());
    auto status =
        value.convertFromString(text, llvm::APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return false;
    }
    bits = value.bitcastToAPInt().getZExtValue();
  } else if (type.isInteger(1)) {
    if (text != "true" && text != "false" && text != "0" && text != "1")
      return false;
    bits = text == "true" || text == "1";
  } else {
    int64_t value;
    if (text.getAsInteger(10, value))
      return false;
    unsigned width = type.getIntOrFloatBitWidth();
    bool fits = type.isUnsignedInteger() ? llvm::isUIntN(width, value)
                                         : llvm::isIntN(width, value);
    if (!fits)
      return false;
    bits = value;
  }
  bytes.append(reinterpret_cast<const char *>(&bits), getElementByteSize(type));
  return true;
}

void Signature::applyFixedValue(ModelInput &input) {
  auto given = llvm::find_if(options.inputValues, [&](const InputValue &value) {
    return value.name == input.name;
  });
  if (given == options.inputValues.end())
    return;
  SmallVector<llvm::StringRef> parts;
  if (!given->text.empty())
    llvm::StringRef(given->text).split(parts, ',');
  if (!input.type.hasStaticShape() ||
      input.type.getNumElements() != int64_t(parts.size()))
    return usage("input '" + input.name + "' is given " +
                 llvm::Twine(parts.size()) + " values, which is not its size");
  std::string bytes;
  for (llvm::StringRef part : parts)
    if (!appendElement(part, input.type.getElementType(), bytes))
      return usage("'" + part + "' is not a value of input '" + input.name +
                   "'");
  input.fixed = std::move(bytes);
}

void Signature::checkNames() {
  for (const InputLength &length : options.inputLengths)
    if (!containers.contains(length.name))
      usage("no input is a sequence or an optional named '" + length.name +
            "'");
  for (const InputValue &value : options.inputValues)
    if (llvm::none_of(inputs, [&](const Input &input) {
          return input.name == value.name;
        }))
      usage("no input is named '" + value.name + "'");
}

std::vector<ModelInput> Signature::resolve() {
  applyInputShapes();
  bindDims();
  findBatch();
  bindBatch();
  checkRanges();
  checkLists();
  checkNames();
  std::vector<ModelInput> result;
  for (const Input &input : inputs) {
    graph::Extents shape;
    for (const Dim &dim : input.dims)
      shape.push_back(getExtent(input, dim));
    ModelInput resolved;
    resolved.name = input.name;
    if (sizes.getMaxElements(shape) > kMaxElements) {
      problems.add(ProblemClass::badBytes,
                   "input '" + resolved.name + "' is too large");
      shape.clear();
    }
    resolved.type = graph::makeTensorType(shape, input.elementType);
    applyFixedValue(resolved);
    result.push_back(std::move(resolved));
  }
  return result;
}

} // namespace tcc
