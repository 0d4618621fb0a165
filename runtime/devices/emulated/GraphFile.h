//===- GraphFile.h - Captured graphs as text --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_GRAPHFILE_H
#define TCC_RUNTIME_DEVICES_EMULATED_GRAPHFILE_H

#include "runtime/devices/emulated/Simulator.h"

namespace tcc::emulated {

/// Writes a captured graph to PROCESS-NUMBER.graph in the folder that
/// TCC_EMULATED_GRAPHS names, if it names one. A line is a node: the branch (a
/// stream, 0 began the capture), what it does and of what: "launch KERNEL",
/// "call NAME" of a library, "copy BYTES", "set BYTES", "record EVENT", "wait
/// EVENT", "time" of a trace. Nodes of a branch are in its order; an event is
/// recorded once.
runtime::Status writeGraph(const Graph &graph);

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_GRAPHFILE_H
