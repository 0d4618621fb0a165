#include "tools/cli/CommandLine.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

using namespace tcc::tools;

/// Parses for an app with one command and its flag --threads.
static std::optional<int> parse(std::vector<std::string> words,
                                std::string &errors) {
  CLI::App app("test", "app");
  int threads = 0;
  app.require_subcommand(1);
  app.add_subcommand("run", "runs")->add_option("--threads", threads);
  std::vector<char *> arguments;
  words.insert(words.begin(), "app");
  for (std::string &word : words)
    arguments.push_back(word.data());
  testing::internal::CaptureStderr();
  auto code = parseCommandLine(app, arguments.size(), arguments.data());
  errors = testing::internal::GetCapturedStderr();
  return code;
}

TEST(CommandLine, AcceptsWhatIsKnown) {
  std::string errors;
  EXPECT_EQ(parse({"run", "--threads", "2"}, errors), std::nullopt);
  EXPECT_EQ(errors, "");
}

TEST(CommandLine, SuggestsTheNearestFlag) {
  std::string errors;
  EXPECT_EQ(parse({"run", "--thread=2"}, errors), kUsageError);
  EXPECT_NE(errors.find("unknown flag '--thread', did you mean '--threads'?"),
            std::string::npos)
      << errors;
  EXPECT_EQ(parse({"run", "--xyzzy"}, errors), kUsageError);
  EXPECT_EQ(errors.find("did you mean"), std::string::npos) << errors;
}

TEST(CommandLine, SuggestsTheNearestCommand) {
  std::string errors;
  EXPECT_EQ(parse({"rum"}, errors), kUsageError);
  EXPECT_NE(errors.find("did you mean 'run'?"), std::string::npos) << errors;
}

TEST(CommandLine, ProblemsTakeOneLine) {
  std::string errors;
  EXPECT_EQ(parse({}, errors), kUsageError);
  EXPECT_EQ(parse({"run", "--threads", "many"}, errors), kUsageError);
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
}

/// What a flag does may fail for other reasons than its words.
TEST(CommandLine, FailsWithTheCodeOfAFlag) {
  CLI::App app("test", "app");
  app.add_option_function<std::string>(
      "--run", [](const std::string &) { throw CLI::RuntimeError("full", 5); });
  char name[] = "app", flag[] = "--run=x";
  char *arguments[] = {name, flag};
  testing::internal::CaptureStderr();
  EXPECT_EQ(parseCommandLine(app, 2, arguments), 5);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "app: error: full\n");
}
