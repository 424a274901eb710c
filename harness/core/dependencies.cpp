// Program::dependencies(), in time proportional to operands and waits.
#include <algorithm>
#include <numeric>

#include "harness/core/program.h"

namespace gpubench {
namespace {

/// Accesses to the storages so far. Each region keeps only its last writer and the reads since then: the next op waits
/// for these, and they for all earlier ones. A value that is not a proper part overlaps everything in its storage; a
/// proper part overlaps its region, and values that are not parts of its whole.
class Touches {
 public:
  explicit Touches(const Program& program)
      : program_(program), writer_(program.values().size(), none), last_read_(program.values().size(), none) {}

  void wait(ValueId id, bool writes, std::vector<int>& earlier) const {
    const Value& value = program_.value(id);
    const bool part = program_.is_proper_part(id);
    wait_for(program_.values_in(value.storage).front(), writes, earlier);
    if (part) wait_for(program_.region(id), writes, earlier);
    const auto groups = parts_.find(value.storage.index);
    if (groups == parts_.end()) return;
    for (const Parts& group : groups->second) {
      if (part && group.whole == *value.part_of) continue;
      for (const ValueId region : group.regions) wait_for(region, writes, earlier);
    }
  }

  void read(int op, ValueId id) {
    note_part(id);
    const std::size_t region = at(program_.region(id));
    reads_.push_back({op, last_read_[region]});
    last_read_[region] = static_cast<int>(reads_.size()) - 1;
  }

  void write(int op, ValueId id) {
    note_part(id);
    const std::size_t region = at(program_.region(id));
    writer_[region] = op;
    last_read_[region] = none;
    if (program_.is_proper_part(id)) return;
    const auto groups = parts_.find(program_.value(id).storage.index);
    if (groups == parts_.end()) return;
    for (const Parts& group : groups->second) {
      for (const ValueId part : group.regions) writer_[at(part)] = last_read_[at(part)] = none;
    }
    parts_.erase(groups);
  }

 private:
  static constexpr int none = -1;
  struct Read {
    int op;
    int before;  // another read of the region since it was written
  };
  /// Touched regions of the proper parts of one whole.
  struct Parts {
    ValueId whole;
    std::vector<ValueId> regions;
  };

  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

  void wait_for(ValueId region, bool writes, std::vector<int>& earlier) const {
    if (writer_[at(region)] != none) earlier.push_back(writer_[at(region)]);
    if (!writes) return;
    for (int read = last_read_[at(region)]; read != none; read = reads_[static_cast<std::size_t>(read)].before)
      earlier.push_back(reads_[static_cast<std::size_t>(read)].op);
  }

  void note_part(ValueId id) {
    const std::size_t region = at(program_.region(id));
    if (!program_.is_proper_part(id) || writer_[region] != none || last_read_[region] != none) return;
    std::vector<Parts>& groups = parts_[program_.value(id).storage.index];
    const ValueId whole = *program_.value(id).part_of;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Parts& one) { return one.whole == whole; });
    if (group == groups.end()) group = groups.insert(group, {whole, {}});
    group->regions.push_back(program_.region(id));
  }

  const Program& program_;
  std::vector<int> writer_;     // by region
  std::vector<int> last_read_;  // by region: of reads_
  std::vector<Read> reads_;
  std::unordered_map<int, std::vector<Parts>> parts_;  // by storage
};

}  // namespace

std::vector<std::vector<int>> Program::dependencies(std::span<const int> ops) const {
  Touches touches(*this);
  std::vector<std::vector<int>> result(ops.size());
  for (int place = 0; place < static_cast<int>(ops.size()); ++place) {
    const OpCall& call = op(ops[static_cast<std::size_t>(place)]);
    std::vector<int>& earlier = result[static_cast<std::size_t>(place)];
    for (const ValueId input : call.inputs) touches.wait(input, false, earlier);
    for (const ValueId output : call.outputs) touches.wait(output, true, earlier);
    std::sort(earlier.begin(), earlier.end());
    earlier.erase(std::unique(earlier.begin(), earlier.end()), earlier.end());
    for (const ValueId input : call.inputs) touches.read(place, input);
    for (const ValueId output : call.outputs) touches.write(place, output);
  }
  return result;
}

std::vector<std::vector<int>> Program::dependencies() const {
  std::vector<int> all(ops_.size());
  std::iota(all.begin(), all.end(), 0);
  return dependencies(all);
}

}  // namespace gpubench
