#include "runtime/package/Names.h"

#include <gtest/gtest.h>

using namespace tcc::format;

TEST(Names, AreThoseOfVariants) {
  for (EntryKind kind : EnumValuesEntryKind())
    for (uint16_t variant : {0, 1, 12, 65535}) {
      auto parsed = parseEntryName(nameOf(kind, variant));
      ASSERT_TRUE(parsed);
      EXPECT_EQ(parsed->kind, kind);
      EXPECT_EQ(parsed->variant, variant);
    }
}

TEST(Names, AreNoOthers) {
  for (const char *name :
       {"", "mains", "main.", "main.0", "main.01", "main.1.2", "main.x",
        "main.65536", "main.-1", ".1", "1"})
    EXPECT_FALSE(parseEntryName(name)) << name;
}
