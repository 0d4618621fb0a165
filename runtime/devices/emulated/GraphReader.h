//===- GraphReader.h - Descriptors of a simulated cuDNN ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_GRAPHREADER_H
#define TCC_RUNTIME_DEVICES_EMULATED_GRAPHREADER_H

#include "runtime/devices/emulated/Convolver.h"
#include "runtime/devices/libraries/Cudnn.h"

#include <cstring>
#include <memory>
#include <set>

namespace tcc::emulated {

/// Values as they were set.
struct Attribute {
  int type;
  std::vector<char> bytes;
};

/// A descriptor of any kind.
struct Description {
  explicit Description(int kind) : kind(kind) {}

  int kind;
  bool isFinal = false;
  std::map<int, Attribute> attributes;
  /// The graph that this describes or is made from; else null.
  std::shared_ptr<const TensorGraph> graph;
  size_t engine = 0; ///< of a config, an engine or a plan
};

/// All descriptors that exist; behind the driver's mutex.
std::set<Description *> &descriptions();
/// Null if there is none.
Description *find(runtime::cuda::DnnDescriptor handle);

/// Reads attributes; what is missing or of another type makes it fail.
class GraphReader {
public:
  bool ok() const { return isOk; }

  template <typename T>
  std::vector<T> all(const Description &description, int attribute, int type) {
    auto found = description.attributes.find(attribute);
    if (found == description.attributes.end() || found->second.type != type) {
      isOk = false;
      return {};
    }
    const std::vector<char> &bytes = found->second.bytes;
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  T one(const Description &description, int attribute, int type) {
    std::vector<T> values = all<T>(description, attribute, type);
    isOk = isOk && values.size() == 1;
    return isOk ? values[0] : T();
  }
  /// A final descriptor of the kind; any if there is none.
  const Description &part(const Description &description, int attribute,
                          int kind) {
    static const Description none(-1);
    auto *found = find(one<runtime::cuda::DnnDescriptor>(
        description, attribute, runtime::cuda::kDnnTypeDescriptor));
    isOk = isOk && found && found->isFinal && found->kind == kind;
    return isOk ? *found : none;
  }

  TensorView tensor(const Description &description);
  TensorOperation operation(const Description &description, TensorGraph &graph);
  TensorGraph graph(const Description &description);

private:
  void readWindow(const Description &description, TensorOperation &operation);
  void readPointwise(const Description &description,
                     TensorOperation &operation);

  bool isOk = true;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_GRAPHREADER_H
