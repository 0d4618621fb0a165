//===- Descriptor.h - A descriptor of cuDNN's graph API ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_LIBRARIES_DESCRIPTOR_H
#define TCC_RUNTIME_DEVICES_LIBRARIES_DESCRIPTOR_H

#include "runtime/devices/libraries/Cudnn.h"

#include <span>
#include <utility>

namespace tcc::runtime::cuda {

/// Owns a descriptor. The first error stays, and nothing is done after it.
class Descriptor {
public:
  Descriptor(const Cudnn &table, DnnKind kind)
      : table(&table), error(table.createDescriptor(kind, &handle)) {}
  Descriptor(Descriptor &&other) noexcept
      : table(other.table), handle(std::exchange(other.handle, nullptr)),
        error(other.error) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(table, other.table);
    std::swap(handle, other.handle);
    std::swap(error, other.error);
    return *this;
  }
  ~Descriptor() {
    if (handle)
      table->destroyDescriptor(handle);
  }

  DnnDescriptor get() const { return handle; }

  /// Requires that T is as wide as the type.
  template <typename T>
  void set(DnnAttribute attribute, DnnType type, const T *values,
           size_t count) {
    if (error == kDnnSuccess)
      error = table->setAttribute(handle, attribute, type,
                                  static_cast<int64_t>(count), values);
  }
  template <typename T>
  void set(DnnAttribute attribute, DnnType type, const T &value) {
    set(attribute, type, &value, 1);
  }
  void set(DnnAttribute attribute, std::span<const int64_t> values) {
    set(attribute, kDnnTypeInt64, values.data(), values.size());
  }

  /// Up to `room` values; how many there are goes to `count`.
  DnnError read(DnnAttribute attribute, DnnType type, int64_t room,
                int64_t &count, void *values) const {
    return error ? error
                 : table->getAttribute(handle, attribute, type, room, &count,
                                       values);
  }

  DnnError finalize() {
    if (error == kDnnSuccess)
      error = table->finalize(handle);
    return error;
  }

private:
  const Cudnn *table;
  DnnDescriptor handle = nullptr;
  DnnError error;
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_LIBRARIES_DESCRIPTOR_H
