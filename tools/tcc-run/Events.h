//===- Events.h - The records of TensorBoard's event files ------*- C++ -*-===//
//
// An event file is a sequence of records (TFRecord): the length of a message in
// 8 bytes, the masked CRC-32C of these, the message, the masked CRC-32C of it,
// all little-endian. A message is a tensorflow.Event; times are seconds since
// 1970. Values are tensors, and say by which plugin TensorBoard shows them.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_TCCRUN_EVENTS_H
#define TCC_TOOLS_TCCRUN_EVENTS_H

#include "tools/tcc-run/Distribution.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tcc::tools {

/// CRC-32C (Castagnoli's polynomial), as iSCSI has it.
uint32_t getCrc32c(std::string_view bytes);

/// A message as a record.
std::string frame(std::string_view message);

/// What an event says of one step: values by their tags, in which bytes that
/// are no UTF-8 become U+FFFD.
class Summary {
public:
  void addNumber(const std::string &tag, double value);
  void addText(const std::string &tag, const std::string &markdown);
  void addHistogram(const std::string &tag, std::span<const Bucket> buckets);

  /// As a tensorflow.Summary.
  const std::string &getMessage() const { return message; }

private:
  std::string message;
};

/// The first record of a file.
std::string makeVersionRecord(double time);
/// From here on all that other records, also those of files before this one,
/// say of `step` and of later steps is void.
std::string makeStartRecord(double time, int64_t step);
std::string makeRecord(double time, int64_t step, const Summary &summary);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_EVENTS_H
