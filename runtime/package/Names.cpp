#include "runtime/package/Names.h"

#include "runtime/package/Program_generated.h"

using namespace tcc;

std::string format::nameOf(const Entry &entry) {
  return nameOf(entry.kind(), entry.variant());
}
