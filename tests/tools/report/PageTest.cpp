#include "tools/report/Page.h"
#include "tools/report/MemorySection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace tcc;
using namespace tcc::tools;
using nlohmann::json;

static constexpr char kBegin[] =
    R"(<script type="application/json" id="data">)";

static size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

/// The document that the page's script reads.
static json readData(const std::string &page) {
  size_t begin = page.find(kBegin) + sizeof(kBegin) - 1;
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

static Page makePage(const std::string &title) {
  Page page(title, "");
  page.set(Verdict{});
  page.set(std::vector<Fact>{});
  return page;
}

static std::string print(const Section &section) {
  Page page = makePage("page");
  page.add(section);
  return page.print();
}

TEST(PageTest, NoTextIsMarkup) {
  std::string name = "</script><script>alert(1)</script><!--<img src=x>";
  std::string plain = makePage("plain").print();
  std::string hostile = makePage(name).print();
  for (const char *part : {"</script", "<script", "<!--", "<img", "alert(1)"})
    EXPECT_EQ(count(hostile, part),
              count(plain, part) + (part == std::string("alert(1)")))
        << part;
  EXPECT_EQ(readData(hostile)["title"], name);
}

TEST(PageTest, PlaceholdersInNamesStayNames) {
  std::string page = makePage("@SCRIPT@ @STYLE@ @DATA@").print();
  EXPECT_EQ(readData(page)["title"], "@SCRIPT@ @STYLE@ @DATA@");
  EXPECT_EQ(count(page, "function showPage("), 1u);
}

TEST(PageTest, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(readData(makePage("a\xff").print())["title"], "a\xef\xbf\xbd");
}

TEST(PageTest, WhatIsNotFiniteIsUnknown) {
  Section section("title", "learn");
  Chart chart = {
      .kind = Chart::Kind::lines, .title = "chart", .x = {}, .y = {}};
  chart.series = {{.name = "line", .x = {1, 2, 3}, .y = {0.5, NAN, INFINITY}}};
  section.add(chart);
  Table table("table", {{"number", "number"}});
  table.add({NAN});
  section.add(table);
  json blocks = readData(print(section))["sections"][0]["blocks"];
  EXPECT_EQ(blocks[0]["series"][0]["y"], json({0.5, nullptr, nullptr}));
  EXPECT_EQ(blocks[1]["rows"][0][0], nullptr);
}

TEST(PageTest, ReadsNothingFromElsewhere) {
  std::string page = makePage("page").print();
  EXPECT_EQ(count(page, "default-src 'none'"), 1u);
  for (const char *part : {"src=", "@import", "url(", "<link"})
    EXPECT_EQ(count(page, part), 0u) << part;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(MemorySectionTest, GroupsModulesByTheirBegins) {
  std::vector<std::string> paths = {"", "net.head"};
  for (int layer = 0; layer < 3; ++layer)
    for (const char *part : {"a", "b", "c", "d", "e", "f"})
      paths.push_back("net.layers." + std::to_string(layer) + "." + part);
  std::vector<std::string> groups = groupModules(paths);
  ASSERT_EQ(groups.size(), paths.size());
  EXPECT_EQ(groups[0], "");
  EXPECT_EQ(groups[1], "net.head");
  EXPECT_EQ(groups[2], "net.layers.0");
  EXPECT_EQ(groups.back(), "net.layers.2");
}

/// The block of that type, the first one.
static json findBlock(const Section &section, const char *type) {
  json sections = readData(print(section))["sections"];
  for (const json &block : sections[0]["blocks"])
    if (block["type"] == type)
      return block;
  return nullptr;
}

/// Heights of all areas together, place by place.
static std::vector<double> sumUp(const json &chart) {
  std::vector<double> sums;
  for (const json &series : chart["series"]) {
    sums.resize(series["y"].size());
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += series["y"][i].get<double>();
  }
  return sums;
}

TEST(MemorySectionTest, AreasAddUpToWhatIsInUse) {
  ArenaUse use = {
      "main",
      120,
      6,
      {{"n0", "a", 100, 0, 3}, {"n1", "b", 20, 2, 5}, {"n2", "c", 7, 4, 5}}};
  Section section("title", "learn");
  addArenas(section, {use});
  json chart = findBlock(section, "chart");
  EXPECT_EQ(sumUp(chart), (std::vector<double>{100, 100, 120, 120, 27, 27}));
  EXPECT_EQ(chart["marks"][0]["x"], 1);
  EXPECT_EQ(chart["series"][0]["name"], "a");
  EXPECT_EQ(findBlock(section, "table")["rows"].size(), 2u);
}

TEST(MemorySectionTest, ThinnedAreasKeepThePeak) {
  ArenaUse use = {"main", 0, 20000, {}};
  for (int64_t i = 0; i < 10000; ++i)
    use.tensors.push_back({"n", "m", i == 7777 ? 999 : 10, 2 * i, 2 * i + 1});
  Section section("title", "learn");
  addArenas(section, {use});
  std::vector<double> sums = sumUp(findBlock(section, "chart"));
  EXPECT_LE(sums.size(), 300u);
  EXPECT_EQ(*std::ranges::max_element(sums), 999);
}

TEST(MemorySectionTest, NothingInArenasIsSaid) {
  Section section("title", "learn");
  addArenas(section, {{"main", 0, 0, {}}, {"init", 0, 4, {}}});
  EXPECT_EQ(findBlock(section, "note")["text"], "Nothing lies in the arena.");
}
