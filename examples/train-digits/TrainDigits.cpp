//===- TrainDigits.cpp - Trains a package and tests it --------------------===//
//
//   train_digits PACKAGE TRAIN.csv TEST.csv
//
// What train.sh does with tcc-run, from C++, on the files that it leaves. A
// line of the data has 64 pixels from 0 to 1, then the digit.
//
//===----------------------------------------------------------------------===//
#include <tcc/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

constexpr size_t kPixels = 64, kBatch = 32;
constexpr int kUpdates = 1200, kReport = 200;

struct Digits {
  std::vector<float> images; ///< [sample, pixel]
  std::vector<int64_t> labels;
};

static Digits readDigits(const char *path) {
  std::ifstream stream(path);
  if (!stream)
    throw std::runtime_error(std::string(path) + ": cannot be read");
  Digits digits;
  for (std::string line, number; std::getline(stream, line);) {
    std::istringstream numbers(line);
    for (size_t i = 0; i < kPixels && std::getline(numbers, number, ','); ++i)
      digits.images.push_back(std::stof(number));
    std::getline(numbers, number);
    digits.labels.push_back(std::stoll(number));
  }
  return digits;
}

/// A batch that a session reads in place.
class Batch {
public:
  explicit Batch(tcc::TrainSession &session)
      : images(kBatch * kPixels), labels(kBatch) {
    session.bind("image", images.data());
    session.bind("labels", labels.data());
  }

  void fill(const Digits &digits, const size_t *samples) {
    for (size_t i = 0; i < kBatch; ++i) {
      const float *image = &digits.images[samples[i] * kPixels];
      std::copy_n(image, kPixels, &images[i * kPixels]);
      labels[i] = digits.labels[samples[i]];
    }
  }

private:
  std::vector<float> images;
  std::vector<int64_t> labels;
};

static std::vector<size_t> numberSamples(const Digits &digits) {
  std::vector<size_t> order(digits.labels.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

static void train(tcc::TrainSession &session, Batch &batch,
                  const Digits &digits) {
  std::vector<size_t> order = numberSamples(digits);
  std::mt19937 random(0);
  size_t next = order.size();
  for (int update = 1; update <= kUpdates; ++update, next += kBatch) {
    if (next + kBatch > order.size()) {
      std::shuffle(order.begin(), order.end(), random);
      next = 0;
    }
    batch.fill(digits, &order[next]);
    tcc::StepMetrics metrics = session.step();
    if (update % kReport == 0)
      std::printf("%d of %d updates, loss %.4f\n", update, kUpdates,
                  metrics.loss);
  }
}

static void test(tcc::TrainSession &session, Batch &batch,
                 const Digits &digits) {
  std::vector<size_t> order = numberSamples(digits);
  tcc::Evaluation sum = {};
  for (size_t i = 0; i + kBatch <= order.size(); i += kBatch) {
    batch.fill(digits, &order[i]);
    session.evaluate(sum);
  }
  std::printf("test: loss %.4f, accuracy %.2f %%\n", sum.loss / sum.count,
              100 * static_cast<double>(sum.correct) / sum.count);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: train_digits PACKAGE TRAIN.csv TEST.csv\n");
    return 2;
  }
  try {
    tcc::Package package = tcc::Package::open(argv[1]);
    tcc::Program program(package);
    tcc::TrainSession session(program);
    Batch batch(session);
    train(session, batch, readDigits(argv[2]));
    test(session, batch, readDigits(argv[3]));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return 1;
  }
  return 0;
}
