#include "tools/tcc-run/Events.h"

#include <nlohmann/json.hpp>
#include <protozero/pbf_builder.hpp>

#include <algorithm>
#include <isa-l/crc.h>

using namespace tcc;
using namespace tcc::tools;
using protozero::pbf_builder;

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

uint32_t tools::getCrc32c(std::string_view bytes) {
  // The library takes and gives remainders as they are: CRC-32C begins with all
  // bits set and is inverted at the end.
  auto *data = const_cast<char *>(bytes.data()); // only read
  return ~crc32_iscsi(reinterpret_cast<unsigned char *>(data),
                      static_cast<int>(bytes.size()), ~0u);
}

/// A sum over bytes that have sums in them would say little: it is rotated and
/// shifted.
static uint32_t getMaskedCrc(std::string_view bytes) {
  uint32_t sum = getCrc32c(bytes);
  return (sum >> 15 | sum << 17) + 0xa282ead8;
}

static void append(std::string &record, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    record += static_cast<char>(value >> 8 * i);
}

std::string tools::frame(std::string_view message) {
  std::string record;
  record.reserve(message.size() + 16);
  append(record, message.size(), 8);
  append(record, getMaskedCrc(record), 4);
  record += message;
  append(record, getMaskedCrc(message), 4);
  return record;
}

//===----------------------------------------------------------------------===//
// Messages: fields of event.proto, summary.proto and tensor.proto
//===----------------------------------------------------------------------===//

namespace {

enum class EventField : uint32_t {
  wall_time = 1,
  step = 2,
  file_version = 3,
  summary = 5,
  session_log = 7,
};
enum class SessionLogField : uint32_t { status = 1 };
enum SessionStatus : int32_t { kStart = 1 };

enum class SummaryField : uint32_t { value = 1 };
enum class ValueField : uint32_t { tag = 1, tensor = 8, metadata = 9 };
enum class MetadataField : uint32_t { plugin_data = 1, data_class = 4 };
enum class PluginField : uint32_t { plugin_name = 1 };
enum class TensorField : uint32_t {
  dtype = 1,
  tensor_shape = 2,
  float_val = 5,
  double_val = 6,
  string_val = 8,
};
enum class ShapeField : uint32_t { dim = 2 };
enum class DimField : uint32_t { size = 1 };

enum DataType : int32_t { kFloat = 1, kDouble = 2, kString = 7 };
enum DataClass : int32_t { kScalar = 1, kTensor = 2 };

/// Which part of TensorBoard shows a value.
struct Plugin {
  const char *name;
  DataClass dataClass;
};

} // namespace

static std::string makeUtf8(const std::string &text) {
  bool isAscii = std::ranges::all_of(
      text, [](unsigned char letter) { return letter < 0x80; });
  if (isAscii)
    return text;
  using nlohmann::json;
  constexpr auto kReplace = json::error_handler_t::replace;
  return json::parse(json(text).dump(-1, ' ', false, kReplace));
}

static void addMetadata(pbf_builder<ValueField> &value, const Plugin &plugin) {
  pbf_builder<MetadataField> metadata(value, ValueField::metadata);
  pbf_builder<PluginField>(metadata, MetadataField::plugin_data)
      .add_string(PluginField::plugin_name, plugin.name);
  metadata.add_enum(MetadataField::data_class, plugin.dataClass);
}

/// A value without its tensor, which comes next.
static pbf_builder<ValueField> beginValue(pbf_builder<SummaryField> &summary,
                                          const std::string &tag,
                                          const Plugin &plugin) {
  pbf_builder<ValueField> value(summary, SummaryField::value);
  value.add_string(ValueField::tag, makeUtf8(tag));
  addMetadata(value, plugin);
  return value;
}

/// Readers ask for the shape of a scalar, too: one without extents.
static void addShape(pbf_builder<TensorField> &tensor,
                     std::initializer_list<int64_t> extents) {
  std::string message;
  pbf_builder<ShapeField> shape(message);
  for (int64_t extent : extents)
    pbf_builder<DimField>(shape, ShapeField::dim)
        .add_int64(DimField::size, extent);
  tensor.add_message(TensorField::tensor_shape, message);
}

void Summary::addNumber(const std::string &tag, double value) {
  pbf_builder<SummaryField> summary(message);
  auto field = beginValue(summary, tag, {"scalars", kScalar});
  pbf_builder<TensorField> tensor(field, ValueField::tensor);
  tensor.add_enum(TensorField::dtype, kFloat);
  addShape(tensor, {});
  auto number = static_cast<float>(value);
  tensor.add_packed_float(TensorField::float_val, &number, &number + 1);
}

void Summary::addText(const std::string &tag, const std::string &markdown) {
  pbf_builder<SummaryField> summary(message);
  auto field = beginValue(summary, tag, {"text", kTensor});
  pbf_builder<TensorField> tensor(field, ValueField::tensor);
  tensor.add_enum(TensorField::dtype, kString);
  addShape(tensor, {});
  tensor.add_bytes(TensorField::string_val, makeUtf8(markdown));
}

/// A tensor of a row for each bucket: begin, end, count.
void Summary::addHistogram(const std::string &tag,
                           std::span<const Bucket> buckets) {
  pbf_builder<SummaryField> summary(message);
  auto field = beginValue(summary, tag, {"histograms", kTensor});
  pbf_builder<TensorField> tensor(field, ValueField::tensor);
  tensor.add_enum(TensorField::dtype, kDouble);
  addShape(tensor, {static_cast<int64_t>(buckets.size()), 3});
  std::vector<double> numbers;
  for (const Bucket &bucket : buckets)
    numbers.insert(numbers.end(), {bucket.begin, bucket.end, bucket.count});
  tensor.add_packed_double(TensorField::double_val, numbers.begin(),
                           numbers.end());
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

std::string tools::makeVersionRecord(double time) {
  std::string message;
  pbf_builder<EventField> event(message);
  event.add_double(EventField::wall_time, time);
  event.add_string(EventField::file_version, "brain.Event:2");
  return frame(message);
}

static pbf_builder<EventField> beginEvent(std::string &message, double time,
                                          int64_t step) {
  pbf_builder<EventField> event(message);
  event.add_double(EventField::wall_time, time);
  event.add_int64(EventField::step, step);
  return event;
}

std::string tools::makeStartRecord(double time, int64_t step) {
  std::string message;
  auto event = beginEvent(message, time, step);
  pbf_builder<SessionLogField>(event, EventField::session_log)
      .add_enum(SessionLogField::status, kStart);
  return frame(message);
}

std::string tools::makeRecord(double time, int64_t step,
                              const Summary &summary) {
  std::string message;
  beginEvent(message, time, step)
      .add_message(EventField::summary, summary.getMessage());
  return frame(message);
}
