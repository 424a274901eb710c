#include "harness/report/record_json.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

namespace gpubench {
namespace {

// Each struct's members are listed once, in visit(); Writer and Reader both walk that list, so they cannot disagree.

template <class Archive>
void visit(Archive& a, Worst& w) {
  a("tensor", w.tensor);
  a("index", w.index);
  a("got", w.got);
  a("want", w.want);
  a("bound", w.bound);
}

template <class Archive>
void visit(Archive& a, OpParity& p) {
  a("label", p.label);
  a("kind", p.kind);
  a("phase", p.phase);
  a("implementation", p.implementation);
  a("status", p.verdict);
  a("reason", p.reason);
  a("error_over_bound", p.error_over_bound);
  a("judged", p.judged);
  a("elements", p.elements);
  a("bad", p.bad);
  a("worst", p.worst);
  a("mutations", p.mutations);
  a("mutations_rejected", p.mutations_rejected);
}

template <class Archive>
void visit(Archive& a, Parity& p) {
  a("error_over_bound", p.error_over_bound);
  a("worst_op", p.worst_op);
  a("coverage", p.coverage);
  a("seed", p.seed);
  a("ops", p.ops);
}

template <class Archive>
void visit(Archive& a, RoundRecord& r) {
  a("device_ns", r.times.device_ns);
  a("wall_ns", r.times.wall_ns);
  a("valid", r.valid);
  a("note", r.note);
}

template <class Archive>
void visit(Archive& a, Summary& s) {
  a("rounds", s.rounds);
  a("samples", s.samples);
  a("median_ns", s.median_ns);
  a("ci95_low_ns", s.ci95_low_ns);
  a("ci95_high_ns", s.ci95_high_ns);
  a("mad_ns", s.mad_ns);
  a("min_ns", s.min_ns);
  a("p10_ns", s.p10_ns);
  a("p90_ns", s.p90_ns);
  a("mean_ns", s.mean_ns);
  a("round_sd", s.round_sd);
  a("severe", s.severe);
  a("drift", s.drift);
  a("flags", s.flags);
}

template <class Archive>
void visit(Archive& a, OpShare& s) {
  a("label", s.label);
  a("kind", s.kind);
  a("implementation", s.implementation);
  a("median_ns", s.median_ns);
  a("share", s.share);
  a("flop", s.flop);
  a("bytes", s.bytes);
}

template <class Archive>
void visit(Archive& a, Derived& d) {
  a("flop", d.flop);
  a("bytes", d.bytes);
  a("flop_per_s", d.flop_per_s);
  a("bytes_per_s", d.bytes_per_s);
  a("items_per_s", d.items_per_s);
  a("item", d.item);
  a("headline", d.headline);
  a("headline_unit", d.headline_unit);
  a("breakdown", d.breakdown);
  a("remainder", d.remainder);
}

template <class Archive>
void visit(Archive& a, CaseRecord& r) {
  a("id", r.id);
  a("suite", r.c.suite);
  a("workload", r.c.workload);
  a("params", r.c.dims);
  a("recipe", r.c.recipe);
  a("modes", r.c.modes);
  a("ranks", r.c.ranks);
  a("label", r.c.label);
  a("tier", r.c.tier);
  a("cache", r.c.cache);
  a("status", r.verdict);
  a("reason", r.reason);
  a("implementation", r.implementation);
  a("parity", r.parity);
  a("batch", r.batch);
  a("copies", r.copies);
  a("memory_bytes", r.memory_bytes);
  a("rounds", r.rounds);
  a("summary", r.summary);
  a("derived", r.derived);
  a("rerun", r.rerun);
  a("check_s", r.check_s);
  a("time_s", r.time_s);
}

template <class Archive>
void visit(Archive& a, DeviceInfo& d) {
  a("kind", d.kind);
  a("name", d.name);
  a("units", d.units);
  a("memory_bytes", d.memory_bytes);
  a("available_bytes", d.available_bytes);
  a("cache_bytes", d.cache_bytes);
  a("properties", d.properties);
  a("libraries", d.libraries);
}

constexpr std::array verdicts{Verdict::pass,       Verdict::fail,        Verdict::downgraded, Verdict::not_proven,
                              Verdict::unverified, Verdict::unsupported, Verdict::skipped,    Verdict::error};
constexpr std::array tiers{Tier::smoke, Tier::quick, Tier::standard, Tier::large};
constexpr std::array cache_modes{CacheMode::cold, CacheMode::warm, CacheMode::step};
constexpr auto& words(Verdict) { return verdicts; }
constexpr auto& words(Tier) { return tiers; }
constexpr auto& words(CacheMode) { return cache_modes; }

template <class T>
concept Word = std::is_enum_v<T>;
template <class T>
concept Whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T, class... Ts>
concept AnyOf = (std::is_same_v<T, Ts> || ...);
template <class T>
concept Part = AnyOf<T, Worst, OpParity, Parity, RoundRecord, Summary, OpShare, Derived>;
template <class T>
concept Pairs = AnyOf<T, Dims, std::vector<std::pair<std::string, std::string>>>;

class Writer {
 public:
  explicit Writer(Json& object) : object_(object) { object_ = Json::object(); }

  void operator()(const char* key, double value) { put(key, number(key, value)); }
  void operator()(const char* key, const std::string& value) { put(key, value); }
  void operator()(const char* key, bool value) { put(key, value); }
  void operator()(const char* key, const std::vector<std::string>& list) { put(key, list); }
  void operator()(const char* key, const std::vector<std::int64_t>& list) { put(key, list); }

  template <Whole T>
  void operator()(const char* key, T& value) {
    put(key, value);
  }

  template <Word T>
  void operator()(const char* key, T& value) {
    put(key, std::string(name(value)));
  }

  void operator()(const char* key, const std::vector<double>& values) {
    Json list = Json::array();
    for (std::size_t i = 0; i < values.size(); ++i) list.push_back(number(fmt::format("{}[{}]", key, i), values[i]));
    put(key, std::move(list));
  }

  void operator()(const char* key, std::optional<Worst>& value) { put(key, value ? written(*value) : Json(nullptr)); }

  template <Part T>
  void operator()(const char* key, std::vector<T>& list) {
    Json array = Json::array();
    for (T& element : list) array.push_back(written(element));
    put(key, std::move(array));
  }

  template <Pairs T>
  void operator()(const char* key, T& pairs) {
    Json members = Json::object();
    for (const auto& [member, held] : pairs) members[member] = held;
    put(key, std::move(members));
  }

  template <Part T>
  void operator()(const char* key, T& value) {
    put(key, written(value));
  }

  template <class T>
  static Json written(T& value) {
    Json object;
    Writer writer(object);
    visit(writer, value);
    return object;
  }

 private:
  void put(const char* key, Json value) { object_[key] = std::move(value); }

  Json number(const std::string& note, double value) {
    if (std::isfinite(value)) return value;
    object_["nonfinite"][note] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return nullptr;
  }

  Json& object_;
};

class Reader {
 public:
  explicit Reader(Node object) : object_(std::move(object)) {}

  void operator()(const char* key, double& value) { value = object_.number_or_note(key); }
  void operator()(const char* key, std::vector<double>& values) { values = object_.numbers_or_notes(key); }
  void operator()(const char* key, std::string& value) { value = object_.at(key).text(); }
  void operator()(const char* key, bool& value) { value = object_.at(key).boolean(); }
  void operator()(const char* key, std::uint64_t& value) { value = object_.at(key).natural(); }

  template <Whole T>
  void operator()(const char* key, T& value) {  // every count of a record is zero or more
    value = static_cast<T>(object_.at(key).integer(0, std::numeric_limits<T>::max()));
  }

  template <Word T>
  void operator()(const char* key, T& value) {
    const Node node = object_.at(key);
    const std::string text = node.text();
    std::string known;
    for (const T word : words(T{})) {
      if (name(word) == text) {
        value = word;
        return;
      }
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name(word));
    }
    node.refuse(fmt::format("is not one of {}", known));
  }

  void operator()(const char* key, std::optional<Worst>& value) {
    const Node node = object_.at(key);
    value.reset();
    if (!node.is_null()) read(node, value.emplace());
  }

  void operator()(const char* key, std::vector<std::string>& list) {
    each(key, list, [](const Node& node, std::string& element) { element = node.text(); });
  }
  void operator()(const char* key, std::vector<std::int64_t>& list) {
    each(key, list, [](const Node& node, std::int64_t& element) { element = node.integer(); });
  }
  template <Part T>
  void operator()(const char* key, std::vector<T>& list) {
    each(key, list, [](const Node& node, T& element) { read(node, element); });
  }

  template <Pairs T>
  void operator()(const char* key, T& pairs) {
    const Node node = object_.at(key);
    pairs.clear();
    for (const std::string& member : node.keys()) {
      if constexpr (std::is_same_v<T, Dims>) {
        pairs.emplace_back(member, node.at(member).integer());
      } else {
        pairs.emplace_back(member, node.at(member).text());
      }
    }
  }

  template <Part T>
  void operator()(const char* key, T& value) {
    read(object_.at(key), value);
  }

  template <class T>
  static void read(const Node& node, T& value) {
    Reader reader(node);
    visit(reader, value);
  }

 private:
  template <class T, class Element>
  void each(const char* key, std::vector<T>& list, Element element) {
    const Node node = object_.at(key);
    list.clear();
    for (std::size_t i = 0; i < node.size(); ++i) element(node.at(i), list.emplace_back());
  }

  Node object_;
};

}  // namespace

Json to_json(const CaseRecord& record) {
  CaseRecord copy = record;
  return Writer::written(copy);
}

CaseRecord record_from_json(const Node& node) {
  CaseRecord record;
  Reader::read(node, record);
  std::string id;
  try {
    id = record.c.id();
  } catch (const std::exception& e) {
    node.refuse(e.what());
  }
  if (id != record.id) node.at("id").refuse(fmt::format("does not match its parts, which make {}", id));
  return record;
}

Json to_json(const DeviceInfo& device) {
  DeviceInfo copy = device;
  return Writer::written(copy);
}

DeviceInfo device_from_json(const Node& node) {
  DeviceInfo device;
  Reader::read(node, device);
  return device;
}

}  // namespace gpubench
