// Golden files of sample drawings. GPUBENCH_UPDATE_GOLDEN=1 ctest -R Golden rewrites them; look at the pictures
// (rsvg-convert -o x.png golden/x.svg, and a browser) before committing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/harness/page/chart/sample_charts.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench::chart {
namespace {

TEST(Golden, EverySampleIsDrawnAsInItsFile) {
  const bool update = std::getenv("GPUBENCH_UPDATE_GOLDEN") != nullptr;
  for (const NamedDrawing& drawing : sample_drawings(Placement::file)) {
    const std::string path = std::string(paths::chart_golden) + "/" + drawing.name + ".svg";
    if (update) std::ofstream(path, std::ios::binary) << drawing.svg;
    EXPECT_EQ(ScratchFolder::content_of(path), drawing.svg) << path;
  }
  if (update) GTEST_SKIP() << "the golden files were rewritten, not compared";
}

TEST(Golden, ADrawingIsTheSameInAFileAndInAPage) {
  const std::vector<NamedDrawing> files = sample_drawings(Placement::file);
  const std::vector<NamedDrawing> pages = sample_drawings(Placement::page);
  const std::string style = "<style>\n" + chart_style() + "</style>\n";
  const auto without_opening_tag = [](const std::string& svg) { return svg.substr(svg.find('>')); };
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string file = files[i].svg;
    const std::size_t at = file.find(style);
    ASSERT_NE(at, std::string::npos) << files[i].name;
    EXPECT_EQ(pages[i].svg.find("<style"), std::string::npos) << "a page holds the style once, itself";
    EXPECT_EQ(without_opening_tag(file.erase(at, style.size())), without_opening_tag(pages[i].svg));
  }
}

}  // namespace
}  // namespace gpubench::chart
