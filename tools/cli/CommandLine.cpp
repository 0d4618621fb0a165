#include "tools/cli/CommandLine.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

using namespace tcc;

/// Levenshtein's distance, one row at a time.
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string tools::nearestWord(std::string_view word,
                               const std::vector<std::string> &candidates) {
  std::string nearest;
  // Half of the letters wrong is no longer a typing error.
  size_t best = std::max<size_t>(2, word.size() / 2);
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(word, candidate);
    if (distance >= best)
      continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

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
  std::string nearest = tools::nearestWord(word, wordsOf(app));
  return nearest.empty() ? text : text + ", did you mean '" + nearest + "'?";
}

std::optional<int> tools::parseCommandLine(CLI::App &app, int argc,
                                           char **argv) {
  std::string problem;
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    // An unknown word says more than the command that is missing for it.
    std::vector<std::string> extras = app.remaining(true);
    problem = extras.empty()
                  ? error.what()
                  : describeUnknown(selectedApp(app), extras.front());
  }
  std::replace(problem.begin(), problem.end(), '\n', ' ');
  std::cerr << app.get_name() << ": error: " << problem << '\n';
  return kUsageError;
}
