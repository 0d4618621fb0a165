//===- TrainImages.cpp - Trains a model of pictures in tar shards ---------===//
//
//   train_images PACKAGE DATA.toml TEST.toml
//
// What train.sh does with tcc-run, from C++: threads of the loader read, decode
// and transform pictures while steps compute.
//
//===----------------------------------------------------------------------===//
#include <tcc/data.hpp>

#include <cstdio>

constexpr int kUpdates = 500, kReport = 100;

static void train(tcc::TrainSession &session, const char *data) {
  tcc::Loader loader(session, data);
  for (int update = 1; update <= kUpdates; ++update) {
    loader.bindNext(session);
    tcc::StepMetrics metrics = session.step();
    if (update % kReport == 0)
      std::printf("%d of %d updates, loss %.4f\n", update, kUpdates,
                  metrics.loss);
  }
  std::printf("%.2f s waiting for pictures\n", loader.waitSeconds());
}

static void test(tcc::TrainSession &session, const char *data) {
  tcc::LoaderOptions options;
  options.phase = TCC_LOADER_EVAL;
  tcc::Loader loader(session, data, options);
  tcc::Evaluation sum = {};
  for (int64_t i = 0; i < loader.batchesPerEpoch(); ++i) {
    loader.bind(session, i);
    session.evaluate(sum);
  }
  std::printf("test: loss %.4f, accuracy %.2f %%\n", sum.loss / sum.count,
              100 * static_cast<double>(sum.correct) / sum.count);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: train_images PACKAGE DATA.toml TEST.toml\n");
    return 2;
  }
  try {
    tcc::Package package = tcc::Package::open(argv[1]);
    tcc::Program program(package);
    tcc::TrainSession session(program);
    train(session, argv[2]);
    test(session, argv[3]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "train_images: %s\n", error.what());
    return 1;
  }
  return 0;
}
