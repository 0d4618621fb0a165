// Trains a package as tcc-run train does, by the API of the loader:
//
//   tcc_train_with_loader PACKAGE DATA STEPS SEED PARAMETERS [KEY=VALUE...]
//
// DATA "" are those of the recipe, "own" samples of this program, one of
// "damaged" is damaged. On stdout stands how many damaged samples were skipped,
// and what was wrong with each.
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
    bool isOwn = data == "own" || data == "damaged";
    if (isOwn) // else it is the session's
      options.seed = seed;
    tcc::Loader loader =
        isOwn
            ? tcc::Loader(std::make_unique<OwnSamples>(data == "own" ? -1 : 3),
                          tcc::Loader::tensorsOf(session), options)
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
