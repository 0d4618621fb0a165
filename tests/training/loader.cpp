// Trains a package as tcc-run train does, by the API of the loader:
//
//   tcc_train_with_loader PACKAGE DATA STEPS SEED PARAMETERS [KEY=VALUE...]
//
// DATA "" are those of the recipe, "own" samples of this program, one of
// "damaged" is damaged, and "texts" are of several lengths. On stdout stands
// how many damaged samples were skipped, and what was wrong with each.
#include <tcc/data.hpp>

#include <cstdio>
#include <cstring>

namespace {

/// Sample n: all floats n / 40, label n mod 5.
class OwnSamples final : public tcc::SampleSource {
public:
  explicit OwnSamples(int64_t damaged) : damaged(damaged) {}
  int64_t sampleCount() const override { return 40; }
  void read(int64_t, int64_t number,
            const std::vector<Part> &parts) const override {
    if (number == damaged)
      throw tcc::Error(TCC_BAD_DATA, "this sample is damaged");
    auto *pixels = static_cast<float *>(parts[0].data);
    for (size_t i = 0; i < parts[0].bytes / sizeof(float); ++i)
      pixels[i] = float(number) / 40;
    int64_t label = number % 5;
    std::memcpy(parts[1].data, &label, sizeof(label));
  }

private:
  int64_t damaged;
};

/// Sample n: n mod 32 + 1 tokens n, and the same as targets, then -100.
class OwnTexts final : public tcc::SampleSource {
public:
  int64_t sampleCount() const override { return 60; }
  std::vector<size_t> needs(int64_t number, size_t count) const override {
    return std::vector<size_t>(count, lengthOf(number) * sizeof(int64_t));
  }
  void read(int64_t, int64_t number,
            const std::vector<Part> &parts) const override {
    int64_t pad = 0;
    for (const Part &part : parts) {
      auto *tokens = static_cast<int64_t *>(part.data);
      for (size_t i = 0; i < part.bytes / sizeof(int64_t); ++i)
        tokens[i] = i < lengthOf(number) ? number : pad;
      pad = -100;
    }
  }

private:
  static size_t lengthOf(int64_t number) { return size_t(number) % 32 + 1; }
};

std::unique_ptr<tcc::SampleSource> makeOwn(const std::string &data) {
  if (data == "texts")
    return std::make_unique<OwnTexts>();
  return std::make_unique<OwnSamples>(data == "own" ? -1 : 3);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 6)
    return TCC_USAGE;
  try {
    tcc::Package package = tcc::Package::open(argv[1]);
    tcc::Program program(package);
    tcc::TrainSession session(program);
    tcc::LoaderOptions options;
    uint64_t seed = std::stoull(argv[4]);
    options.settings.assign(argv + 6, argv + argc);
    session.set("seed", double(seed));
    std::string data = argv[2];
    bool isOwn = data == "own" || data == "damaged" || data == "texts";
    if (isOwn) // else it is the session's
      options.seed = seed;
    tcc::Loader loader =
        isOwn ? tcc::Loader(makeOwn(data), tcc::Loader::tensorsOf(session),
                            options)
              : tcc::Loader(session, data, options);
    for (int step = 0; step < std::stoi(argv[3]); ++step) {
      loader.bindNext(session);
      session.step();
    }
    session.exportParameters(argv[5]);
    std::printf("%d\n", int(loader.skippedCount()));
    for (std::string problem; !(problem = loader.nextProblem()).empty();)
      std::printf("%s\n", problem.c_str());
    return 0;
  } catch (const tcc::Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.code();
  }
}
