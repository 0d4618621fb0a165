#include "tests/tools/tcc-run/EventFile.h"

#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <stdexcept>

using namespace tcc;
using namespace tcc::tests;
using protozero::pbf_reader;

namespace {

struct Tensor {
  int dtype = 0;
  bool hasShape = false;
  std::vector<int64_t> shape;
  std::vector<double> numbers;
  std::vector<std::string> texts;
};

} // namespace

static void expect(bool ok, const char *what) {
  if (!ok)
    throw std::runtime_error(what);
}

/// Bit by bit, as the polynomial says.
static uint32_t sum(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (unsigned char byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

template <typename T> static T read(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

static std::vector<int64_t> readShape(pbf_reader shape) {
  std::vector<int64_t> extents;
  while (shape.next()) {
    expect(shape.tag() == 2, "a shape has another field than dim");
    pbf_reader dim = shape.get_message();
    expect(dim.next(1), "a dim without a size");
    extents.push_back(dim.get_int64());
  }
  return extents;
}

static Tensor readTensor(pbf_reader message) {
  Tensor tensor;
  while (message.next())
    switch (message.tag()) {
    case 1:
      tensor.dtype = message.get_enum();
      break;
    case 2:
      tensor.shape = readShape(message.get_message());
      tensor.hasShape = true;
      break;
    case 5:
      for (float number : message.get_packed_float())
        tensor.numbers.push_back(number);
      break;
    case 6:
      for (double number : message.get_packed_double())
        tensor.numbers.push_back(number);
      break;
    case 8:
      tensor.texts.push_back(message.get_string());
      break;
    default:
      expect(false, "an unknown field of a tensor");
    }
  expect(tensor.hasShape, "a tensor without a shape");
  return tensor;
}

/// The plugin; the class of data must be the one that it takes.
static std::string readPlugin(pbf_reader metadata) {
  expect(metadata.next(1), "metadata without a plugin");
  pbf_reader plugin = metadata.get_message();
  expect(plugin.next(1), "a plugin without a name");
  std::string name = plugin.get_string();
  expect(metadata.next(4), "metadata without a class of data");
  expect(metadata.get_enum() == (name == "scalars" ? 1 : 2),
         "another class of data than the plugin has");
  return name;
}

static void readValue(pbf_reader message, Event &event) {
  std::string tag, plugin;
  Tensor tensor;
  while (message.next())
    switch (message.tag()) {
    case 1:
      tag = message.get_string();
      break;
    case 8:
      tensor = readTensor(message.get_message());
      break;
    case 9:
      plugin = readPlugin(message.get_message());
      break;
    default:
      expect(false, "an unknown field of a value");
    }
  expect(!tag.empty(), "a value without a tag");
  if (plugin == "scalars") {
    expect(tensor.dtype == 1 && tensor.shape.empty(), "not one float");
    expect(tensor.numbers.size() == 1, "not one number");
    expect(event.numbers.emplace(tag, tensor.numbers[0]).second, "tag twice");
  } else if (plugin == "text") {
    expect(tensor.dtype == 7 && tensor.shape.empty(), "not one string");
    expect(tensor.texts.size() == 1, "not one text");
    expect(event.texts.emplace(tag, tensor.texts[0]).second, "tag twice");
  } else {
    expect(plugin == "histograms", "an unknown plugin");
    expect(tensor.dtype == 2 && tensor.shape.size() == 2 &&
               tensor.shape[1] == 3 &&
               tensor.numbers.size() == size_t(tensor.shape[0]) * 3,
           "not rows of three doubles");
    expect(event.histograms.emplace(tag, tensor.numbers).second, "tag twice");
  }
}

static Event readEvent(pbf_reader message) {
  Event event;
  while (message.next())
    switch (message.tag()) {
    case 1:
      event.time = message.get_double();
      break;
    case 2:
      event.step = message.get_int64();
      break;
    case 3:
      event.version = message.get_string();
      break;
    case 5: {
      pbf_reader summary = message.get_message();
      while (summary.next()) {
        expect(summary.tag() == 1, "an unknown field of a summary");
        readValue(summary.get_message(), event);
      }
      break;
    }
    case 7: {
      pbf_reader log = message.get_message();
      expect(log.next(1) && log.get_enum() == 1, "not the start of a session");
      event.isStart = true;
      break;
    }
    default:
      expect(false, "an unknown field of an event");
    }
  return event;
}

EventFile tests::readEvents(std::string_view bytes) {
  EventFile file;
  while (bytes.size() - file.size >= 12) {
    std::string_view rest = bytes.substr(file.size);
    auto length = read<uint64_t>(rest, 0);
    expect(read<uint32_t>(rest, 8) == sum(rest.substr(0, 8)),
           "another sum of a length");
    if (rest.size() < length + 16)
      break;
    std::string_view message = rest.substr(12, length);
    expect(read<uint32_t>(rest, 12 + length) == sum(message),
           "another sum of a message");
    file.events.push_back(
        readEvent(pbf_reader(message.data(), message.size())));
    file.size += length + 16;
  }
  return file;
}
