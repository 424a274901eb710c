#include "harness/parity/compare_elements.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace gpubench {
namespace {

TensorSpec spec_of(Shape shape) { return tensor("y", DType::f32, std::move(shape), Role::activation); }

WrongPlaces places_of(const Shape& shape, const std::function<bool(const std::vector<std::int64_t>&)>& is_wrong) {
  std::vector<std::int64_t> wrong;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    if (is_wrong(multi_index(shape, i))) wrong.push_back(i);
  }
  return wrong_places(spec_of(shape), wrong);
}

using Index = std::vector<std::int64_t>;

TEST(WrongPlaces, OneElementIsNamed) {
  const WrongPlaces places = places_of({64, 96}, [](const Index& i) { return i[0] == 4 && i[1] == 95; });
  EXPECT_EQ(places.words, "1 at [4, 95]");
  EXPECT_EQ(places.rows, 64);
  EXPECT_EQ(places.columns, 96);
  ASSERT_EQ(places.counts.size(), 32U * 32U);
  EXPECT_EQ(places.counts[2 * 32 + 31], 1) << "row 4 of 64 is in band 2 of 32";
  EXPECT_EQ(std::accumulate(places.counts.begin(), places.counts.end(), std::int64_t{0}), 1);
}

TEST(WrongPlaces, ATileARowAColumnAndAHeadAreBoxes) {
  EXPECT_EQ(places_of({64, 96}, [](const Index& i) { return i[0] < 16 && i[1] >= 32 && i[1] < 48; }).words,
            "all 256 are in [0-15, 32-47]");
  EXPECT_EQ(places_of({64, 96}, [](const Index& i) { return i[0] == 7; }).words, "all 96 are in [7, 0-95]");
  EXPECT_EQ(places_of({64, 96}, [](const Index& i) { return i[1] == 7; }).words, "all 64 are in [0-63, 7]");
  EXPECT_EQ(places_of({2, 8, 4, 16}, [](const Index& i) { return i[2] == 3; }).words,
            "all 256 are in [0-1, 0-7, 3, 0-15]");
}

TEST(WrongPlaces, APeriodIsReported) {
  EXPECT_EQ(places_of({8, 96}, [](const Index& i) { return i[1] % 8 == 2; }).words,
            "all 96 are in [0-7, 2-90 in steps of 8]");
}

TEST(WrongPlaces, EverythingIsNoPattern) {
  EXPECT_EQ(places_of({8, 9}, [](const Index& i) { return (i[0] + i[1]) % 2 == 0; }).words, "spread over all of it");
}

TEST(WrongPlaces, AVectorAndASingleNumberHaveAPicture) {
  EXPECT_EQ(places_of({100}, [](const Index& i) { return i[0] >= 96; }).words, "all 4 are in [96-99]");
  const WrongPlaces one = wrong_places(spec_of({1}), std::vector<std::int64_t>{0});
  EXPECT_EQ(one.words, "1 at [0]");
  EXPECT_EQ(one.counts, std::vector<std::int64_t>{1});
}

}  // namespace
}  // namespace gpubench
