//===- Panels.h - Right operands of products as tiles read them -*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_PANELS_H
#define TCC_DIALECTS_GRAPH_PANELS_H

#include <cstdint>

namespace tcc::graph {

/// The most columns of a panel of a packed right operand: what a tile of a
/// product on a CPU has.
inline constexpr int64_t kPanelColumns = 64;

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_PANELS_H
