#include "suites/variants/variants.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpubench::variants {
namespace {

// The factors of an op with all their values.
class Factors {
 public:
  explicit Factors(const Variants& variants) : name_(variants.name), kind_(variants.kind), factors_(variants.factors) {
    const std::vector<Attribute> known = make_attributes(kind_).list();
    for (Factor& factor : factors_) {
      const auto found = std::ranges::find(known, factor.name, &Attribute::name);
      is_attribute_.push_back(found != known.end());
      if (!factor.values.empty()) continue;
      if (found == known.end()) throw ProgramError("variants: factor '" + std::string(factor.name) + "' has no values");
      if (found->words.empty()) factor.values = {false, true};
      for (const std::string_view word : found->words) factor.values.emplace_back(word);
    }
  }

  [[nodiscard]] std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> sizes;
    for (const Factor& factor : factors_) sizes.push_back(factor.values.size());
    return sizes;
  }

  [[nodiscard]] VariantBuild build_of(Program& program, const Recipe& recipe, std::int64_t n, int ranks,
                                      const Row& row) const {
    std::vector<NamedValue> attributes;
    std::map<std::string_view, std::int64_t> others;
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const AttributeValue& value = factors_[i].values[row[i]];
      if (is_attribute_[i]) {
        attributes.push_back({factors_[i].name, value});
      } else {
        others[factors_[i].name] = std::get<std::int64_t>(value);
      }
      if (row[i] > 0) text += (text.empty() ? "" : ", ") + text_of(i, row[i]);
    }
    const std::string label = name_ + (text.empty() ? "" : "[" + text + "]");
    return {program,          recipe, n, ranks, program.unique_name(label), make_attributes(kind_, attributes),
            std::move(others)};
  }

  /// "beta=-1.5"
  [[nodiscard]] std::string text_of(std::size_t factor, std::size_t value) const {
    const AttributeValue& is = factors_[factor].values[value];
    const bool* const on = std::get_if<bool>(&is);
    const std::string name(factors_[factor].name);
    if (on != nullptr) return *on ? name : "no " + name;
    return name + "=" + value_text(is);
  }

 private:
  std::string name_;
  OpKind kind_;
  std::vector<Factor> factors_;
  std::vector<bool> is_attribute_;
};

Covering covering_of(const Variants& variants, const Factors& factors, const Recipe& recipe, int ranks) {
  constexpr std::int64_t small = 7;
  const auto accepts = [&](const Row& row) {
    Program alone;
    VariantBuild call = factors.build_of(alone, recipe, small, ranks, row);
    try {
      variants.build(call);
    } catch (const ProgramError&) {
      return false;
    }
    return true;
  };
  Covering covering = cover_pairs(factors.sizes(), accepts);
  const bool lacks_a_value = factors.sizes().size() == 1 && covering.rows.size() < factors.sizes().front();
  if (covering.rows.empty() || lacks_a_value)
    throw ProgramError("variants: " + variants.name + " has a value that its builder refuses");
  return covering;
}

std::shared_ptr<const Workload> workload_of(const Variants& variants, int min_ranks = 1, int max_ranks = 1) {
  Grid grid;
  grid.recipes = variants.recipes;
  grid.points = {Point{{{"n", 7}}, "extents below those of any tile", Tier::smoke},
                 Point{{{"n", 129}}, "extents one past those of tiles", Tier::smoke}};
  WorkloadInfo info{variants.name,
                    "every pair of values of the attributes of " + variants.name,
                    "",
                    PrimaryMetric::items_per_s,
                    "programs",
                    CacheMode::step};
  info.min_ranks = min_ranks;
  info.max_ranks = max_ranks;
  return suites::declare(
      {std::move(info), std::move(grid),
       [variants](const Case& c, const Recipe& r) { return program_of(variants, c.dim("n"), r, c.ranks).program; },
       [](const Case&) { return 1.0; }});
}

}  // namespace

ValueId VariantBuild::source(std::string_view name, DType type, const Shape& shape, Fill fill) {
  return p.add(tensor(p.unique_name(label + "." + std::string(name)), type, shape, Role::input, fill));
}
ValueId VariantBuild::in(std::string_view name, const Shape& shape, Fill fill) {
  return source(name, r.tensor, shape, fill);
}
ValueId VariantBuild::wide(std::string_view name, const Shape& shape, Fill fill) {
  return source(name, r.wide, shape, fill);
}
ValueId VariantBuild::integers(std::string_view name, const Shape& shape, std::int64_t low, std::int64_t high) {
  return source(name, DType::i32, shape, Fill::integers(low, high));
}

std::vector<std::string> refused_pairs(const Variants& variants, const Recipe& recipe) {
  const Factors factors(variants);
  std::vector<std::string> texts;
  for (const FactorPair& pair : covering_of(variants, factors, recipe, 1).refused)
    texts.push_back(factors.text_of(pair.first, pair.first_value) + " with " +
                    factors.text_of(pair.second, pair.second_value));
  return texts;
}

VariantProgram program_of(const Variants& variants, std::int64_t n, const Recipe& recipe, int ranks) {
  const Factors factors(variants);
  VariantProgram made;
  Program& program = made.program;
  std::vector<ValueId> y, wanted;
  for (const Row& row : covering_of(variants, factors, recipe, ranks).rows) {
    VariantBuild call = factors.build_of(program, recipe, n, ranks, row);
    variants.build(call);
    y.insert(y.end(), call.y.begin(), call.y.end());
    wanted.insert(wanted.end(), call.wanted.begin(), call.wanted.end());
  }
  made.forward_ops = static_cast<int>(program.ops().size());
  for (const ValueId value : y) {
    const TensorSpec spec = program.spec(value);
    const TensorSpec dy =
        tensor(program.unique_name("d" + spec.name), spec.dtype, spec.shape, Role::gradient, Fill::normal(1.0));
    made.seeds.push_back({value, program.add(dy)});
  }
  if (!y.empty()) made.gradients = differentiate(program, made.seeds, wanted);
  return made;
}

std::vector<Variants> all_variants() {
  std::vector<Variants> all;
  for (std::vector<Variants> some : {matrix_variants(), attention_variants(), image_variants(), row_variants(),
                                     element_variants(), optimizer_variants(), expert_variants()})
    std::ranges::move(some, std::back_inserter(all));
  return all;
}

}  // namespace gpubench::variants

namespace gpubench::suites {

Suite variants() {
  constexpr int max_ranks = 64;
  Suite suite{"variants", "every op with its attributes combined pairwise, for the check alone", {}, true};
  for (const gpubench::variants::Variants& one : gpubench::variants::all_variants())
    suite.workloads.push_back(gpubench::variants::workload_of(one));
  for (const gpubench::variants::Variants& one : gpubench::variants::collective_variants())
    suite.workloads.push_back(gpubench::variants::workload_of(one, 2, max_ranks));
  return suite;
}

}  // namespace gpubench::suites
