#include "reference/ops/transform/value_families.h"

namespace gpubench {
namespace {

bool same_view(const Value& a, const Value& b) {
  return a.offset_bytes == b.offset_bytes && a.spec.shape == b.spec.shape && a.spec.layout == b.spec.layout;
}

}  // namespace

ValueFamilies::ValueFamilies(const Program& program) : entries_(program.values().size()) {
  for (int index = 0; index < static_cast<int>(entries_.size()); ++index) {
    const ValueId id{index};
    const Value& value = program.value(id);
    Entry& entry = at(id);
    entry.root = entry.canonical = id;
    if (value.part_of && !value.updates) {
      entry.root = at(*value.part_of).root;  // parts are declared after what they are parts of
      const Value& whole = program.value(entry.root);
      const auto element = static_cast<std::int64_t>(size_of(whole.spec.dtype));
      entry.first_element = (value.offset_bytes - whole.offset_bytes) / element;
      entry.covers = value.spec.shape.elements() == whole.spec.shape.elements();
      for (const ValueId member : at(entry.root).members) {
        if (same_view(program.value(member), value)) entry.canonical = member;
      }
    }
    if (entry.canonical == id) at(entry.root).members.push_back(id);
  }
}

}  // namespace gpubench
