// Of sanitized unit tests: looks for leaks once all tests are done. At the end
// of the process libraries are unloaded, and what tests/leaks.supp knows of
// them by name would have none.
#include <gtest/gtest.h>
#include <sanitizer/lsan_interface.h>

namespace {

struct LeakCheck : testing::Environment {
  void TearDown() override { __lsan_do_leak_check(); }
};

const testing::Environment *const check =
    testing::AddGlobalTestEnvironment(new LeakCheck);

} // namespace
