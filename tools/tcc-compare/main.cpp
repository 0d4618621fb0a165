//===- tcc-compare: tcc-run compare ---------------------------------------===//

#include "tools/tcc-compare/Command.h"

int main(int argc, char **argv) {
  return tcc::tools::compareCommand(argc, argv);
}
