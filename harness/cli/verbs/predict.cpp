// gpubench predict: predicts a training step on many devices, or scores predictions of published series.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "harness/cli/verb.h"
#include "harness/core/text/quantity.h"
#include "harness/page/chart/chart.h"
#include "harness/predict/prediction.h"
#include "harness/predict/transformer_model.h"

namespace gpubench {
namespace {

struct PredictOptions {
  std::string model;                  ///< empty: scores published series
  std::string layout;                 ///< "tp=8,pp=8"
  std::vector<std::string> sizes;     ///< "512", "64..16384:x2"
  std::vector<std::string> measured;  ///< "512:1152=55.1"
  std::string from;
  std::optional<std::int64_t> global_batch{};
  std::int64_t micro_batches = 32, sequence = 8192, per_node = 8;
  std::optional<double> rate{};  ///< TFLOP/s per device
  double node_gb_per_s = 450.0;
  std::string optimizer = "sharded";
  std::vector<std::string> network;  ///< above the node: "50", or "256:50", "25"; empty: 50
  double memory_gb = 80.0;           ///< per device
  std::optional<double> tokens{};
  std::optional<double> price_per_hour{};
};

constexpr double giga = 1e9, tera = 1e12, seconds_per_day = 86400.0, seconds_per_hour = 3600.0;

std::string percent(double share) { return fmt::format("{:.1f}%", 100.0 * share); }
std::string signed_percent(double share) { return fmt::format("{:+.1f}%", 100.0 * share); }

std::string model_text(const StepModel& model) {
  return fmt::format(
      "{} of a device while it works, {:.0f}% of the wire's time not hidden, {} for each doubling beyond {} devices",
      format_quantity(model.flop_per_s, "FLOP/s"), 100.0 * model.exposed, percent(model.growth), model.first);
}

template <class Work>
auto of_flag(std::string_view flag, const Work& work) {
  try {
    return work();
  } catch (const std::invalid_argument& e) {
    throw UsageError(fmt::format("{}: {}", flag, visible(e.what())));
  }
}

// "512=55.1", "512:1152=55.1".
MeasuredStep measured_of(const std::string& word, const PredictionRequest& request) {
  const std::size_t equals = word.find('='), colon = word.find(':');
  const auto refuse = [&] {
    throw UsageError(fmt::format("--measured: '{}' is not GPUS=SECONDS or GPUS:BATCH=SECONDS, such as 512:1152=55.1",
                                 visible(word)));
  };
  if (equals == std::string::npos) refuse();
  const auto devices = number<std::int64_t>(word.substr(0, std::min(colon, equals)));
  const auto seconds = number<double>(word.substr(equals + 1));
  if (!devices || *devices < 1 || *devices > max_extent || !seconds || !(*seconds > 0.0) || !std::isfinite(*seconds))
    refuse();
  std::int64_t batch = batch_on(*devices, request);
  if (colon < equals) {
    const auto given = number<std::int64_t>(word.substr(colon + 1, equals - colon - 1));
    if (!given) refuse();
    batch = *given;
  }
  return {{*devices, batch, request.sequence, request.layout}, *seconds};
}

/// The fastest training step on one device in a report.
double rate_in(const std::string& file) {
  const Report report = read_report(file);
  double best = 0.0;
  for (const CaseRecord& record : report.cases) {
    const bool is_step = record.c.workload.ends_with("_train_step") && record.c.ranks == 1;
    if (is_step && record.verdict == Verdict::pass) best = std::max(best, record.derived.flop_per_s);
  }
  if (!(best > 0.0)) {
    throw UsageError(fmt::format(
        "--from: {} has no training step of one device that passed; expected a report of --suite transformer or moe",
        visible(file)));
  }
  return best;
}

PredictionRequest request_of(const Options& options) {
  const auto& given = options.of<PredictOptions>();
  PredictionRequest request;
  request.model = *find_model(given.model);
  if (given.sizes.empty()) throw UsageError("predict --model needs --gpus, such as --gpus 64..16384:x2");
  request.devices = of_flag("--gpus", [&] { return parse_sizes(given.sizes); });
  request.layout = of_flag("--parallel", [&] { return parse_layout(given.layout); });
  if (given.optimizer == "replicated") request.layout.optimizer = Optimizer::replicated;
  request.sequence = given.sequence;
  request.global_batch = given.global_batch;
  request.micro_batches = given.micro_batches;
  const NetworkLevel node{given.per_node, given.node_gb_per_s * giga};
  if (given.network.empty())
    request.network.levels.front() = node;
  else
    request.network = of_flag("--network", [&] { return parse_network(node, given.network); });
  const int sources = (given.measured.empty() ? 0 : 1) + (given.rate ? 1 : 0) + (given.from.empty() ? 0 : 1);
  if (sources != 1) {
    throw UsageError(
        "predict --model needs one of --measured (steps of this model), --rate (TFLOP/s of a device) and --from (a "
        "report)");
  }
  if (given.rate) request.flop_per_s = *given.rate * tera;
  try {
    if (!given.from.empty()) request.flop_per_s = rate_in(given.from);
  } catch (const ReadError& e) {
    throw UsageError(e.what());
  }
  for (const std::string& word : given.measured) request.measured.push_back(measured_of(word, request));
  std::ranges::stable_sort(request.measured, {}, [](const MeasuredStep& step) { return step.shape.devices; });
  return request;
}

/// A note on a size's memory; empty if it fits.
std::string memory_note(const DeviceMemory& memory, double gigabytes) {
  const double has = gigabytes * giga;
  if (memory.total() <= has) return "";
  if (memory.least() <= has)
    return fmt::format("fits {:.3g} GB if layers are run again ({})", gigabytes, format_quantity(memory.least(), "B"));
  return fmt::format("does not fit {:.3g} GB: {} if layers are run again", gigabytes,
                     format_quantity(memory.least(), "B"));
}

std::string note_of(const PredictedSize& size, double gigabytes) {
  std::string note = memory_note(size.memory, gigabytes);
  if (!size.extrapolated.empty()) note += (note.empty() ? "" : "; ") + ("extrapolated: " + size.extrapolated);
  return note;
}

double days(const PredictedSize& size, double tokens) { return tokens / size.tokens_per_s / seconds_per_day; }
double price(const PredictedSize& size, double tokens, double per_hour) {
  return tokens / size.tokens_per_s / seconds_per_hour * static_cast<double>(size.devices) * per_hour;
}

std::string table_of(const Prediction& prediction, const Options& options, const ConsoleStyle& style) {
  const std::optional<double> tokens = options.of<PredictOptions>().tokens;
  const std::optional<double> per_hour = options.of<PredictOptions>().price_per_hour;
  std::vector<Column> columns =
      columns_titled({"GPUs>", "replicas>", "batch>", "step>", "likely>", "tokens/s>", "FLOP/s>", "kept>", "bubble>",
                      "wire>", "slowest", "growth>", "limit", "memory>"});
  if (tokens) columns.push_back({"days", Align::right});
  if (tokens && per_hour) columns.push_back({"price", Align::right});
  columns.push_back({""});
  TextTable table(columns);
  for (const PredictedSize& size : prediction.sizes) {
    std::vector<std::string> cells{format_count(size.devices)};
    if (!size.failure.empty()) {
      cells.resize(columns.size());
      cells.back() = size.failure;
      table.add(cells, Tone::faint);
      continue;
    }
    cells.insert(
        cells.end(),
        {format_count(size.terms.replicas), format_count(size.global_batch), fmt::format("{:.3g} s", size.seconds),
         fmt::format("{:.3g} to {:.3g}", size.low_s, size.high_s), format_quantity(size.tokens_per_s, ""),
         format_quantity(size.flop_per_s, ""), percent(size.efficiency), percent(size.bubble), percent(size.wire),
         size.slowest, percent(size.growth), size.limit(), format_quantity(size.memory.total(), "B")});
    if (tokens) cells.push_back(fmt::format("{:.3g}", days(size, *tokens)));
    if (tokens && per_hour) cells.push_back(format_quantity(price(size, *tokens, *per_hour), ""));
    cells.push_back(note_of(size, options.of<PredictOptions>().memory_gb));
    table.add(cells, size.extrapolated.empty() ? Tone::plain : Tone::doubtful);
  }
  return table.text(style);
}

/// The seconds of a step per level; the last level joins all devices and is null.
Json json_of(const GradientExchange& wire, const Network& network) {
  Json levels = Json::array();
  for (std::size_t i = 0; i < network.levels.size(); ++i) {
    const std::int64_t devices = network.levels[i].devices;
    levels.push_back({{"devices", devices == all_devices ? Json() : Json(devices)}, {"seconds", wire.by_level[i]}});
  }
  return {{"seconds", wire.seconds},
          {"latency_s", wire.latency_s},
          {"levels", levels},
          {"slowest", slowest_of(wire, network)}};
}

Json json_of(const PredictedSize& size, const PredictionRequest& request, const Options& options) {
  Json json{{"devices", size.devices}, {"global_batch", size.global_batch}};
  if (!size.failure.empty()) {
    json["why_not"] = size.failure;
    return json;
  }
  json.update(Json{{"replicas", size.terms.replicas},
                   {"micro_batches", size.terms.micro_batches},
                   {"step_s", size.seconds},
                   {"step_low_s", size.low_s},
                   {"step_high_s", size.high_s},
                   {"tokens_per_s", size.tokens_per_s},
                   {"flop_per_s_per_device", size.flop_per_s},
                   {"efficiency", size.efficiency},
                   {"bubble", size.bubble},
                   {"wire", size.wire},
                   {"network", json_of(size.terms.wire, request.network)},
                   {"growth", size.growth},
                   {"limit", size.limit()},
                   {"memory_bytes", size.memory.total()},
                   {"memory_bytes_if_recomputed", size.memory.least()},
                   {"extrapolated", size.extrapolated}});
  if (options.of<PredictOptions>().tokens) {
    json["days"] = days(size, *options.of<PredictOptions>().tokens);
    if (options.of<PredictOptions>().price_per_hour)
      json["price"] = price(size, *options.of<PredictOptions>().tokens, *options.of<PredictOptions>().price_per_hour);
  }
  return json;
}

// Work on the model per device and second, over the number of devices.
chart::PlotChart chart_of(const PredictionRequest& request, const Prediction& prediction) {
  chart::Series known{"predicted", chart::Mark::line, {}}, beyond{"extrapolated", chart::Mark::line, {}};
  for (const PredictedSize& size : prediction.sizes) {
    if (!size.failure.empty()) continue;
    const auto at = [&](double seconds) { return size.flop_per_s * size.seconds / seconds; };
    chart::Series& series = size.extrapolated.empty() ? known : beyond;
    series.points.push_back({static_cast<double>(size.devices), size.flop_per_s, at(size.high_s), at(size.low_s),
                             fmt::format("{} GPUs: {} each, limited by {}", format_count(size.devices),
                                         format_quantity(size.flop_per_s, "FLOP/s"), size.limit())});
  }
  chart::PlotChart chart;
  chart.title = fmt::format("{} on more devices", request.model.name);
  chart.description = fmt::format("Model FLOP per second of one device as predicted, with its interval; {}.",
                                  to_string(request.layout));
  chart.x = {"GPUs", chart::Scale::log2, chart::TickLabels::plain};
  chart.y = {"rate of a device", chart::Scale::linear, chart::TickLabels::si, "FLOP/s", 0.0};
  for (chart::Series* series : {&known, &beyond}) {
    if (!series->points.empty()) chart.series.push_back(std::move(*series));
  }
  chart.guides.push_back({"if it only computed", {{0.0, prediction.model.flop_per_s, {}, {}, ""}}});
  return chart;
}

Json json_of(const StepModel& model) {
  return {{"flop_per_s", model.flop_per_s},
          {"exposed", model.exposed},
          {"growth_per_doubling", model.growth},
          {"from_devices", model.first}};
}

int predict_sizes(const Options& options, const Environment& environment) {
  const ResultFile file("--json", options.json.value_or(""), options.writing, environment);
  const ResultFile picture("--svg", options.svg, options.writing, environment);
  const PredictionRequest request = request_of(options);
  const Prediction prediction = of_flag("predict", [&] { return predict(request); });
  const bool any =
      std::ranges::any_of(prediction.sizes, [](const PredictedSize& size) { return size.failure.empty(); });
  if (!any) throw UsageError(fmt::format("--gpus: {}", prediction.sizes.front().failure));
  std::ostream& out = file.prose();
  out << fmt::format("{}: {} parameters, {} a token at {} positions; {}\n", request.model.name,
                     format_quantity(request.model.parameters(), ""),
                     format_quantity(request.model.flop_per_token(request.sequence), "FLOP"),
                     format_count(request.sequence), to_string(request.layout));
  out << model_text(prediction.model)
      << fmt::format("\n{}; {} optimizer\n\n", to_string(request.network), options.of<PredictOptions>().optimizer);
  out << table_of(prediction, options, console_style(options, Stream::out, environment));
  out << fmt::format(
      "\nkept: share of the rate of a device that only computes; likely: with twice the error of predictions of "
      "published series ({} with the work of a fitted step: {} on average; {} others: {}), and the uncertainty of "
      "measured steps; slowest: where most of the communication time goes; memory: of a device, without buffers\n",
      published_errors().weak.count, percent(published_errors().weak.mean), published_errors().strong.count,
      percent(published_errors().strong.mean));
  Json sizes = Json::array();
  for (const PredictedSize& size : prediction.sizes) sizes.push_back(json_of(size, request, options));
  file.write(Json{{"model", std::string(request.model.name)},
                  {"layout", to_string(request.layout)},
                  {"optimizer", options.of<PredictOptions>().optimizer},
                  {"sequence", request.sequence},
                  {"fit", json_of(prediction.model)},
                  {"sizes", sizes}});
  picture.write(chart::svg(chart_of(request, prediction), "predict", chart::Placement::file));
  return exit_codes::ok;
}

std::string errors_text(std::string_view which, const Errors& errors) {
  return fmt::format("\n{} predictions {}: {} off on average, {} at worst", errors.count, which, percent(errors.mean),
                     percent(errors.worst));
}

int score_series(const Options& options, const Environment& environment) {
  const ResultFile file("--json", options.json.value_or(""), options.writing, environment);
  TextTable table(columns_titled({"series", "GPUs>", "measured>", "predicted>", "error>", "constant>"}));
  Json all = Json::array();
  for (const PublishedSeries& series : published_series()) {
    const SeriesScore score = score_of(series);
    Json steps = Json::array();
    for (const PredictedStep& step : score.steps) {
      table.add({&step == score.steps.data() ? std::string(series.name) : "", format_count(step.devices),
                 fmt::format("{:.3f} s", step.measured_s), fmt::format("{:.3f} s", step.predicted_s),
                 signed_percent(step.error()), signed_percent(step.error_of_constant())});
      steps.push_back({{"devices", step.devices},
                       {"measured_s", step.measured_s},
                       {"predicted_s", step.predicted_s},
                       {"constant_s", step.constant_s}});
    }
    all.push_back({{"name", std::string(series.name)},
                   {"source", std::string(series.source)},
                   {"devices", std::string(series.devices)},
                   {"fit", json_of(score.model)},
                   {"steps", steps}});
  }
  std::ostream& out = file.prose();
  out << "Published series: the two smallest steps of each are fitted, the others predicted. constant: the smallest "
         "step's throughput of a device.\n\n"
      << table.text(console_style(options, Stream::out, environment))
      << errors_text("with a fitted step's work for each device", published_errors().weak)
      << errors_text("with other work", published_errors().strong) << "\n";
  file.write(Json{{"series", all}});
  return exit_codes::ok;
}

int predict_command(const Options& options, const Environment& environment) {
  return options.of<PredictOptions>().model.empty() ? score_series(options, environment)
                                                    : predict_sizes(options, environment);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const TransformerModel& model : transformer_models()) names.emplace_back(model.name);
  return names;
}

std::vector<Flag> predict_flags(std::span<const std::string> /*suites*/) {
  return together(
      shared_flags({"--force", "--mode", "--color", "--json"}),
      under("select",
            common("llama3-70b, gpt3-175b, ...",
                   row("--model", "NAME", fmt::format("the model: {}", joined(model_names())),
                       one_of(own(&PredictOptions::model), model_names()))),
            common("numbers of devices: 512, 64..16384:x2, 100..1000:+100",
                   row("--gpus", "N|A..B:xF,...", "numbers of devices: 512, 64..16384:x2, 100..1000:+100",
                       all_of(Takes::list, own(&PredictOptions::sizes)))),
            common("layout of a replica: tp, pp, vp, cp, ep, mbs (default: tp=1)",
                   row("--parallel", "AXIS=N,...",
                       "layout of a replica: tensor tp, pipeline pp in vp parts a stage, context cp, expert ep, and "
                       "sequences of a micro-batch mbs (default: tp=1); the rest is data-parallel",
                       text(own(&PredictOptions::layout)))),
            row("--optimizer", "sharded|replicated",
                "sharded: each replica updates a part, gradients are scattered and weights gathered (default); "
                "replicated: each updates all, gradients are all-reduced",
                one_of(own(&PredictOptions::optimizer), {"sharded", "replicated"})),
            common("sequences per step",
                   row("--global-batch", "N", "sequences of a step, for all sizes",
                       converted(own(&PredictOptions::global_batch), whole_from<std::int64_t>(1, 1 << 30)))),
            row("--micro-batches", "N", "sequences of each replica, without --global-batch (default: 32)",
                converted(own(&PredictOptions::micro_batches), whole_from<std::int64_t>(1, 1 << 20))),
            row("--sequence", "N", "positions of a sequence (default: 8192)",
                converted(own(&PredictOptions::sequence), whole_from<std::int64_t>(1, 1 << 26)))),
      under("measure",
            common("one or two measured steps", row("--measured", "GPUS[:BATCH]=SECONDS,...",
                                                    "one or two measured steps of this model in this layout",
                                                    all_of(Takes::list, own(&PredictOptions::measured)))),
            common("or: model TFLOP/s of a device",
                   row("--rate", "TFLOPS", "or: the model TFLOP/s of a device while it works",
                       converted(own(&PredictOptions::rate), positive_of))),
            common("or: a report with a training step",
                   row("--from", "FILE", "or: a report, whose fastest training step of one device gives the rate",
                       text(own(&PredictOptions::from))))),
      node_flags<PredictOptions>(),
      under("measure",
            row("--network", "[GPUS:]GB/S,...",
                "bandwidth of each device beyond its node, one way, while all send (default: 50); per level, by the "
                "GPUs that it joins, then beyond: 256:50,25",
                all_of(Takes::list, own(&PredictOptions::network))),
            row("--memory-size", "GB", "memory of a device (default: 80); a note says if a step needs more",
                converted(own(&PredictOptions::memory_gb), positive_of))),
      under("output", row("--svg", "FILE", "a chart of the rate of a device", text(&Options::svg)),
            row("--tokens", "N", "tokens to train on: 15e12; adds the days",
                converted(own(&PredictOptions::tokens), tokens_of)),
            row("--price-per-hour", "PRICE",
                "price of one device, in any currency; with --tokens: the cost of the training",
                converted(own(&PredictOptions::price_per_hour), price_of))));
}

}  // namespace

Verb predict_verb() {
  return {.name = "predict",
          .arguments = "[--model NAME --gpus N... flags]",
          .summary = "predict step time and cost on more devices",
          .description = "Without a model, prints how well it predicts published results.",
          .examples = R"(  gpubench predict
  gpubench predict --model llama3-8b --gpus 8..128:x2 --from report.json
  gpubench predict --model llama3-405b --gpus 512..16384:x2 --parallel tp=8,pp=8,cp=2,vp=8 --global-batch 2048 --measured 512:1152=55.1,2048:1152=14.2
  gpubench predict --model llama3-70b --gpus 64..2048:x2 --parallel tp=4,pp=4,vp=5 --rate 520 --tokens 15e12 --price-per-hour 2.49
  gpubench predict --model llama3-70b --gpus 512..32768:x4 --parallel tp=8,pp=2 --rate 400 --network 3072:50,7.1
)",
          .flags = predict_flags,
          .act = predict_command,
          .options = PredictOptions{}};
}

}  // namespace gpubench
