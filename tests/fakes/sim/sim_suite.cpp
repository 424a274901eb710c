#include "tests/fakes/sim/sim_suite.h"

#include <array>
#include <sstream>
#include <stdexcept>

#include "harness/plan/plan.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"

namespace gpubench::sim {
namespace {

constexpr std::int64_t extent = 8;
constexpr Math f32_math{};

using Build = Program (*)();

ValueId matrix(Program& program, std::string name, Role role = Role::input) {
  return program.add(tensor(std::move(name), DType::f32, {extent, extent}, role, Fill::normal(1.0)));
}

Program first() {
  Program p;
  const ValueId x = matrix(p, "x");
  const ValueId w = matrix(p, "w", Role::parameter);
  gemm(p, {}, f32_math, "first.gemm", x, w);
  return p;
}

Program chain() {
  Program p;
  const ValueId x = matrix(p, "x");
  const ValueId up = gemm(p, {}, f32_math, "chain.up", x, matrix(p, "w", Role::parameter)).c;
  const ValueId down = gemm(p, {}, f32_math, "chain.down", up, matrix(p, "v", Role::parameter)).c;
  add(p, f32_math, "chain.add", down, x);
  return p;
}

Program update() {
  Program p;
  const ValueId a = matrix(p, "a");
  const ValueId b = matrix(p, "b");
  gemm(p, {.beta = 1.0}, f32_math, "update.gemm", a, b, {.c_in = matrix(p, "c", Role::gradient)});
  return p;
}

Program clip_in_place() {
  Program p;
  const ValueId x = matrix(p, "x");
  const ValueId g = gemm(p, {.transpose_a = true}, f32_math, "clip.dw", x, matrix(p, "dy")).c;
  const ValueId norm = gradient_norm(p, f32_math, "clip.norm", std::array{g});
  clip(p, {.limit = 1.0}, f32_math, "clip.clip", norm, std::array{g});
  return p;
}

Program packed() {
  Program p;
  const ValueId x = matrix(p, "x");
  const ValueId w = matrix(p, "w", Role::parameter);
  p.begin(Phase::setup);
  const ValueId w2 = copy(p, "packed.copy", w);
  p.begin(Phase::timed);
  gemm(p, {}, f32_math, "packed.gemm", x, w2);
  return p;
}

Program residual() {
  Program p;
  const ValueId x = matrix(p, "x");
  const ValueId w = matrix(p, "w", Role::parameter);
  const auto parameter = [&p](const char* name) {
    return p.add(tensor(name, DType::f32, {extent}, Role::parameter, Fill::normal(1.0)));
  };
  const ValueId s = add(p, f32_math, "residual.sum", x, gemm(p, {}, f32_math, "residual.up", x, w).c);
  const ValueId gamma = parameter("gamma");
  const ValueId y = layer_norm_forward(p, {}, f32_math, "residual.norm", s, gamma, parameter("beta")).y;
  add(p, f32_math, "residual.out", s, gemm(p, {}, f32_math, "residual.down", y, w).c);
  return p;
}

// The backward of two linear layers with a bias and a GELU between them, without the gradient of their input.
Program linear_backward() {
  Program p;
  const ValueId dy = matrix(p, "dy", Role::gradient);
  const ValueId hidden = matrix(p, "hidden");
  const ValueId pre = matrix(p, "pre");
  const ValueId dhidden = gemm(p, {}, f32_math, "linear.dhidden", dy, matrix(p, "w", Role::parameter)).c;
  gemm(p, {.transpose_a = true}, f32_math, "linear.dw", dy, hidden);
  (void)column_sum(p, f32_math, "linear.db", dy);
  const ValueId dz = gelu_backward(p, {}, f32_math, "linear.dz", pre, dhidden);
  (void)column_sum(p, f32_math, "linear.sum", dz);
  return p;
}

Program tied() {
  Program p;
  const ValueId head = gemm(p, {.transpose_a = true}, f32_math, "tied.head", matrix(p, "x"), matrix(p, "dy")).c;
  const ValueId tokens = p.add(tensor("tokens", DType::i32, {extent}, Role::input, Fill::integers(0, extent - 1)));
  const ValueId dx = matrix(p, "dx", Role::gradient);
  const ValueId embedding = embedding_backward(p, f32_math, "tied.embedding", dx, tokens, extent);
  const ValueId sum = add(p, f32_math, "tied.sum", head, embedding);
  (void)gradient_norm(p, f32_math, "tied.norm", std::array{sum});
  return p;
}

Program step() {
  Program p;
  const ValueId a = matrix(p, "a");
  const auto accumulate = [&](const char* name, const char* label) {
    const ValueId before = matrix(p, name, Role::state);
    const ValueId after = p.update(before, std::string(name) + "'");
    p.append({add_kind, {}, f32_math, {a, before}, {after}, label});
    return after;
  };
  const ValueId c = accumulate("c", "step.c");
  const ValueId d = accumulate("d", "step.d");
  add(p, f32_math, "step.sum", c, d);
  return p;
}

Program last() {
  Program p;
  const ValueId a = matrix(p, "a");
  add(p, f32_math, "last.add", a, matrix(p, "b"));
  return p;
}

class SimWorkload : public Workload {
 public:
  SimWorkload(std::string name, Build program) : name_(std::move(name)), build_(program) {}
  [[nodiscard]] WorkloadInfo info() const override {
    return {name_, "a case for tests", "", PrimaryMetric::items_per_s, "elements", CacheMode::cold};
  }
  [[nodiscard]] Grid grid() const override { return {{{{{"n", extent}}, "tiny", Tier::smoke}}, {"f32"}}; }
  [[nodiscard]] Program build(const Case&) const override { return build_(); }
  [[nodiscard]] double items(const Case&) const override { return static_cast<double>(extent * extent); }

 private:
  std::string name_;
  Build build_;
};

PlannedCase planned(const std::string& name, Build build, CacheMode cache) {
  PlannedCase result;
  result.c.suite = "sim";
  result.c.workload = name;
  result.c.dims = {{"n", extent}};
  result.c.recipe = "f32";
  result.c.tier = Tier::smoke;
  result.c.cache = cache;
  result.workload = std::make_shared<SimWorkload>(name, build);
  const Program program = build();
  result.cost = cost_of(program);
  result.bytes = program.bytes();
  result.definition = definition_digest(result.c, *result.workload, program);
  return result;
}

}  // namespace

std::vector<PlannedCase> sim_cases() {
  return {planned("first", first, CacheMode::cold),   planned("chain", chain, CacheMode::step),
          planned("update", update, CacheMode::warm), planned("clip", clip_in_place, CacheMode::warm),
          planned("packed", packed, CacheMode::cold), planned("last", last, CacheMode::cold)};
}

PlannedCase residual_case(bool fuse) {
  PlannedCase one = planned("residual", residual, CacheMode::step);
  one.c.fuse = fuse;
  return one;
}

PlannedCase linear_case() { return planned("linear", linear_backward, CacheMode::step); }

PlannedCase tied_case() { return planned("tied", tied, CacheMode::step); }

PlannedCase step_case() { return planned("step", step, CacheMode::step); }

std::string sim_id(const std::string& name) { return "sim/" + name + "/n=8/f32/x1"; }

std::string TextCodec::encode(const CaseRecord& record) const {
  std::ostringstream text;
  text << record.id << '\n'
       << static_cast<int>(record.verdict) << ' ' << record.batch << ' ' << record.rounds.size() << '\n'
       << record.reason;
  return text.str();
}

CaseRecord TextCodec::decode(std::string_view text) const {
  std::istringstream in{std::string(text)};
  CaseRecord record;
  int verdict = 0;
  std::size_t rounds = 0;
  if (!std::getline(in, record.id) || !(in >> verdict >> record.batch >> rounds))
    throw std::runtime_error("a record that this codec did not write");
  record.verdict = static_cast<Verdict>(verdict);
  record.rounds.resize(rounds);
  in.ignore(1);
  std::getline(in, record.reason);
  return record;
}

}  // namespace gpubench::sim
