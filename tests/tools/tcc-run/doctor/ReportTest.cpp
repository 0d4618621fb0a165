#include "tools/tcc-run/doctor/Report.h"
#include "tests/tools/tcc-run/doctor/FakeMachine.h"
#include "tools/tcc-run/doctor/Text.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools::doctor;

TEST(DoctorChecks, FindNothingWrongWithAGoodMachine) {
  FakeMachine fake;
  for (const auto &[check, finding] : tools::doctor::examine(fake.machine)) {
    EXPECT_EQ(finding.state, State::Ok) << check.name << ": " << finding.found;
    EXPECT_FALSE(finding.found.empty()) << check.name;
    EXPECT_TRUE(finding.recommended.empty()) << check.name;
  }
}

TEST(DoctorChecks, AreManyAndHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Check &check : listChecks()) {
    EXPECT_TRUE(names.insert(check.name).second) << check.name;
    EXPECT_STRNE(check.why, "") << check.name;
  }
  EXPECT_GE(names.size(), 25u);
}

/// Whatever a file has in it, each check says something.
TEST(DoctorChecks, TakeAnyText) {
  const std::string texts[] = {"",
                               "\n",
                               "-1\n",
                               "99999999999999999999999999\n",
                               "[",
                               "]\n[",
                               ":",
                               "::",
                               "0-",
                               "0-2147483647\n",
                               ",,,,\n",
                               "nan inf 1e400\n",
                               std::string("\0\xff\x1b[2J", 6),
                               std::string(1 << 16, 'x'),
                               std::string(1 << 12, '\n')};
  FakeMachine fake;
  for (const std::string &path : fake.listFiles()) {
    std::string before = *fake.machine.read(path);
    for (const std::string &text : texts) {
      fake.write(path, text);
      for (const auto &[check, finding] : tools::doctor::examine(fake.machine))
        EXPECT_FALSE(finding.found.empty()) << check.name << " with " << path;
    }
    fake.write(path, before);
  }
}

/// Without proc and sys nothing is made up.
TEST(DoctorChecks, KnowNothingOfFilesThatAreNotThere) {
  FakeMachine fake;
  fake.remove("/proc");
  fake.remove("/sys");
  for (const char *topic :
       {"cpu governor", "cpu boost", "cpu quota", "memory", "swap",
        "memory limit", "huge pages", "numa nodes", "other load",
        "clock source", "kernel", "perf", "dirty pages", "socket buffers"})
    EXPECT_EQ(fake.examine(topic).state, State::Unknown) << topic;
}

static std::vector<Examination> makeRows() {
  auto check = [](const char *name) {
    return Check{name, "it matters", nullptr};
  };
  return {{check("first"), ok("fine")},
          {check("second"), warning("low", "raise it", "raise --now")},
          {check("third"), ok("no GPU here")},
          {check("fourth"), problem("broken\x1b[2J", "mend it")},
          {check("fifth"), unknown("nobody says")},
          {check("sixth"), ok("no GPU here")}};
}

TEST(DoctorReport, HasWhatIsWrongFirst) {
  EXPECT_EQ(print(makeRows()),
            "problem  fourth            broken?[2J\n"
            "                           why: it matters\n"
            "                           do:  mend it\n"
            "warning  second            low\n"
            "                           why: it matters\n"
            "                           do:  raise it\n"
            "                           $ raise --now\n"
            "unknown  fifth             nobody says\n"
            "ok       first             fine\n"
            "ok       third             no GPU here (also sixth)\n"
            "6 checks: 1 problem, 1 warning, 1 unknown, 3 ok\n");
}

TEST(DoctorReport, IsJsonInTheOrderOfChecks) {
  auto rows = describe(makeRows());
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[1].dump(),
            R"({"name":"second","state":"warning","found":"low",)"
            R"("recommended":"raise it","command":"raise --now",)"
            R"("why":"it matters"})");
  EXPECT_EQ(rows[4]["state"], "unknown");
  EXPECT_EQ(rows[4]["command"], "");
}

TEST(DoctorText, IsTakenWholeOrNotAtAll) {
  EXPECT_EQ(parseInteger(" 12\n"), 12);
  EXPECT_EQ(parseInteger("12 34"), std::nullopt);
  EXPECT_EQ(parseInteger("1.5"), std::nullopt);
  EXPECT_EQ(parseChosen("a [b] c"), "b");
  EXPECT_EQ(parseChosen("a b []"), std::nullopt);
  EXPECT_EQ(parseList("0-2,5\n"), (std::vector{0, 1, 2, 5}));
  EXPECT_EQ(parseList("1,"), (std::vector{1}));
  EXPECT_EQ(parseList("0-99999999"), std::nullopt);
  EXPECT_EQ(findKibibytes("A: 1 kB\nAB: 2 kB\n", "AB"), 2048u);
  EXPECT_EQ(findKibibytes("A: 1 MB\n", "A"), std::nullopt);
  EXPECT_EQ(findKibibytes("A: 99999999999999999999 kB\n", "A"), std::nullopt);
  EXPECT_EQ(findPressure("some avg10=1.50 avg60=0\n"), 1.5);
  EXPECT_EQ(findPressure("some avg10=150 avg60=0\n"), std::nullopt);
  EXPECT_TRUE(hasWord("tsc hpet", "tsc"));
  EXPECT_FALSE(hasWord("tsc-early", "tsc"));
}

TEST(DoctorText, NamesBytesInTheLargestUnit) {
  EXPECT_EQ(nameBytes(1), "1 byte");
  EXPECT_EQ(nameBytes(1023), "1023 bytes");
  EXPECT_EQ(nameBytes(1536), "1.5 KiB");
  EXPECT_EQ(nameBytes(uint64_t(1) << 30), "1 GiB");
  EXPECT_EQ(nameBytes((uint64_t(1) << 30) - 1), "1 GiB");
  EXPECT_EQ(nameBytes(UINT64_MAX), "16384 PiB");
}

/// The calls of this system agree with each other.
TEST(DoctorCalls, AnswerOnThisSystem) {
  Calls calls = systemCalls();
  auto mask = calls.affinity();
  ASSERT_TRUE(mask.ok());
  EXPECT_GE(mask->size(), 1u);
  auto space = calls.space("/");
  ASSERT_TRUE(space.ok());
  EXPECT_GE(space->total, space->free);
  EXPECT_FALSE(calls.space("/no/such/folder").ok());
  EXPECT_FALSE(calls.fileSystem("/no/such/folder").ok());
  EXPECT_TRUE(calls.clock().ok());
  Machine machine{.root = "", .folder = "/", .calls = calls};
  auto online = machine.readList("/sys/devices/system/cpu/online");
  ASSERT_TRUE(online.ok());
  EXPECT_LE(mask->size(), online->size());
}
