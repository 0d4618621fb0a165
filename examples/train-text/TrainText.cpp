//===- TrainText.cpp - Trains a model of bytes and lets it write ----------===//
//
//   train_text PACKAGE TEXT
//
// What train.sh does with tcc-run, from C++, on the files that it leaves.
//
//===----------------------------------------------------------------------===//
#include <tcc/runtime.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>

constexpr size_t kBatch = 16, kSequence = 64, kVocabulary = 256;
constexpr int kUpdates = 600, kReport = 100, kWritten = 400;

static std::string readFile(const char *path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw std::runtime_error(std::string(path) + ": cannot be read");
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Writer {
public:
  explicit Writer(const tcc::Program &program)
      : session(program), bytes(kBatch * kSequence) {
    session.bind("bytes", bytes.data());
  }

  /// One update from pieces of `text` at random places.
  double train(const std::string &text) {
    std::uniform_int_distribution<size_t> places(0, text.size() - kSequence);
    for (size_t row = 0; row < kBatch; ++row)
      setRow(row, text.substr(places(random), kSequence));
    return session.step().loss;
  }

  /// A byte to follow the last kContext bytes of `text`, by the probabilities
  /// that the model gives. The sequence's last place predicts nothing that
  /// training compares, so the context ends before it.
  char next(const std::string &text) {
    setRow(0, text.substr(text.size() - kContext) + ' ');
    session.predict();
    tcc::Tensor logits = session.output(0); // [batch, sequence, byte]
    const float *last = logits.data<float>() + (kContext - 1) * kVocabulary;
    float largest = *std::max_element(last, last + kVocabulary);
    std::vector<double> weights(kVocabulary);
    for (size_t i = 0; i < kVocabulary; ++i)
      weights[i] = std::exp((last[i] - largest) / kTemperature);
    std::discrete_distribution<int> choice(weights.begin(), weights.end());
    return static_cast<char>(choice(random));
  }

private:
  static constexpr double kTemperature = 0.8;
  static constexpr size_t kContext = kSequence - 1;

  void setRow(size_t row, const std::string &text) {
    for (size_t i = 0; i < kSequence; ++i)
      bytes[row * kSequence + i] = static_cast<unsigned char>(text[i]);
  }

  tcc::TrainSession session;
  std::vector<int64_t> bytes; ///< [row, place], read in place
  std::mt19937 random{0};
};

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: train_text PACKAGE TEXT\n");
    return 2;
  }
  try {
    std::string text = readFile(argv[2]);
    if (text.size() < kSequence)
      throw std::runtime_error("the text is too short");
    tcc::Package package = tcc::Package::open(argv[1]);
    tcc::Program program(package);
    Writer writer(program);
    for (int update = 1; update <= kUpdates; ++update) {
      double loss = writer.train(text);
      if (update % kReport == 0)
        std::printf("%d of %d updates, loss %.4f\n", update, kUpdates, loss);
    }
    std::string written = text.substr(0, kSequence);
    for (int i = 0; i < kWritten; ++i)
      written += writer.next(written);
    std::printf("%s\n", written.c_str());
  } catch (const std::exception &error) {
    std::fprintf(stderr, "train_text: %s\n", error.what());
    return 1;
  }
  return 0;
}
