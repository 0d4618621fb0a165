#include "tools/cli/CommandLine.h"

#include "runtime/base/NearestWord.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace tcc;

/// The innermost subcommand that was given.
static const CLI::App &selectedApp(const CLI::App &app) {
  std::vector<CLI::App *> selected = app.get_subcommands();
  return selected.empty() ? app : selectedApp(*selected.front());
}

static std::vector<std::string> wordsOf(const CLI::App &app) {
  std::vector<std::string> words;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      words.push_back("--" + name);
  for (const CLI::App *command :
       app.get_subcommands([](const CLI::App *) { return true; }))
    words.push_back(command->get_name());
  return words;
}

static std::string describeUnknown(const CLI::App &app, std::string word) {
  word = word.substr(0, word.find('='));
  std::string text = word.starts_with("-") ? "unknown flag '" : "unexpected '";
  text += word + "'";
  std::string nearest = runtime::nearestWord(word, wordsOf(app));
  return nearest.empty() ? text : text + ", did you mean '" + nearest + "'?";
}

/// No file, folder or word has no letters: a script's variable was not set.
static void checkValues(const CLI::App &app) {
  for (const CLI::Option *option : app.get_options())
    for (const std::string &value : option->results())
      if (value.empty() && option->get_items_expected_max() > 0)
        throw CLI::ValidationError(option->get_name(),
                                   "is '', expected a value");
  for (const CLI::App *command : app.get_subcommands())
    checkValues(*command);
}

std::optional<int> tools::parseCommandLine(CLI::App &app, int argc,
                                           char **argv) {
  std::string problem;
  int code = kUsageError;
  try {
    app.parse(argc, argv);
    checkValues(app);
    return std::nullopt;
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::RuntimeError &error) {
    problem = error.what();
    code = error.get_exit_code();
  } catch (const CLI::ParseError &error) {
    // An unknown word says more than the command that is missing for it.
    std::vector<std::string> extras = app.remaining(true);
    problem = extras.empty()
                  ? error.what()
                  : describeUnknown(selectedApp(app), extras.front());
  }
  std::replace(problem.begin(), problem.end(), '\n', ' ');
  std::cerr << app.get_name() << ": error: " << problem << '\n';
  return code;
}
