// Fuzz target: any list of shapes gives plannable cases or a UsageError.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "harness/core/error.h"
#include "harness/plan/plan.h"
#include "harness/report/console.h"
#include "harness/shapes/shape_list.h"
#include "suites/suites.h"

using namespace gpubench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    ShapeList list = parse_shape_list({reinterpret_cast<const char*>(data), size}, "fuzz");
    for (const bool any_recipe : {false, true}) {
      const std::vector<Suite> suites = listed_suites(all_suites(), list, any_recipe);
      const std::vector<PlannedCase> planned = plan_cases(suites, {});
      double listed = 0.0, taken = 0.0;  // each call is in at least one recipe
      for (const ListedShape& shape : list.shapes) listed += shape.calls;
      for (const PlannedCase& one : planned) taken += one.c.calls.value();
      if (!(taken >= 0.999 * listed)) std::abort();
    }
    for (const ShapesExcept& except : list.source.excepts) {
      if (!(except.calls > 0.0) || text_of(except).find('\n') != std::string::npos) std::abort();
    }
  } catch (const UsageError& e) {
    if (std::string_view(e.what()).find("fuzz:") != 0) std::abort();  // errors name the place
  }
  return 0;
}
