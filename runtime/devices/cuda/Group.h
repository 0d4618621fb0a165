//===- Group.h - Ranks in which a library adds up on devices ----*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_GROUP_H
#define TCC_RUNTIME_DEVICES_CUDA_GROUP_H

#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/Driver.h"

#include <array>
#include <functional>

namespace tcc::runtime::cuda {

struct Nccl;

/// By which ranks find each other: made by one of them, known to all.
using GroupId = std::array<std::byte, 128>;

/// All ranks of a run, with a device each. The device's context is current in
/// all calls but `check` and `abort`, and when the group goes; graphs with its
/// collectives go before it. One thread at a time, but for `check` and
/// `abort`, which any thread may call.
class Group {
public:
  virtual ~Group() = default;

  /// Gives a collective to the stream, also to one that captures a graph.
  virtual Status enqueue(const Exchange &exchange, StreamHandle stream) = 0;
  /// What went wrong with collectives that were given, or with the ways to
  /// other ranks (Code::Peer).
  virtual Status check() = 0;
  /// Ends the collectives under way and refuses later ones: what they wrote is
  /// undefined. May wait until graphs with them are gone.
  virtual void abort() = 0;
};

/// A library of groups.
class GroupLibrary {
public:
  virtual ~GroupLibrary() = default;

  /// With the version.
  virtual std::string_view name() const = 0;
  virtual Result<GroupId> createId() = 0;
  /// Returns once all ranks have called it; Code::Peer if `isOver` says so
  /// before, which is asked all the time.
  virtual Result<std::unique_ptr<Group>>
  join(const GroupId &id, int rank, int size,
       const std::function<bool()> &isOver) = 0;
};

/// Where the library is looked for.
struct GroupChoice {
  const char *places = nullptr;    ///< TCC_CUDA_LIB
  const Nccl *simulated = nullptr; ///< used instead of the machine's
};

/// What the plugin exports as kOpenGroupLibrary: the caller's own; null with
/// `status` (Code::Device) if there is no such library, or it is too old.
using OpenGroupLibrary = GroupLibrary *(*)(const GroupChoice &choice,
                                           Status &status);
inline constexpr char kOpenGroupLibrary[] = "tcc_open_group_library";

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_GROUP_H
