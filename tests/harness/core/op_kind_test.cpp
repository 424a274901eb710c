#include "harness/core/op_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/program.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using testing::HasSubstr;

enum class Order { first, second };
enum class Corner { upper, lower };

}  // namespace

template <>
inline constexpr auto enum_names<Corner> = std::to_array<std::string_view>({"upper", "lower"});

namespace {

struct Inner {
  double factor = 3.0;
  static void visit(auto&& attribute) { attribute("factor", &Inner::factor); }
};

struct Everything {
  bool flag = false;
  std::int64_t stride = 1;
  double alpha = 1.0;
  std::vector<int> axes;
  Order order = Order::first;
  bool causal = true;
  Order kind = Order::first;
  Corner corner = Corner::upper;
  Inner inner;

  static void visit(auto&& attribute) {
    attribute("flag", &Everything::flag);
    attribute("stride", &Everything::stride);
    attribute("alpha", &Everything::alpha);
    attribute.when([](const Everything& e) { return e.axes.size() != 1; }, "axes", &Everything::axes);
    attribute("order", &Everything::order, AsWord{"first", "second"});
    attribute("causal", &Everything::causal, AsWord{"full", "causal"});
    attribute("kind", &Everything::kind, AsValue{"plain", "odd"});
    attribute.always("corner", &Everything::corner);
    attribute.part(&Everything::inner);
  }
  [[nodiscard]] bool has(std::string_view operand) const { return flag && operand == "bias"; }
};

constexpr OpKind declared{"product", "a b bias? g* m*", "c"};

TEST(Attributes, TheTextListsDifferencesFromTheDefault) {
  Everything e;
  e.axes = {7};
  EXPECT_EQ(Attributes(e).to_string(), "corner=upper");
  e.flag = true;
  e.stride = -2;
  e.alpha = 0.1;
  e.axes = {1, 0};
  e.order = Order::second;
  e.causal = false;
  e.kind = Order::second;
  e.corner = Corner::lower;
  e.inner.factor = 0.5;
  EXPECT_EQ(describe(e), "flag, stride=-2, alpha=0.1, axes=1 0, second, full, kind=odd, corner=lower, factor=0.5");
  EXPECT_EQ(Attributes{}.to_string(), "");
}

TEST(Attributes, AreListedWithTheirValuesEvenIfTheTextOmitsThem) {
  const std::vector<Attribute> list = Attributes(Everything{}).list();
  ASSERT_EQ(list.size(), 9U);
  EXPECT_EQ(list[0].name, "flag");
  EXPECT_FALSE(std::get<bool>(list[0].value));
  EXPECT_EQ(std::get<std::int64_t>(list[1].value), 1);
  EXPECT_EQ(std::get<std::string_view>(list[5].value), "causal");
  EXPECT_EQ(std::get<std::string_view>(list[7].value), "upper");
  EXPECT_EQ(std::get<double>(list[8].value), 3.0);
}

TEST(Attributes, EveryAttributeCountsForEquality) {
  const auto differs = [](const auto& change) {
    Everything e;
    change(e);
    return !(Attributes(e) == Attributes(Everything{})) && Attributes(e) == Attributes(e);
  };
  EXPECT_TRUE(differs([](Everything& e) { e.flag = true; }));
  EXPECT_TRUE(differs([](Everything& e) { e.stride = 2; }));
  EXPECT_TRUE(differs([](Everything& e) { e.alpha = 2.0; }));
  EXPECT_TRUE(differs([](Everything& e) { e.axes = {0}; }));
  EXPECT_TRUE(differs([](Everything& e) { e.order = Order::second; }));
  EXPECT_TRUE(differs([](Everything& e) { e.corner = Corner::lower; }));
  EXPECT_TRUE(differs([](Everything& e) { e.inner.factor = 2.0; }));
  EXPECT_EQ(Attributes(), Attributes());
  EXPECT_FALSE(Attributes(Inner{}) == Attributes());
  EXPECT_FALSE(Attributes(Inner{}) == Attributes(Everything{}));
}

TEST(Attributes, GiveBackTheStructAndRefuseAnotherType) {
  const Attributes attributes = Inner{42.0};
  EXPECT_EQ(attributes.as<Inner>().factor, 42.0);
  EXPECT_THROW((void)attributes.as<Everything>(), ProgramError);
  EXPECT_THROW((void)Attributes{}.as<Inner>(), ProgramError);
}

constexpr OpKind with_attributes{"product", "a b", "c", defaults_of<Everything>};

std::string refusal(const OpKind& kind, const NamedValue& value) {
  return thrown_text<UsageError>([&] { (void)make_attributes(kind, {{value}}); }, "accepted");
}

TEST(Attributes, AreSetByName) {
  const std::vector<NamedValue> values{{"flag", true},
                                       {"stride", std::int64_t{-2}},
                                       {"alpha", 0.1},
                                       {"axes", std::vector<std::int64_t>{1, 0}},
                                       {"order", std::string_view("second")},
                                       {"causal", false},
                                       {"kind", std::string_view("odd")},
                                       {"corner", std::string_view("lower")},
                                       {"factor", std::int64_t{5}}};

  const Attributes attributes = make_attributes(with_attributes, values);

  EXPECT_EQ(attributes.to_string(),
            "flag, stride=-2, alpha=0.1, axes=1 0, second, full, kind=odd, corner=lower, factor=5");
  EXPECT_EQ(make_attributes(with_attributes), Attributes(Everything{}));
  EXPECT_EQ(make_attributes(declared), Attributes());
}

TEST(Attributes, SayWhichWordsTheyTake) {
  const std::vector<Attribute> list = make_attributes(with_attributes).list();

  EXPECT_EQ(list[3].words, std::vector<std::string_view>{});
  EXPECT_EQ(list[5].words, (std::vector<std::string_view>{"full", "causal"}));
  EXPECT_EQ(list[7].words, (std::vector<std::string_view>{"upper", "lower"}));
}

TEST(Attributes, AnUnknownNameOrAnInvalidValueIsAUsageErrorWithTheExpectedOnes) {
  EXPECT_EQ(refusal(with_attributes, {"alhpa", 1.0}),
            "product: no attribute 'alhpa'; expected one of: flag, stride, alpha, axes, order, causal, kind, corner, "
            "factor");
  EXPECT_EQ(refusal(declared, {"alpha", 1.0}), "product: no attribute 'alpha'; expected none");
  EXPECT_EQ(refusal(with_attributes, {"flag", 0.5}), "product: attribute 'flag' is '0.5'; expected true or false");
  EXPECT_EQ(refusal(with_attributes, {"alpha", true}), "product: attribute 'alpha' is 'true'; expected a number");
  EXPECT_EQ(refusal(with_attributes, {"corner", true}), "accepted");  // of two words, the second
  EXPECT_EQ(refusal(with_attributes, {"corner", std::string_view("left")}),
            "product: attribute 'corner' is 'left'; expected one of: upper, lower");
  EXPECT_THAT(refusal(with_attributes, {"stride", 1.0}), HasSubstr("expected a whole number from -9223"));
  EXPECT_THAT(refusal(with_attributes, {"axes", std::vector<std::int64_t>{std::int64_t{1} << 40}}),
              HasSubstr("expected a whole number from -2147483648 to 2147483647"));
  EXPECT_THAT(refusal(with_attributes, {"axes", std::int64_t{1}}), HasSubstr("expected a list of whole numbers"));
}

std::optional<std::size_t> input(const Everything& e, std::string_view name, std::size_t i = 0) {
  return position_of(declared.inputs, e, name, i);
}

TEST(OpKinds, AreDocumentedInOneTextThatIsTakenApart) {
  const OpDoc doc = doc_of({"product", "a b", "c", {}, R"(
Multiplies.
a, b: [n]: anything
c: f32 [n]

c = a b
  also where it is 0

Note.

Source: here,
there)"});

  EXPECT_EQ(doc.meaning, "Multiplies.");
  ASSERT_EQ(doc.operands.size(), 3U);
  EXPECT_EQ(doc.operands[1].name, "b");
  EXPECT_EQ(doc.operands[1].text, "[n]: anything");
  EXPECT_EQ(doc.operands[2].text, "f32 [n]");
  EXPECT_EQ(doc.body, "c = a b\n  also where it is 0\n\nNote.");
  EXPECT_EQ(doc.source, "here,\nthere");
  EXPECT_TRUE(doc_of(declared).operands.empty());
}

TEST(Operands, StandInTheOrderOfTheirDeclaration) {
  Everything with_bias;
  with_bias.flag = true;
  EXPECT_EQ(input({}, "a"), 0U);
  EXPECT_EQ(input({}, "bias"), std::nullopt);
  EXPECT_EQ(input(with_bias, "bias"), 2U);
  EXPECT_EQ(input(with_bias, "g"), 3U);
  EXPECT_EQ(input({}, "absent"), std::nullopt);
  EXPECT_EQ(input({}, "a", 1), std::nullopt);
}

TEST(Operands, ListsTakeTurns) {
  EXPECT_EQ(input({}, "g", 0), 2U);
  EXPECT_EQ(input({}, "m", 0), 3U);
  EXPECT_EQ(input({}, "g", 5), 12U);
  EXPECT_EQ(input({}, "m", 5), 13U);
}

OpCall call_of(Program& p, int inputs, const Everything& attributes) {
  OpCall call{declared, attributes, {}, {}, {}, "p"};
  for (int i = 0; i < inputs; ++i)
    call.inputs.push_back(p.add(tensor("x" + std::to_string(i), DType::f32, Shape{1}, Role::input)));
  call.outputs.push_back(p.reserve(tensor("y", DType::f32, Shape{1}, Role::activation)));
  return call;
}

TEST(Operands, AWrongNumberIsAnErrorThatNamesTheRightOnes) {
  for (const int inputs : {0, 3, 5}) {
    Program p;
    EXPECT_THAT(
        thrown_text<ProgramError>([&] { p.append(call_of(p, inputs, {})); }),
        HasSubstr("product: " + std::to_string(inputs) + " inputs for op 'p'; expected a, b, g of each, m of each"));
  }
  for (const int inputs : {4, 8}) {
    Program p;
    EXPECT_NO_THROW(p.append(call_of(p, inputs, {})));
  }
}

TEST(Operands, AreFoundByNameInACall) {
  Program p;
  const OpCall call = call_of(p, 6, {});
  EXPECT_EQ(call.input("b"), call.inputs[1]);
  EXPECT_EQ(call.input("m", 1), call.inputs[5]);
  EXPECT_EQ(call.output("c"), call.outputs[0]);
  EXPECT_THROW((void)call.input("bias"), ProgramError);
  EXPECT_THROW((void)call.input("m", 2), ProgramError);

  const std::vector<int> things{10, 11, 12, 13, 14, 15, 20};
  const Named<int> named(call, things);
  EXPECT_EQ(named["b"], 11);
  EXPECT_EQ(named.at("g", 1), 14);
  EXPECT_EQ(named["c"], 20);
  EXPECT_EQ(named.find("bias"), nullptr);
  EXPECT_THROW((void)named["bias"], ProgramError);
}

}  // namespace
}  // namespace gpubench
