#include "runtime/base/Mirror.h"

#include <gtest/gtest.h>

using namespace tcc;

namespace {

enum class Fruit { apple, pear, plum };
enum class Tree { apple, pear, plum };
enum class Juice { apple, plum, pear };

} // namespace

TEST(Mirror, HoldsWhereAllValuesAgree) {
  EXPECT_TRUE((isMirror<Fruit, Tree>({{Fruit::apple, Tree::apple},
                                      {Fruit::pear, Tree::pear},
                                      {Fruit::plum, Tree::plum}},
                                     Fruit::plum, Tree::plum)));
}

TEST(Mirror, FindsAnotherOrderAndWhatIsMissing) {
  EXPECT_FALSE((isMirror<Fruit, Juice>({{Fruit::apple, Juice::apple},
                                        {Fruit::pear, Juice::pear},
                                        {Fruit::plum, Juice::plum}})));
  EXPECT_FALSE((isMirror<Fruit, Tree>(
      {{Fruit::apple, Tree::apple}, {Fruit::pear, Tree::pear}}, Tree::plum)));
  EXPECT_FALSE((isMirror<Fruit, Tree>({{Fruit::apple, Tree::apple},
                                       {Fruit::apple, Tree::apple},
                                       {Fruit::plum, Tree::plum}},
                                      Tree::plum)));
}
