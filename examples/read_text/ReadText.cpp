//===- ReadText.cpp - Reads the words of a picture ------------------------===//
//
//   read_text PACKAGE PICTURE.png
//
// PACKAGE is a compiled PP-OCR text recogniser: [1, 3, height, width] -> class
// probabilities [1, time, classes]. Its alphabet stands in the model's
// metadata, one character a line.
//
//===----------------------------------------------------------------------===//
#include "Picture.h"

#include <tcc/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <sstream>

/// Class 0 is the blank, the last one the space.
static std::vector<std::string> readAlphabet(const tcc::Package &package) {
  std::optional<std::string> text = package.findMetadata("character");
  if (!text)
    throw std::runtime_error("the package has no metadata 'character'");
  std::vector<std::string> alphabet = {""};
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    alphabet.push_back(line);
  alphabet.push_back(" ");
  return alphabet;
}

/// Greedy CTC: the likeliest class of each time, repetitions and blanks
/// dropped.
static std::string decode(const tcc::Tensor &scores,
                          const std::vector<std::string> &alphabet) {
  const int64_t times = scores.extent(1), classes = scores.extent(2);
  if (size_t(classes) != alphabet.size())
    throw std::runtime_error("the alphabet does not fit the model");
  std::string text;
  int64_t previous = 0;
  for (int64_t time = 0; time < times; ++time) {
    const float *row = scores.data<float>() + time * classes;
    const int64_t best = std::max_element(row, row + classes) - row;
    if (best != previous)
      text += alphabet[size_t(best)];
    previous = best;
  }
  return text;
}

static void readText(const char *packagePath, const char *picturePath) {
  tcc::Package package = tcc::Package::open(packagePath);
  const std::vector<std::string> alphabet = readAlphabet(package);
  tcc::Program program(package);
  tcc::Context context(program);
  const tcc_dim *dims = program.input(0).dims;
  const int64_t height = dims[2].max, width = dims[3].max;
  for (const Picture &line : splitLines(readPng(picturePath))) {
    std::vector<float> tensor = toTensor(line, int(height), int(width));
    context.bind(0, tensor.data(), {1, 3, height, width});
    context.run();
    std::printf("%s\n", decode(context.output(0), alphabet).c_str());
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: read_text PACKAGE PICTURE.png\n");
    return 2;
  }
  try {
    readText(argv[1], argv[2]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "read_text: %s\n", error.what());
    return 1;
  }
  return 0;
}
