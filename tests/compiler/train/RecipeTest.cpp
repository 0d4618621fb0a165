#include "compiler/train/Keys.h"
#include "compiler/train/Loss.h"
#include "compiler/train/Optimizer.h"
#include "runtime/package/ScheduleRules.h"
#include "tests/compiler/train/Fixture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <fstream>
#include <sstream>

using namespace tcc;
using namespace tcc::train;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// The least that a recipe has.
constexpr const char *kLoss = "loss.kind = 'mse'\n";

/// The messages, and the exit code at the end.
std::vector<std::string> refuse(const std::string &text) {
  Problems problems;
  EXPECT_FALSE(readRecipe(text, "r.toml", problems).has_value());
  std::vector<std::string> messages;
  for (const Problem &problem : problems.get())
    messages.push_back(problem.message);
  messages.push_back("exit " + std::to_string(problems.getExitCode()));
  return messages;
}

TEST(RecipeTest, ReadsAllTables) {
  Recipe recipe = parseRecipe(R"(
    steps = 100
    loss = { kind = "causal_lm", label_smoothing = 0.1 }
    [optimizer]
    kind = "adamw"
    lr = 1
    betas = [0.8, 0.95]
    no_decay = ["ndim<=1", "*.scale"]
    [[optimizer.group]]
    match = "head.*"
    lr_scale = 0.5
    [[optimizer.group]]
    match = ["embedding"]
    weight_decay = 0.0
    [schedule]
    kind = "one_cycle"
    max_lr = 3e-3
    [batch]
    micro = 8
    global = 32
    clip_norm = 1.0
    [batchnorm]
    mode = ["bn1*"]
    [init]
    "z*" = "zeros"
    "a*" = "ones"
    [dropout]
    "z*" = 0
    "*" = 0.25
  )");
  EXPECT_STREQ(getLosses()[int(recipe.loss.kind)].kind.word, "causal_lm");
  EXPECT_STREQ(getRule(recipe.optimizer).kind.word, "adamw");
  EXPECT_EQ(recipe.optimizer.lr, 1.0);
  EXPECT_THAT(recipe.optimizer.betas, ElementsAre(0.8, 0.95));
  ASSERT_EQ(recipe.optimizer.noDecay.size(), 2u);
  EXPECT_EQ(recipe.optimizer.noDecay[0].line, 8);
  ASSERT_EQ(recipe.optimizer.groups.size(), 2u);
  EXPECT_EQ(recipe.optimizer.groups[0].lrScale, 0.5);
  EXPECT_FALSE(recipe.optimizer.groups[0].weightDecay.has_value());
  EXPECT_EQ(recipe.optimizer.groups[1].weightDecay, 0.0);
  EXPECT_EQ(recipe.schedule.totalSteps, 100);
  EXPECT_EQ(recipe.batch.accumulate, 4);
  EXPECT_EQ(recipe.batchNorm[0].text, "bn1*");
  // In the order of the file: the first match wins.
  ASSERT_EQ(recipe.init.size(), 2u);
  EXPECT_EQ(recipe.init[0].pattern.text, "z*");
  EXPECT_EQ(recipe.init[1].value, Initializer::Ones);
  ASSERT_EQ(recipe.dropout.size(), 2u);
  EXPECT_EQ(recipe.dropout[0].pattern.text, "z*");
  EXPECT_EQ(recipe.dropout[1].value, 0.25);
}

TEST(RecipeTest, DefaultsAreThoseOfTheOptimizer) {
  auto optimizer = [](const char *kind) {
    return parseRecipe(std::string(kLoss) + "optimizer.kind = '" + kind + "'")
        .optimizer;
  };
  EXPECT_EQ(optimizer("sgd").weightDecay, 0);
  EXPECT_EQ(optimizer("adam").weightDecay, 0);
  EXPECT_EQ(optimizer("adamw").weightDecay, 0.01);
  EXPECT_EQ(optimizer("adamw").lr, 1e-3);
  EXPECT_EQ(optimizer("lion").lr, 1e-4);
  EXPECT_THAT(optimizer("lion").betas, ElementsAre(0.9, 0.99));
}

TEST(RecipeTest, ListsAllProblemsInOrderOfLines) {
  EXPECT_THAT(
      refuse("loss.kind = 'mse'\n[optimiser]\nkind = 'sgd'\n[optimizer]\n"
             "kind = 'sgd'\nlr = -1\nmomentun = 0.9\nbetas = [0.9]\n"
             "[schedule]\nkind = 'cosin'\ntotal_steps = 1.5\n"),
      ElementsAre(
          "r.toml:2: unknown key 'optimiser', did you mean optimizer?",
          "r.toml:6: optimizer.lr is -1, expected number at least 0",
          "r.toml:7: unknown key 'optimizer.momentun', did you mean "
          "optimizer.momentum?",
          "r.toml:8: optimizer.betas is a list, expected two numbers at least "
          "0 and below 1",
          "r.toml:8: optimizer.betas is not for sgd, only for adam, adamw, "
          "lion",
          "r.toml:10: schedule.kind is 'cosin', expected constant, "
          "one_cycle, cosine, linear, step",
          "r.toml:11: schedule.total_steps is 1.5, expected integer at least 1",
          "r.toml:11: schedule.total_steps is not for constant, only for "
          "one_cycle, cosine, linear",
          "exit 3"));
}

TEST(RecipeTest, FindsAKeyInTheWrongTable) {
  EXPECT_THAT(refuse("lr = 1\nloss.kind = 'mse'\noptimizer.kind = 'sgd'"),
              ElementsAre("r.toml:1: unknown key 'lr', did you mean "
                          "optimizer.lr?",
                          "exit 3"));
}

TEST(RecipeTest, ChecksAndKeepsWhatItSaysOfData) {
  std::string base = std::string(kLoss) + "optimizer.kind = 'sgd'\n";
  EXPECT_EQ(parseRecipe(base).data, "");
  EXPECT_EQ(parseRecipe(base + "[data]\nsource = 'npz:a b'\nworkers = 1 # few\n"
                               "[data.train]\nx = ['flip']\n")
                .data,
            "source = 'npz:a b'\nworkers = 1\n\n[train]\nx = [ 'flip' ]\n");
  EXPECT_THAT(
      refuse(base + "[data]\ndepth = 3\nworkers = 'few'"),
      ElementsAre("r.toml:5: data.workers is 'few', expected 0 to 1024, "
                  "or 'auto'",
                  "exit 3"));
  EXPECT_THAT(refuse(base + "data = 3"),
              ElementsAre("r.toml:3: data is 3, expected a table", "exit 3"));
}

TEST(RecipeTest, RefusesWhatDoesNotExistYet) {
  std::string base = std::string(kLoss) + "optimizer.kind = 'sgd'\n";
  EXPECT_THAT(refuse(base + "memory.checkpoint = 'blocks'"),
              ElementsAre("r.toml:3: memory.checkpoint = 'blocks' is not "
                          "supported yet, only auto, none",
                          "exit 4"));
  for (const char *line : {"parallel.zero = 2", "parallel.tensor = 2"})
    EXPECT_THAT(refuse(base + line),
                ElementsAre(HasSubstr("not supported yet"), "exit 4"))
        << line;
  parseRecipe(base +
              "parallel.data = 1\nparallel.bucket = '1MiB'\n"
              "precision.master_weights = true\nmemory.checkpoint = 'none'");
}

TEST(RecipeTest, DividesTheUpdateAmongANumberOfRanks) {
  std::string base = std::string(kLoss) + "optimizer.kind = 'adamw'\n";
  Recipe recipe = parseRecipe(base + "parallel.data = 4\nparallel.zero = 1");
  EXPECT_EQ(recipe.parallel.getParts(), 4);
  recipe = parseRecipe(base + "parallel.data = 1\nparallel.zero = 1");
  EXPECT_EQ(recipe.parallel.getParts(), 0);
  for (const char *data : {"", "parallel.data = 'auto'\n"})
    EXPECT_THAT(refuse(base + data + "parallel.zero = 1"),
                ElementsAre(HasSubstr("parallel.zero = 1 needs a number as "
                                      "parallel.data, not 'auto'"),
                            "exit 2"));
  EXPECT_THAT(refuse(base + "parallel.data = 2"),
              ElementsAre(HasSubstr("parallel.data above 1 needs "
                                    "parallel.zero = 1"),
                          "exit 2"));
  EXPECT_THAT(refuse(base + "parallel.data = 2\nparallel.zero = 1\n"
                            "precision.compute = 'bf16'\n"
                            "precision.master_weights = false\n"
                            "params.ema = 0.9"),
              ElementsAre(HasSubstr("params.ema with parallel.zero = 1 and "
                                    "precision.master_weights = false is not "
                                    "supported yet"),
                          "exit 4"));
}

TEST(RecipeTest, SynchronisesOverSeveralRanks) {
  std::string base = std::string(kLoss) + "optimizer.kind = 'sgd'\n";
  EXPECT_THAT(refuse(base + "parallel.data = 1\nbatchnorm.sync = true"),
              ElementsAre("r.toml:4: batchnorm.sync needs several ranks, and "
                          "parallel.data is 1",
                          "exit 3"));
  parseRecipe(base + "batchnorm.sync = true");
  EXPECT_THAT(refuse(base + "parallel.bucket = '1 foot'"),
              ElementsAre("r.toml:3: parallel.bucket is '1 foot', expected "
                          "bytes",
                          "exit 3"));
}

TEST(RecipeTest, ExactSaysOnceHowManyBatchesAnUpdateHas) {
  std::string base = std::string(kLoss) + "optimizer.kind = 'sgd'\n";
  EXPECT_EQ(parseRecipe(base + "parallel.exact = 8").parallel.exact, 8);
  parseRecipe(base + "parallel.exact = 8\nbatch.micro = 4\nbatch.global = 32");
  auto check = [&](const std::string &lines, const char *problem) {
    EXPECT_THAT(refuse(base + "parallel.exact = " + lines),
                ElementsAre(HasSubstr(problem), "exit 3"));
  };
  for (const char *number : {"6", "2097152"})
    check(number, "expected a power of two up to 1048576");
  check("4\nparallel.data = 1",
        "parallel.exact needs several ranks, and parallel.data is 1");
  check("4\nbatch.accumulate = 4", "as does batch.accumulate");
  check("4\nbatch.micro = 4\nbatch.global = 32",
        "batch.global is 32, expected batch.micro times parallel.exact");
  check("4\nbatch.micro = 'auto'\nbatch.global = 32",
        "leave batch.micro = 'auto' no choice");
}

/// A recipe for evaluations of a model with that loss.
std::string evaluate(const std::string &loss, const std::string &keys) {
  return "loss.kind = '" + loss + "'\noptimizer.kind = 'sgd'\n[eval]\n" + keys;
}

TEST(RecipeTest, MetricsAreThoseOfTheLoss) {
  parseRecipe(evaluate("output", "metrics = ['perplexity']"));
  Recipe recipe = parseRecipe(evaluate("cross_entropy",
                                       "metrics = ['top5', 'f1', 'confusion']\n"
                                       "best = 'top5'\nevery = 2"));
  EXPECT_EQ(recipe.evaluation.metrics->words.size(), 3u);
  EXPECT_EQ(recipe.evaluation.every, 2);
  EXPECT_THAT(refuse(evaluate("mse", "metrics = ['accuracy']")),
              ElementsAre("r.toml:4: eval.metrics has 'accuracy', which is not "
                          "for this loss: loss, mae, mse, rmse are",
                          "exit 3"));
  for (std::string name : {"top", "top0", "top05", "topx", "acuracy", ""})
    EXPECT_THAT(
        refuse(evaluate("cross_entropy", "metrics = ['" + name + "']"))[0],
        HasSubstr("eval.metrics has '" + name + "', expected loss"));
  EXPECT_THAT(refuse(evaluate("cross_entropy", "metrics = 'f1'"))[0],
              HasSubstr("eval.metrics is 'f1', expected words"));
}

TEST(RecipeTest, TheBestIsAMetricThatIsANumber) {
  for (std::string best : {"f1", "confusion"})
    EXPECT_THAT(refuse(evaluate("cross_entropy", "metrics = ['confusion']\n"
                                                 "best = '" +
                                                     best + "'")),
                ElementsAre("r.toml:5: eval.best is '" + best +
                                "', expected the loss or a number of "
                                "eval.metrics",
                            "exit 3"));
}

TEST(RecipeTest, EvaluatesMeansThatAre) {
  EXPECT_THAT(refuse(evaluate("mse", "ema = true")),
              ElementsAre("r.toml:4: eval.ema needs params.ema", "exit 3"));
  EXPECT_THAT(
      refuse(evaluate("mse", "ema = true\n[params]\nema = 0.9\n"
                             "[parallel]\ndata = 2\nzero = 1")),
      ElementsAre(HasSubstr("eval.ema with parallel.zero = 1"), "exit 4"));
}

TEST(RecipeTest, TheLossScaleIsANumberOrDynamic) {
  std::string base = std::string(kLoss) + "optimizer.kind = 'sgd'\n";
  auto read = [&](const std::string &line) {
    return parseRecipe(base + line).lossScale.number;
  };
  EXPECT_EQ(read(""), 1);
  EXPECT_EQ(read("precision.loss_scale = 1024"), 1024);
  EXPECT_EQ(read("precision.loss_scale = 'dynamic'"), 0);
  EXPECT_EQ(read("precision.compute = 'f16'"), 0);
  EXPECT_EQ(read("precision = { compute = 'f16', loss_scale = 2 }"), 2);
  for (const char *value : {"0", "-1", "1e-50", "1e50", "'static'"})
    EXPECT_THAT(refuse(base + "precision.loss_scale = " + value)[0],
                HasSubstr("expected number within f32's normal range, or "
                          "dynamic"));
}

TEST(RecipeTest, TheMicroBatchMayBeLeftToTheBudget) {
  std::string base = std::string(kLoss) + "optimizer.kind = 'sgd'\n[batch]\n";
  BatchRecipe batch = parseRecipe(base + "micro = 'auto'\nglobal = 96").batch;
  EXPECT_EQ(batch.micro, BatchRecipe::kAuto);
  EXPECT_EQ(batch.global, 96);
  batch.takeMicro(32);
  EXPECT_EQ(batch.micro, 32);
  EXPECT_EQ(batch.accumulate, 3);
  batch = parseRecipe(base + "micro = 'auto'\naccumulate = 4").batch;
  batch.takeMicro(32);
  EXPECT_EQ(batch.accumulate, 4);
}

TEST(RecipeTest, ASchedulesNeedsAreForItsKinds) {
  for (const format::ScheduleNeed &need : format::kScheduleNeeds)
    EXPECT_EQ(findKey(need.key)->getKinds(), need.kinds) << need.key;
}

TEST(RecipeTest, ChecksThatKeysGoTogether) {
  auto find = [](const std::string &line) {
    return refuse(std::string(kLoss) + "optimizer.kind = 'sgd'\n" + line)[0];
  };
  EXPECT_THAT(find("schedule.kind = 'cosine'"),
              HasSubstr("needs schedule.total_steps, or steps"));
  EXPECT_THAT(find("steps = 9\nschedule.kind = 'one_cycle'"),
              HasSubstr("needs schedule.max_lr"));
  EXPECT_THAT(find("schedule.kind = 'step'"),
              HasSubstr("needs schedule.step_size"));
  EXPECT_THAT(find("steps = 9\n[schedule]\nkind = 'cosine'\nwarmup_steps = 9"),
              HasSubstr("r.toml:6: schedule.warmup_steps is 9, expected less"));
  EXPECT_THAT(find("optimizer.nesterov = true"),
              HasSubstr("needs optimizer.momentum"));
  EXPECT_THAT(find("optimizer.eps = 1"), HasSubstr("is not for sgd"));
  EXPECT_THAT(find("loss.shift = true"), HasSubstr("is not for mse"));
  EXPECT_THAT(find("[batch]\nglobal = 8"), HasSubstr("needs batch.micro"));
  EXPECT_THAT(find("[batch]\nglobal = 8\nmicro = 3"),
              HasSubstr("expected batch.micro times"));
  EXPECT_THAT(find("[batch]\nglobal = 8\nmicro = 'auto'\naccumulate = 2"),
              HasSubstr("give one of them"));
  EXPECT_THAT(find("[batch]\nmicro = 'all'"),
              HasSubstr("expected integer at least 1, or auto"));
  EXPECT_THAT(find("[batch]\nmicro = 0"), HasSubstr("at least 1, or auto"));
  EXPECT_THAT(find("[[optimizer.group]]\nlr_scale = 2"),
              HasSubstr("r.toml:3: optimizer.group needs match"));
  EXPECT_THAT(find("[init]\nfc.weight = 'zeros'"),
              HasSubstr("quote patterns that have dots"));
  EXPECT_THAT(refuse(""),
              ElementsAre("r.toml:1: loss.kind is missing",
                          "r.toml:1: optimizer.kind is missing", "exit 3"));
}

TEST(RecipeTest, FindsPatternsWithoutParameters) {
  Recipe recipe = parseRecipe(
      "loss.kind = 'mse'\noptimizer.kind = 'sgd'\noptimizer.no_decay = "
      "['norm', 'fc.*', 'gc.*']\ninit.'fc.weigh' = 'ones'");
  Problems problems;
  ParameterTraits parameter{"fc.weight", 2};
  checkPatterns(recipe, parameter, {"node_1"}, problems);
  ASSERT_EQ(problems.get().size(), 2u);
  EXPECT_EQ(problems.get()[0].message,
            "line 3 of the recipe: optimizer.no_decay: no parameter matches "
            "'gc.*'");
  EXPECT_EQ(problems.get()[1].message,
            "line 4 of the recipe: init: no parameter matches 'fc.weigh'");
}

TEST(RecipeTest, RefusesNumbersThatAreNone) {
  std::string base = std::string(kLoss) + "optimizer.kind = 'adam'\n";
  for (const char *line :
       {"optimizer.lr = nan", "optimizer.lr = inf", "optimizer.betas = [1, 0]",
        "optimizer.eps = '1'", "steps = 0", "batch.clip_norm = 0",
        "batch.accumulate = 1.0", "params.ema = 1", "seed = 1979-05-27",
        "dropout.'*' = 1.1", "dropout.'*' = nan", "dropout.'*' = 'a'"})
    EXPECT_THAT(refuse(base + line),
                ElementsAre(HasSubstr("expected"), "exit 3"))
        << line;
  EXPECT_EQ(parseRecipe(base + "batch.clip_norm = inf").batch.clipNorm,
            std::numeric_limits<double>::infinity());
}

TEST(RecipeTest, SaysInWholeSentencesWhatIsNoToml) {
  EXPECT_THAT(refuse("[loss]\nkind = cross_entropy\n")[0],
              testing::EndsWith("could not determine value type"));
  EXPECT_THAT(refuse("[loss]\nkind = 'mse'\n[loss]\nkind = 'mse'\n")[0],
              HasSubstr("cannot redefine existing table 'loss'"));
  EXPECT_THAT(refuse(std::string(100, 'k') + " = 1"),
              testing::Contains(HasSubstr(std::string(60, 'k') + "...'")));
}

TEST(RecipeTest, TakesAnyBytes) {
  EXPECT_THAT(refuse("loss = "),
              ElementsAre(HasSubstr("r.toml:1: "), "exit 3"));
  EXPECT_THAT(refuse("\xff\xfe"),
              ElementsAre(HasSubstr("r.toml:1: "), "exit 3"));
  EXPECT_THAT(
      refuse("\"a\\nb\" = 1\n" + std::string(kLoss) + "optimizer.kind = 'sgd'"),
      ElementsAre("r.toml:1: unknown key 'a?b'", "exit 3"));
  refuse(std::string(1000000, '['));
  for (int depth : {1999, 30000}) {
    std::string deep = "a";
    for (int i = 0; i < depth; ++i)
      deep += ".a";
    refuse(deep + " = 1");
  }
  refuse("a = " + std::string(60000, '['));
  refuse("loss = 3\noptimizer = [1]\ninit = 1\noptimizer.group = 2");
}

/// The number or word of the key, as the table of keys would say it.
std::string print(const Key &key, Recipe &recipe) {
  auto number = [](auto value) {
    std::ostringstream text;
    text << std::boolalpha << value;
    return text.str();
  };
  Field field = key.field(recipe);
  if (auto *real = std::get_if<double *>(&field))
    return number(**real);
  if (auto *integer = std::get_if<int64_t *>(&field))
    return number(**integer);
  if (auto *flag = std::get_if<bool *>(&field))
    return number(**flag);
  if (auto *word = std::get_if<WordField>(&field))
    return splitWords(key.words)[word->get(word->at)].str();
  return "";
}

/// The defaults of the first kinds that take the key.
Recipe makeDefaults(const Key &key) {
  Recipe recipe;
  auto findFirst = [&](const char *table) {
    auto kinds = getKinds(table);
    return llvm::find_if(
               kinds, [&](auto *kind) { return key.appliesTo(kind->word); }) -
           kinds.begin();
  };
  if (llvm::StringRef(key.name).starts_with("loss."))
    recipe.loss = LossRecipe::getDefaults(LossKind(findFirst("loss")));
  if (llvm::StringRef(key.name).starts_with("optimizer."))
    recipe.optimizer =
        OptimizerRecipe::getDefaults(OptimizerKind(findFirst("optimizer")));
  recipe.optimizer.groups.emplace_back();
  return recipe;
}

TEST(RecipeTest, DefaultsAreAsDescribed) {
  for (const Key &key : getKeys()) {
    Recipe recipe = makeDefaults(key);
    std::string value = key.field ? print(key, recipe) : "";
    if (!value.empty() && key.initial != std::string("needed"))
      EXPECT_EQ(value, llvm::StringRef(key.initial).split(',').first.str())
          << key.name;
  }
}

TEST(RecipeTest, ListsWhatIsCompiledIn) {
  Recipe recipe =
      parseRecipe("loss.kind = 'mse'\n[optimizer]\nkind = 'adam'\nlr = 1\n"
                  "[[optimizer.group]]\nmatch = ['a', 'b*']\nweight_decay = 1\n"
                  "[[optimizer.group]]\nmatch = '*'\nlr_scale = 0.1");
  std::string text = listCompiledKeys(recipe);
  EXPECT_THAT(text, HasSubstr("loss.kind=mse\n"));
  EXPECT_THAT(text, HasSubstr("optimizer.eps=1e-08\n"));
  EXPECT_THAT(text, HasSubstr("batch.micro=\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("memory.")));
  EXPECT_THAT(text, HasSubstr("optimizer.group.0.match=a,b*\n"));
  EXPECT_THAT(text,
              HasSubstr("optimizer.group.1.lr_scale=0.10000000000000001\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("optimizer.lr=")));
  EXPECT_THAT(text, testing::Not(HasSubstr("weight_decay")));
}

TEST(RecipeTest, DocumentsEachKey) {
  std::ifstream file(TCC_DOCS "/training.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr(describeKeys()))
      << "docs/training.md should have this table:\n"
      << describeKeys();
}

} // namespace
