#include "runtime/data/OnnxRewrite.h"

#include "runtime/base/FileCalls.h"
#include "runtime/base/OutputFile.h"
#include "runtime/data/OnnxMessages.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <protozero/buffer_string.hpp>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::onnx;
using protozero::data_view;
using protozero::tag_and_type;
namespace fs = std::filesystem;

using Bytes = std::span<const std::byte>;

static Bytes bytesBetween(const char *begin, const char *end) {
  return std::as_bytes(std::span(begin, end));
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

namespace {

/// A message in pieces, and how long it is.
struct Pieces {
  std::vector<Bytes> list;
  uint64_t size = 0;

  void add(Bytes piece) {
    list.push_back(piece);
    size += piece.size();
  }
  void add(const Pieces &other) {
    list.insert(list.end(), other.list.begin(), other.list.end());
    size += other.size;
  }
};

/// What a field or message becomes; nothing where it stays as it is.
using Change = std::optional<Pieces>;

} // namespace

/// Goes through the messages of a model once. Its names and types are those of
/// onnx.proto.
class OnnxRewrite::Rewriter {
public:
  Rewriter(OnnxRewrite &rewrite, const ReplaceOnnxTensor &replace)
      : rewrite(rewrite), replace(replace) {}

  Result<Change> rewriteModel(data_view model);

private:
  template <typename Message, typename RewriteField>
  Result<Change> rewriteFields(data_view message, RewriteField rewriteField);
  Result<Change> nest(uint32_t field, Result<Change> inner);
  Result<Change> rewriteFunction(data_view function);
  Result<Change> rewriteGraph(data_view graph, bool isMain);
  Result<Change> rewriteNode(data_view node, bool isMain);
  Result<Change> rewriteAttribute(data_view attribute, std::string_view output);
  Result<Change> rewriteSparse(data_view tensor);
  Result<Change> rewriteTensor(data_view tensor, const TensorHeader &header,
                               std::string_view name);
  Result<Change> setData(data_view tensor, std::string_view name, Bytes value);
  Status noteExternal(const TensorHeader &header, Bytes value);
  Status setExternal(External &external, const TensorHeader &header,
                     Bytes value);
  Bytes addHead(uint32_t field, uint64_t length);
  template <typename... Parts> Status refuse(const Parts &...parts) const {
    return makeError(Code::BadData, "'", rewrite.model, "': ", parts...);
  }

  OnnxRewrite &rewrite;
  const ReplaceOnnxTensor &replace;
  int depth = 0; ///< of graphs within graphs
};

/// The key and the length of a field of bytes.
Bytes OnnxRewrite::Rewriter::addHead(uint32_t field, uint64_t length) {
  std::string &head = rewrite.heads.emplace_back();
  protozero::add_varint_to_buffer(&head, tag_and_type(field, kBytes));
  protozero::add_varint_to_buffer(&head, length);
  return std::as_bytes(std::span(head));
}

/// `rewriteField` says what becomes of each field, after it has read it or
/// passed it over.
template <typename Message, typename RewriteField>
Result<Change> OnnxRewrite::Rewriter::rewriteFields(data_view message,
                                                    RewriteField rewriteField) {
  Pieces pieces;
  const char *end = message.data() + message.size(), *kept = message.data();
  bool hasChanged = false;
  Message fields(message);
  for (const char *begin = kept; fields.next(); begin = fields.data().data()) {
    Result<Change> change = rewriteField(fields);
    if (!change.ok())
      return change;
    if (!*change)
      continue;
    pieces.add(bytesBetween(kept, begin));
    pieces.add(**change);
    kept = fields.data().data();
    hasChanged = true;
  }
  pieces.add(bytesBetween(kept, end));
  return hasChanged ? Change(std::move(pieces)) : Change();
}

/// The field whose message `inner` changes.
Result<Change> OnnxRewrite::Rewriter::nest(uint32_t field,
                                           Result<Change> inner) {
  if (!inner.ok() || !*inner)
    return inner;
  Pieces pieces;
  pieces.add(addHead(field, (*inner)->size));
  pieces.add(**inner);
  return Change(std::move(pieces));
}

Result<Change> OnnxRewrite::Rewriter::rewriteModel(data_view model) {
  return rewriteFields<Model>(model, [&](Model &fields) -> Result<Change> {
    uint32_t field = fields.Model::pbf_reader::tag();
    switch (fields.tag_and_type()) {
    case tag_and_type(ModelField::graph, kBytes):
      return nest(field, rewriteGraph(fields.get_view(), /*isMain=*/true));
    case tag_and_type(ModelField::functions, kBytes):
      return nest(field, rewriteFunction(fields.get_view()));
    }
    fields.skip();
    return Change();
  });
}

Result<Change> OnnxRewrite::Rewriter::rewriteFunction(data_view function) {
  return rewriteFields<Function>(
      function, [&](Function &fields) -> Result<Change> {
        uint32_t field = fields.Function::pbf_reader::tag();
        if (fields.tag_and_type() == tag_and_type(FunctionField::node, kBytes))
          return nest(field, rewriteNode(fields.get_view(), /*isMain=*/false));
        fields.skip();
        return Change();
      });
}

/// Only of the model's graph names are those of its tensors.
Result<Change> OnnxRewrite::Rewriter::rewriteGraph(data_view graph,
                                                   bool isMain) {
  constexpr int kMaxDepth = 100;
  if (depth == kMaxDepth)
    return refuse("has graphs within graphs, more than ", kMaxDepth);
  ++depth;
  auto change =
      rewriteFields<Graph>(graph, [&](Graph &fields) -> Result<Change> {
        uint32_t field = fields.Graph::pbf_reader::tag();
        switch (fields.tag_and_type()) {
        case tag_and_type(GraphField::node, kBytes):
          return nest(field, rewriteNode(fields.get_view(), isMain));
        case tag_and_type(GraphField::initializer, kBytes): {
          data_view tensor = fields.get_view();
          TensorHeader header = readTensorHeader(tensor);
          return nest(field,
                      rewriteTensor(tensor, header, isMain ? header.name : ""));
        }
        case tag_and_type(GraphField::sparse_initializer, kBytes):
          return nest(field, rewriteSparse(fields.get_view()));
        }
        fields.skip();
        return Change();
      });
  --depth;
  return change;
}

/// The first output, if a node is one that only gives a tensor.
static std::string_view findConstant(data_view message) {
  std::string_view output;
  bool isConstant = false, hasOutput = false;
  for (Node node(message); node.next();)
    switch (node.tag_and_type()) {
    case tag_and_type(NodeField::op_type, kBytes):
      isConstant = viewOf(node.get_view()) == "Constant";
      break;
    case tag_and_type(NodeField::output, kBytes):
      if (std::string_view name = viewOf(node.get_view()); !hasOutput)
        output = name;
      hasOutput = true;
      break;
    default:
      node.skip();
    }
  return isConstant ? output : "";
}

Result<Change> OnnxRewrite::Rewriter::rewriteNode(data_view node, bool isMain) {
  std::string_view output = isMain ? findConstant(node) : "";
  return rewriteFields<Node>(node, [&](Node &fields) -> Result<Change> {
    uint32_t field = fields.Node::pbf_reader::tag();
    if (fields.tag_and_type() == tag_and_type(NodeField::attribute, kBytes))
      return nest(field, rewriteAttribute(fields.get_view(), output));
    fields.skip();
    return Change();
  });
}

/// `output` is that of a Constant node; empty for others.
Result<Change>
OnnxRewrite::Rewriter::rewriteAttribute(data_view attribute,
                                        std::string_view output) {
  return rewriteFields<Attribute>(
      attribute, [&](Attribute &fields) -> Result<Change> {
        uint32_t field = fields.Attribute::pbf_reader::tag();
        switch (fields.tag_and_type()) {
        case tag_and_type(AttributeField::t, kBytes):
        case tag_and_type(AttributeField::tensors, kBytes): {
          data_view tensor = fields.get_view();
          return nest(field,
                      rewriteTensor(tensor, readTensorHeader(tensor), output));
        }
        case tag_and_type(AttributeField::g, kBytes):
        case tag_and_type(AttributeField::graphs, kBytes):
          return nest(field, rewriteGraph(fields.get_view(), /*isMain=*/false));
        case tag_and_type(AttributeField::sparse_tensor, kBytes):
        case tag_and_type(AttributeField::sparse_tensors, kBytes):
          return nest(field, rewriteSparse(fields.get_view()));
        }
        fields.skip();
        return Change();
      });
}

Result<Change> OnnxRewrite::Rewriter::rewriteSparse(data_view tensor) {
  return rewriteFields<SparseTensor>(
      tensor, [&](SparseTensor &fields) -> Result<Change> {
        uint32_t field = fields.SparseTensor::pbf_reader::tag();
        switch (fields.tag_and_type()) {
        case tag_and_type(SparseField::values, kBytes):
        case tag_and_type(SparseField::indices, kBytes): {
          data_view part = fields.get_view();
          return nest(field, rewriteTensor(part, readTensorHeader(part), ""));
        }
        }
        fields.skip();
        return Change();
      });
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// One without a `name` stays as it is.
Result<Change> OnnxRewrite::Rewriter::rewriteTensor(data_view tensor,
                                                    const TensorHeader &header,
                                                    std::string_view name) {
  std::optional<OnnxValue> value;
  std::optional<DType> dtype = header.dtype();
  bool isPacked = header.bitsOfElement() < 8;
  if (!name.empty() && dtype && !isPacked) {
    auto replaced = replace({name, *dtype, header.shape});
    if (!replaced.ok())
      return replaced.takeStatus();
    value = std::move(*replaced);
  }
  Bytes bytes;
  if (value) {
    if (value->bytes.size() != runtime::bytesOf(*dtype, header.shape))
      return refuse("tensor '", name, "' has a bad shape");
    bytes = value->bytes;
    if (value->owned.data.size() > 0)
      rewrite.values.push_back(std::move(value->owned));
  }
  if (header.isExternal) {
    Status status = noteExternal(header, bytes);
    return status.ok() ? Result<Change>(Change()) : std::move(status);
  }
  return bytes.empty() ? Change() : setData(tensor, name, bytes);
}

static bool isData(TensorField field) {
  switch (field) {
  case TensorField::raw_data:
  case TensorField::float_data:
  case TensorField::double_data:
  case TensorField::int32_data:
  case TensorField::int64_data:
  case TensorField::uint64_data:
    return true;
  default:
    return false;
  }
}

/// The first field of data becomes raw, further ones go.
Result<Change> OnnxRewrite::Rewriter::setData(data_view tensor,
                                              std::string_view name,
                                              Bytes value) {
  bool hasData = false;
  auto change = rewriteFields<TensorProto>(
      tensor, [&](TensorProto &fields) -> Result<Change> {
        bool isOfData = isData(fields.tag());
        fields.skip();
        if (!isOfData)
          return Change();
        Pieces pieces;
        if (!hasData) {
          pieces.add(addHead(uint32_t(TensorField::raw_data), value.size()));
          pieces.add(value);
        }
        hasData = true;
        return Change(std::move(pieces));
      });
  if (change.ok() && !hasData)
    return refuse("tensor '", name, "' has no data");
  return change;
}

/// Whether a location stays within the folder it begins at.
static bool isInside(const std::string &folder, const std::string &location) {
  fs::path path = location;
  if (location.empty() || path.is_absolute() ||
      location.find('\0') != std::string::npos ||
      std::ranges::find(path, "..") != path.end())
    return false;
  std::error_code error;
  fs::path root = fs::canonical(folder, error);
  fs::path real = fs::weakly_canonical(folder / path, error);
  fs::path relative = real.lexically_relative(root);
  return !error && !relative.empty() && *relative.begin() != "..";
}

static std::string folderOf(const std::string &path) {
  std::string folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

/// All files of external data are written again, changed or not.
Status OnnxRewrite::Rewriter::noteExternal(const TensorHeader &header,
                                           Bytes value) {
  std::string folder = folderOf(rewrite.model), location(header.location);
  if (!isInside(folder, location))
    return refuse("external data of tensor '", header.name, "' in '", location,
                  "' are outside the model's folder");
  auto [found, isNew] = rewrite.externals.try_emplace(location);
  if (isNew) {
    auto file = MappedFile::open(concat(folder, "/", location));
    if (!file.ok())
      return file.takeStatus();
    found->second.file = std::move(*file);
  }
  return value.empty() ? Status() : setExternal(found->second, header, value);
}

/// `instead` where nothing is given.
static std::optional<uint64_t> readNumber(std::string_view text,
                                          uint64_t instead) {
  if (text.empty())
    return instead;
  uint64_t value = 0;
  const char *end = text.data() + text.size();
  auto [rest, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && rest == end ? std::optional(value)
                                               : std::nullopt;
}

Status OnnxRewrite::Rewriter::setExternal(External &external,
                                          const TensorHeader &header,
                                          Bytes value) {
  auto offset = readNumber(header.offset, 0);
  auto length = readNumber(header.length, value.size());
  uint64_t size = external.file.bytes().size();
  if (!offset || length != value.size() || *offset > size ||
      *length > size - *offset)
    return refuse("external data of tensor '", header.name, "' in '",
                  header.location, "', a file of ", size,
                  " bytes, have a wrong offset or length: expected ",
                  value.size(), " bytes");
  auto [place, isNew] = external.changes.try_emplace(*offset, value);
  bool isSame = isNew || std::ranges::equal(place->second, value);
  auto next = std::next(place);
  bool endsBefore =
      next == external.changes.end() || next->first >= *offset + value.size();
  bool beginsAfter =
      place == external.changes.begin() ||
      std::prev(place)->first + std::prev(place)->second.size() <= *offset;
  if (!isSame || !endsBefore || !beginsAfter)
    return refuse("external data of tensor '", header.name, "' in '",
                  header.location, "' are another tensor's, too");
  return Status();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

Result<OnnxRewrite> OnnxRewrite::open(const std::string &model,
                                      const ReplaceOnnxTensor &replace) {
  OnnxRewrite rewrite;
  rewrite.model = model;
  auto file = MappedFile::open(model);
  if (!file.ok())
    return file.takeStatus();
  rewrite.file = std::move(*file);
  Bytes bytes = rewrite.file.bytes();
  data_view view(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  try {
    Result<Change> change = Rewriter(rewrite, replace).rewriteModel(view);
    if (!change.ok())
      return change.takeStatus();
    rewrite.pieces = *change ? std::move((*change)->list) : std::vector{bytes};
  } catch (const protozero::exception &error) {
    return makeError(Code::BadData, "'", model,
                     "' is no ONNX model: ", error.what());
  }
  return rewrite;
}

static Status writePieces(const std::string &path,
                          std::span<const Bytes> pieces) {
  auto file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  for (Bytes piece : pieces)
    file->write(piece);
  return file->commit();
}

Status OnnxRewrite::write(const std::string &path) const {
  for (const auto &[location, external] : externals) {
    std::string target = concat(folderOf(path), "/", location);
    std::error_code error;
    if (fs::equivalent(target, concat(folderOf(model), "/", location), error))
      return makeError(Code::Usage, "'", path, "' would change '", target,
                       "', which '", model,
                       "' has data in: write it to another folder");
    if (Status status = io::makeFolders(folderOf(target)); !status.ok())
      return status;
    Bytes bytes = external.file.bytes();
    std::vector<Bytes> written;
    uint64_t done = 0;
    for (const auto &[offset, value] : external.changes) {
      written.push_back(bytes.subspan(done, offset - done));
      written.push_back(value);
      done = offset + value.size();
    }
    written.push_back(bytes.subspan(done));
    if (Status status = writePieces(target, written); !status.ok())
      return status;
  }
  return writePieces(path, pieces);
}
