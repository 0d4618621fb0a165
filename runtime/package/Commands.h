//===- Commands.h - What the commands of a program have ---------*- C++ -*-===//
//
// Whoever asks what a command is asks here, or with a visitor of all kinds of
// commands: nobody skips a kind that the schema got later.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_COMMANDS_H
#define TCC_RUNTIME_PACKAGE_COMMANDS_H

#include "runtime/package/Program_generated.h"

#include <functional>

namespace tcc::runtime {

/// A command of a kind that a newer schema has; verified programs have none.
struct UnknownCommand {
  format::Action kind;
};

/// The table of a command that the ranks of a group run together.
template <typename Table>
concept Collective = requires(const Table &table) { table.group(); };

/// Whether what a collective reads, or writes, are the elements of all ranks
/// one after the other: `count` of each.
template <Collective Table>
constexpr bool readsOfAll = std::is_same_v<Table, format::ReduceScatter>;
template <Collective Table>
constexpr bool writesOfAll = std::is_same_v<Table, format::AllGather>;
/// Whether the one buffer may be the rank's own part of the other one.
template <Collective Table>
constexpr bool movesParts = readsOfAll<Table> || writesOfAll<Table>;
/// Whether it adds in the order of a tree: see Program.exact.
template <Collective Table> bool addsInTree(const Table &table) {
  if constexpr (std::is_same_v<Table, format::AllReduce>)
    return table.tree();
  return false;
}
/// Whether it adds up elements.
template <Collective Table>
constexpr bool addsUp = std::is_same_v<Table, format::AllReduce> ||
                        std::is_same_v<Table, format::ReduceScatter>;

// A kind that is missing here is an error, whatever flags the build has.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"

/// What `visitor` returns for the command's table. A visitor has an overload
/// for each kind of command: one that forgets a kind does not compile.
template <typename Visitor>
auto visitCommand(const format::Command &command, Visitor &&visitor) {
  switch (command.action_type()) {
  case format::Action::Launch:
    return visitor(*command.action_as_Launch());
  case format::Action::Copy:
    return visitor(*command.action_as_Copy());
  case format::Action::SetSize:
    return visitor(*command.action_as_SetSize());
  case format::Action::ReadSize:
    return visitor(*command.action_as_ReadSize());
  case format::Action::If:
    return visitor(*command.action_as_If());
  case format::Action::Loop:
    return visitor(*command.action_as_Loop());
  case format::Action::RecordEvent:
    return visitor(*command.action_as_RecordEvent());
  case format::Action::WaitEvent:
    return visitor(*command.action_as_WaitEvent());
  case format::Action::AllReduce:
    return visitor(*command.action_as_AllReduce());
  case format::Action::ReduceScatter:
    return visitor(*command.action_as_ReduceScatter());
  case format::Action::AllGather:
    return visitor(*command.action_as_AllGather());
  case format::Action::Broadcast:
    return visitor(*command.action_as_Broadcast());
  case format::Action::NONE:
    break;
  }
  return visitor(UnknownCommand{command.action_type()});
}

#pragma GCC diagnostic pop

using CommandFunction = std::function<void(const format::Command &)>;
using BlockFunction = std::function<void(const format::Block &)>;
using LaunchFunction = std::function<void(const format::Launch &)>;
using BufferFunction = std::function<void(uint32_t buffer)>;

/// The blocks that are part of the command, in their order.
void forEachBlock(const format::Command &command, const BlockFunction &call);
/// The commands of a block and of the blocks inside it, each before its own.
void forEachCommand(const format::Block &block, const CommandFunction &call);
/// The launches among them.
void forEachLaunch(const format::Block &block, const LaunchFunction &call);
/// What the command itself reads and writes, without its blocks.
void forEachBuffer(const format::Command &command, const BufferFunction &call);

/// Whether the host reads what kernels computed to go on in the block.
bool readsBuffers(const format::Block &block);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_COMMANDS_H
