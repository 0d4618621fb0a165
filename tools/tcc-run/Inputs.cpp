#include "tools/tcc-run/Inputs.h"

#include "runtime/data/Npy.h"
#include "runtime/data/Npz.h"
#include "runtime/data/TensorProto.h"

#include <charconv>
#include <filesystem>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

Result<Tensor> tools::readTensorFile(const std::string &path,
                                     std::string_view name) {
  if (path.ends_with(".npy"))
    return readNpy(path);
  if (path.ends_with(".npz"))
    return readNpz(path, name);
  if (path.ends_with(".pb"))
    return readTensorProto(path);
  return makeError(Code::Usage, "'", path,
                   "' is of no known kind, expected .npy, .npz or .pb");
}

Result<std::optional<Tensor>> tools::findTensorFile(const std::string &dir,
                                                    const std::string &stem) {
  for (const char *extension : {".npy", ".pb"}) {
    std::string path = concat(dir, "/", stem, extension);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      continue;
    Result<Tensor> tensor = readTensorFile(path, stem);
    if (!tensor.ok())
      return tensor.takeStatus();
    return std::optional<Tensor>(std::move(*tensor));
  }
  return std::optional<Tensor>();
}

/// Splits NAME=VALUE.
static Status split(const std::string &text, std::string_view flag,
                    std::string &name, std::string &value) {
  size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0)
    return makeError(Code::Usage, flag, " '", text, "', expected NAME=VALUE");
  name = text.substr(0, at);
  value = text.substr(at + 1);
  return Status();
}

/// Reads a whole decimal number.
template <typename T>
static bool parseNumber(const std::string &text, T &value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}

static Status bindDims(const InputOptions &options, Context &context) {
  for (const std::string &dim : options.dims) {
    std::string name, text;
    if (Status status = split(dim, "--dim", name, text); !status.ok())
      return status;
    int64_t value = 0;
    if (!parseNumber(text, value))
      return makeError(Code::Usage, "--dim '", dim, "', expected NAME=N");
    if (Status status = context.setDim(name, value); !status.ok())
      return status;
  }
  return Status();
}

/// Splits NAME=FILE, of which both may have a '=': at the last one before which
/// an input's name stands.
static Status splitInput(const std::string &text, const Context &context,
                         size_t &index, std::string &name, std::string &path) {
  for (size_t at = text.rfind('='); at != std::string::npos && at > 0;
       at = text.rfind('=', at - 1)) {
    auto found = context.findInput(std::string_view(text).substr(0, at));
    if (!found)
      continue;
    index = *found;
    name = text.substr(0, at);
    path = text.substr(at + 1);
    return Status();
  }
  if (Status status = split(text, "--input", name, path); !status.ok())
    return status;
  return makeError(Code::Usage, "there is no input '", name, "'");
}

static Status readNamed(const InputOptions &options, Session &session) {
  for (const std::string &input : options.inputs) {
    size_t index = 0;
    std::string name, path;
    if (Status status = splitInput(input, *session.context, index, name, path);
        !status.ok())
      return status;
    Result<Tensor> tensor = readTensorFile(path, name);
    if (!tensor.ok())
      return tensor.takeStatus();
    session.inputs.insert_or_assign(index, std::move(*tensor));
  }
  return Status();
}

static Status readDirectory(const InputOptions &options, Session &session) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.inputsDir, ignored))
    return makeError(Code::Io, "there is no folder '", options.inputsDir, "'");
  for (size_t i = 0; i < session.context->inputCount(); ++i) {
    auto tensor = findTensorFile(options.inputsDir, concat("input_", i));
    if (!tensor.ok())
      return tensor.takeStatus();
    if (*tensor)
      session.inputs.try_emplace(i, std::move(**tensor));
  }
  return Status();
}

static Status bind(size_t index, const Tensor &tensor, Context &context) {
  return context.bindInput(index,
                           {tensor.data.data(), tensor.dtype, tensor.shape});
}

/// Makes and binds every input that nothing else gave, but states (zero) and
/// fixed ones; of the dimensions that the given ones have.
static Status bindRandom(const std::string &seedText, Session &session) {
  uint64_t seed = 0;
  if (!parseNumber(seedText, seed))
    return makeError(Code::Usage, "--random-inputs '", seedText,
                     "', expected a number");
  Context &context = *session.context;
  const format::Entry &entry = context.entry();
  for (size_t i = 0; i < context.inputCount(); ++i) {
    const format::TensorSpec &spec = *entry.inputs()->Get(i);
    bool isState = false;
    for (size_t s = 0; entry.states() && s < entry.states()->size(); ++s)
      isState |= entry.states()->Get(s)->input() == i;
    if (isState || spec.fixed() || session.inputs.count(i))
      continue;
    auto shape = context.inputShape(i);
    if (!shape.ok())
      return shape.takeStatus();
    auto tensor = Tensor::allocate(spec.dtype(), std::move(*shape));
    if (!tensor.ok())
      return tensor.takeStatus();
    fillRandom(*tensor, seed, i, spec);
    session.inputs.emplace(i, std::move(*tensor));
    if (Status status = bind(i, session.inputs.at(i), context); !status.ok())
      return status;
  }
  return Status();
}

Status tools::readInputs(const InputOptions &options, Session &session) {
  Status status = readNamed(options, session);
  return status.ok() && !options.inputsDir.empty()
             ? readDirectory(options, session)
             : std::move(status);
}

Status tools::bindInputs(const InputOptions &options, Session &session) {
  if (Status status = bindDims(options, *session.context); !status.ok())
    return status;
  for (const auto &[index, tensor] : session.inputs)
    if (Status status = bind(index, tensor, *session.context); !status.ok())
      return status;
  return options.randomSeed.empty() ? Status()
                                    : bindRandom(options.randomSeed, session);
}
