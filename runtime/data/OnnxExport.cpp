#include "runtime/data/OnnxExport.h"

#include "runtime/data/OnnxRewrite.h"
#include "runtime/train/TensorMatch.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// What the tensors of a model's file become.
class OnnxValues {
public:
  OnnxValues(const TrainingSession &session,
             const Variables::Snapshot &snapshot, const std::string &model);

  Result<std::optional<OnnxValue>> find(const OnnxTensor &tensor);
  /// Code::Usage if not all have been found.
  Status checkFound() const;

private:
  struct Source {
    size_t variable;
    bool isTransposed;
  };

  Result<OnnxValue> make(const Source &source, const OnnxTensor &tensor) const;

  const Variables &variables;
  const Variables::Snapshot &snapshot;
  std::string model;
  std::unordered_map<std::string_view, Source> sources; ///< by the file's names
  std::vector<bool> areFound;                           ///< of variables
};

} // namespace

OnnxValues::OnnxValues(const TrainingSession &session,
                       const Variables::Snapshot &snapshot,
                       const std::string &model)
    : variables(session.variables()), snapshot(snapshot), model(model),
      areFound(variables.size()) {
  std::vector<bool> areTransposed(variables.size());
  const auto *stored = session.executable().program().stored_tensors();
  for (size_t i = 0; stored && i < stored->size(); ++i) {
    const format::StoredTensor &tensor = *stored->Get(i);
    sources.insert({tensor.name()->string_view(),
                    {tensor.variable(), tensor.transposed()}});
    if (tensor.transposed())
      areTransposed[tensor.variable()] = true;
  }
  for (size_t i = 0; i < variables.size(); ++i)
    if (isOfModel(variables.describe(i)) && !areTransposed[i])
      sources.insert({variables.describe(i).name()->string_view(), {i, false}});
}

/// Rows become columns.
static void transpose(std::span<const std::byte> from, size_t rows,
                      size_t columns, size_t bytes, std::span<std::byte> to) {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      std::memcpy(to.data() + (j * rows + i) * bytes,
                  from.data() + (i * columns + j) * bytes, bytes);
}

static bool isFloat(DType dtype) {
  return traitsOf(dtype).kind == DTypeKind::Float;
}

Result<OnnxValue> OnnxValues::make(const Source &source,
                                   const OnnxTensor &tensor) const {
  DType dtype = variables.describe(source.variable).dtype();
  std::span<const int64_t> own = variables.shape(source.variable);
  std::vector<int64_t> shape(own.begin(), own.end());
  if (source.isTransposed)
    std::ranges::reverse(shape);
  bool isConvertible = isFloat(dtype) && isFloat(tensor.dtype);
  if (!std::ranges::equal(shape, tensor.shape) ||
      (dtype != tensor.dtype && !isConvertible))
    return makeError(Code::Usage, "'", model, "' has tensor '", tensor.name,
                     "' of ", traitsOf(tensor.dtype).name, " ",
                     formatShape(tensor.shape), ", expected ",
                     traitsOf(dtype).name, " ", formatShape(shape),
                     ": it is not the model of this package");
  OnnxValue value = {snapshot.bytes(source.variable)};
  if (dtype != tensor.dtype) {
    auto converted = Tensor::allocate(tensor.dtype, shape);
    if (!converted.ok())
      return converted.takeStatus();
    convert(dtype, value.bytes, tensor.dtype, converted->data.span());
    value = {converted->data.span(), std::move(*converted)};
  }
  if (source.isTransposed) {
    auto turned = Tensor::allocate(tensor.dtype, shape);
    if (!turned.ok())
      return turned.takeStatus();
    transpose(value.bytes, own[0], own[1], traitsOf(tensor.dtype).bytes,
              turned->data.span());
    value = {turned->data.span(), std::move(*turned)};
  }
  return value;
}

Result<std::optional<OnnxValue>> OnnxValues::find(const OnnxTensor &tensor) {
  auto found = sources.find(tensor.name);
  if (found == sources.end())
    return std::optional<OnnxValue>();
  Result<OnnxValue> value = make(found->second, tensor);
  if (!value.ok())
    return value.takeStatus();
  areFound[found->second.variable] = true;
  return std::optional(std::move(*value));
}

Status OnnxValues::checkFound() const {
  std::string missing;
  for (size_t i = 0; i < areFound.size(); ++i)
    if (isOfModel(variables.describe(i)) && !areFound[i])
      missing += concat(missing.empty() ? "" : ", ",
                        variables.describe(i).name()->string_view());
  if (missing.empty())
    return Status();
  return makeError(Code::Usage, "'", model,
                   "' is not the model of this package: it has no ", missing);
}

/// `snapshot` outlives the result.
static Result<OnnxRewrite> rewriteOnnx(const TrainingSession &session,
                                       const Variables::Snapshot &snapshot,
                                       const std::string &model) {
  OnnxValues values(session, snapshot, model);
  auto rewrite = OnnxRewrite::open(
      model, [&](const OnnxTensor &tensor) { return values.find(tensor); });
  if (!rewrite.ok())
    return rewrite;
  Status status = values.checkFound();
  return status.ok() ? std::move(rewrite) : std::move(status);
}

Status runtime::exportOnnx(const TrainingSession &session,
                           const std::string &model, const std::string &path) {
  auto snapshot = session.variables().snapshot();
  if (!snapshot.ok())
    return snapshot.takeStatus();
  auto rewrite = rewriteOnnx(session, *snapshot, model);
  return rewrite.ok() ? rewrite->write(path) : rewrite.takeStatus();
}

Status runtime::checkOnnx(const TrainingSession &session,
                          const std::string &model) {
  auto snapshot = session.variables().snapshot();
  if (!snapshot.ok())
    return snapshot.takeStatus();
  auto rewrite = rewriteOnnx(session, *snapshot, model);
  return rewrite.ok() ? Status() : rewrite.takeStatus();
}
