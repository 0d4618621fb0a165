//===- NameTypes.cpp - Names the types of files ---------------------------===//
//
//   name_types PACKAGE CONFIG.json FILE...
//
// PACKAGE is the compiled magika model, CONFIG the file beside it that says how
// its input is made and what its classes are called.
//
//===----------------------------------------------------------------------===//
#include <nlohmann/json.hpp>
#include <tcc/runtime.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

struct Config {
  size_t beginSize, endSize, blockSize; ///< bytes
  int32_t padding;                      ///< token where a file has no byte
  std::vector<std::string> labels;
};

static Config readConfig(const char *path) {
  std::ifstream stream(path);
  nlohmann::json json = nlohmann::json::parse(stream);
  return {json.at("beg_size"), json.at("end_size"), json.at("block_size"),
          json.at("padding_token"), json.at("target_labels_space")};
}

static std::string readFile(const char *path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw std::runtime_error(std::string(path) + ": cannot be read");
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The first bytes without leading space, padded at the end; then the last
/// bytes without trailing space, padded in front.
static std::vector<int32_t> tokensOf(const std::string &content,
                                     const Config &config) {
  auto isSpace = [](unsigned char c) { return std::isspace(c) != 0; };
  const size_t block = std::min(config.blockSize, content.size());
  std::string head = content.substr(0, block);
  std::string tail = content.substr(content.size() - block);
  head.erase(head.begin(), std::find_if_not(head.begin(), head.end(), isSpace));
  tail.erase(std::find_if_not(tail.rbegin(), tail.rend(), isSpace).base(),
             tail.end());
  head.resize(std::min(head.size(), config.beginSize));
  tail.erase(0, tail.size() - std::min(tail.size(), config.endSize));

  auto token = [](char c) { return int32_t(static_cast<unsigned char>(c)); };
  std::vector<int32_t> tokens(config.beginSize + config.endSize,
                              config.padding);
  std::transform(head.begin(), head.end(), tokens.begin(), token);
  std::transform(tail.rbegin(), tail.rend(), tokens.rbegin(), token);
  return tokens;
}

static void nameTypes(const char *packagePath, const char *configPath,
                      const std::vector<const char *> &files) {
  const Config config = readConfig(configPath);
  tcc::Package package = tcc::Package::open(packagePath);
  tcc::Program program(package);
  tcc::Context context(program);
  for (const char *file : files) {
    const std::vector<int32_t> tokens = tokensOf(readFile(file), config);
    context.bind(0, tokens.data(), {1, int64_t(tokens.size())});
    context.run();
    const tcc::Tensor scores = context.output(0);
    const float *first = scores.data<float>();
    const float *best = std::max_element(first, first + scores.size());
    std::printf("%s: %s (%.0f %%)\n", file,
                config.labels.at(size_t(best - first)).c_str(), *best * 100);
  }
}

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: name_types PACKAGE CONFIG.json FILE...\n");
    return 2;
  }
  try {
    nameTypes(argv[1], argv[2], {argv + 3, argv + argc});
  } catch (const std::exception &error) {
    std::fprintf(stderr, "name_types: %s\n", error.what());
    return 1;
  }
  return 0;
}
