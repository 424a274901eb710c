// Values are written without cancellation; bounds are function budgets in ulps (OpenCL's table), propagated by
// condition number (Hendrycks and Gimpel, arXiv 1606.08415).
#include "reference/ops/gelu_textbook.h"

#include <cmath>
#include <numbers>

#include "reference/ops/gradient_tape.h"
#include "reference/ops/sum_error_bound.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

constexpr double cubic = 0.044715;

// t of x/2 (1 + tanh t), its derivative, 1 - tanh^2 t, and |tanh t|.
struct TanhArgument {
  double t, slope, sech2, tanh;
};

TanhArgument tanh_argument(double x) {
  const double c = std::sqrt(2.0 / std::numbers::pi);
  const double t = c * (x + cubic * x * x * x);
  const double cosh = std::cosh(t);
  return {t, c * (1.0 + 3.0 * cubic * x * x), 1.0 / (cosh * cosh), std::fabs(std::tanh(t))};
}

double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi); }

// x times this is gelu(x). Written without 1 + tanh or 1 + erf, which cancel for negative x.
double gate(GeluForm form, double x) {
  if (form == GeluForm::erf) return 0.5 * std::erfc(-x / std::numbers::sqrt2);
  return 1.0 / (1.0 + std::exp(-2.0 * tanh_argument(x).t));
}

}  // namespace

double tanh_error_of(const Math& math) { return math.approximate_tanh ? 0x1p-11 : 0.0; }

Expected gelu_value(GeluForm form, double x, double u, double tanh_error) {
  const double y = x * gate(form, x);
  const double bound = u * (6.0 * std::fabs(y) + 3.0 * std::fabs(x));
  if (form == GeluForm::erf) return {y, bound};
  const TanhArgument a = tanh_argument(x);
  return {y, bound + u * (4.0 * std::fabs(x) * std::fabs(a.t) * a.sech2) + 0.5 * std::fabs(x) * tanh_error * a.tanh};
}

// With T = tanh t, the slope is (1 + T)/2 + x t' (1 - T^2)/2: d moves it by at most d/2 + |x| t' (|T| d + d^2/2).
Expected gelu_slope(GeluForm form, double x, double u, double tanh_error) {
  const double magnitude = std::fabs(x);
  if (form == GeluForm::erf) {
    const double density = normal_density(x);
    return {gate(form, x) + x * density, u * (4.0 + magnitude * density * (x * x + 12.0))};
  }
  const TanhArgument a = tanh_argument(x);
  const double ts = std::fabs(a.t) * a.sech2;
  const double d = tanh_error * a.tanh;
  return {gate(form, x) + 0.5 * x * a.sech2 * a.slope,
          u * (4.0 + 2.0 * magnitude * a.slope * (1.0 + 2.0 * ts) + 2.0 * ts) + 0.5 * d +
              magnitude * a.slope * (a.tanh * d + 0.5 * d * d)};
}

// t is the argument of tanh, t' its derivative, phi the density of the normal distribution.
std::string gelu_value_text(GeluForm form, const std::string& x, const Math& math) {
  const std::string magnitude = "|" + x + "|";
  if (form == GeluForm::erf) return "u (6|y| + 3" + magnitude + ")";
  const std::string exact = "u (6|y| + 3" + magnitude + " + 4" + magnitude + "|t|(1 - tanh^2 t))";
  if (!math.approximate_tanh) return exact;
  return exact + " + approximate tanh: " + magnitude + " d/2, d = " + power_text(tanh_error_of(math)) + " |tanh t|";
}

std::string gelu_slope_text(GeluForm form, const std::string& x, const Math& math) {
  const std::string magnitude = "|" + x + "|";
  if (form == GeluForm::erf) return "u (4 + " + magnitude + " phi(" + x + ") (" + x + "^2 + 12))";
  const std::string exact = "u (4 + 2" + magnitude + " t' (1 + 2r) + 2r), r = |t|(1 - tanh^2 t)";
  if (!math.approximate_tanh) return exact;
  return "(" + exact + ", + approximate tanh: d/2 + " + magnitude +
         " t' (|tanh t| d + d^2/2), d = " + power_text(tanh_error_of(math)) + " |tanh t|)";
}

}  // namespace gpubench
