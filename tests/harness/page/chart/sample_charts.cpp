#include "tests/harness/page/chart/sample_charts.h"

#include <cmath>

namespace gpubench::chart {
namespace {

// Rises to `peak` with size and levels off; the same on every machine.
double climbing(double peak, double bytes) { return peak * bytes / (bytes + 0x1p22); }

Point measured(double x, double y, double half, const std::string& note) {
  Point point;
  point.x = x;
  point.y = y;
  point.low = y * (1.0 - half);
  point.high = y * (1.0 + half);
  point.note = note;
  return point;
}

Point bare(double x, double y) {
  Point point;
  point.x = x;
  point.y = y;
  return point;
}

}  // namespace

PlotChart throughput_sample() {
  PlotChart chart;
  chart.title = "Bus bandwidth by message size";
  chart.description = "Bandwidth rises with the size of the message and levels off below the limit of the link.";
  chart.x = {.title = "Message size", .scale = Scale::log2, .labels = TickLabels::bytes, .unit = ""};
  chart.y = {.title = "Bus bandwidth", .scale = Scale::log10, .labels = TickLabels::si, .unit = "B/s"};
  const char* names[] = {"all_reduce bf16 x8", "all_gather bf16 x8", "reduce_scatter bf16 x8", "all_to_all bf16 x8"};
  double peak = 470e9;
  for (const char* name : names) {
    Series series{name, Mark::line, {}};
    for (int e = 13; e <= 33; e += 2)
      series.points.push_back(measured(std::exp2(e), climbing(peak, std::exp2(e)), 0.08, name));
    chart.series.push_back(series);
    peak *= 0.6;
  }
  chart.guides = {{"link 478 GB/s", {bare(0.0, 478e9)}}};
  Point& wide = chart.series[3].points[2];  // an interval beyond both ends of the drawing
  wide.low = wide.y / 1e6;
  wide.high = wide.y * 1e6;
  wide.doubtful = true;
  return chart;
}

PlotChart roofline_sample() {
  PlotChart chart;
  chart.title = "Roofline";
  chart.description = "Cases left of the ridge are limited by memory, those right of it by arithmetic.";
  chart.x = {.title = "Work per byte", .scale = Scale::log2, .labels = TickLabels::plain, .unit = "FLOP/B"};
  chart.y = {.title = "Throughput", .scale = Scale::log10, .labels = TickLabels::si, .unit = "FLOP/s"};
  const char* names[] = {"gemm", "conv", "norm", "attention", "optimizer", "softmax", "loss", "embedding", "pool"};
  for (int i = 0; i < 9; ++i) {
    Series series{names[i], Mark::scatter, {}};
    for (int k = 0; k < 4; ++k) {
      const double x = std::exp2(-3 + i + k);
      series.points.push_back(measured(x, std::min(4e12 * x, 7e14) * (0.5 + 0.1 * k), 0.15, names[i]));
    }
    chart.series.push_back(series);
  }
  chart.guides = {{"peak 989 TFLOP/s", {bare(0.0, 989e12)}},
                  {"memory 4.8 TB/s", {bare(0.0625, 0.3e12), bare(206.0, 989e12)}}};
  Point& wide = chart.series[1].points[1];
  wide.high = 1e18;
  wide.doubtful = true;
  return chart;
}

BarChart precision_sample() {
  BarChart chart;
  chart.title = "Achieved by precision";
  chart.description = "The outline is the peak of the device.";
  chart.value = {.title = "Throughput", .labels = TickLabels::si, .unit = "FLOP/s"};
  chart.groups = {{"gemm", {}}, {"attention", {}}};
  const auto bar = [](const std::string& label, double value, double limit, const std::string& text) {
    Bar one;
    one.label = label;
    one.value = value;
    one.low = 0.97 * value;
    one.high = 1.02 * value;
    if (limit > 0.0) one.limit = limit;
    one.text = text;
    one.note = label + ": " + text;
    return one;
  };
  chart.groups[0].bars = {
      bar("f32", 51e12, 67e12, "51.0 TFLOP/s, 76%"), bar("tf32", 378e12, 494e12, "378 TFLOP/s, 77%"),
      bar("bf16", 743e12, 989e12, "743 TFLOP/s, 75%"), bar("f8e4m3", 1391e12, 1979e12, "1.39 PFLOP/s, 70%")};
  chart.groups[1].bars = {
      bar("forward/batch=8,heads=32,tokens=4096,head_size=128,causal=1/bf16/x1", 604e12, 989e12, "604 TFLOP/s, 61%"),
      bar("no peak is known", 120e12, 0.0, "120 TFLOP/s")};
  chart.groups[1].bars[1].doubtful = true;
  chart.groups[1].bars[1].high = 9e15;
  return chart;
}

StackChart step_sample() {
  StackChart chart;
  chart.title = "A training step by operation";
  chart.description = "Most of the time goes to gemm.";
  chart.bars = {{"gpt2_124m/train/bf16", {}}, {"resnet50/train/bf16", {}}};
  chart.bars[0].parts = {{"gemm", 0.498, ""},
                         {"attention backward", 0.181, ""},
                         {"attention forward", 0.09, ""},
                         {"layernorm", 0.06, ""},
                         {"adamw", 0.055, ""},
                         {"cross_entropy", 0.05, ""},
                         {"gelu", 0.02, ""},
                         {"dropout", 0.015, ""},
                         {"transpose", 0.011, ""},
                         {"embedding", 0.008, ""},
                         {"norm of gradient", 0.007, ""},
                         {"copy", 0.005, ""}};
  chart.bars[1].parts = {{"conv backward_filter", 0.41, ""},
                         {"conv forward", 0.3, ""},
                         {"batchnorm", 0.2, ""},
                         {"adamw", 0.04, ""},
                         {"gemm", 0.03, ""},
                         {"left over", 0.02, "left over: +2.0%"}};
  return chart;
}

HeatMap budget_sample() {
  HeatMap chart;
  chart.title = "Error budget: largest error over its bound";
  chart.description = "One cell is over the limit: conv backward_filter in f16.";
  chart.columns = {"f32", "tf32", "bf16", "f16", "f8e4m3", "f8e5m2", "f64"};
  chart.rows = {"gemm", "conv forward", "conv backward_filter", "softmax", "layernorm with a very long name"};
  for (std::size_t row = 0; row < chart.rows.size(); ++row) {
    std::vector<HeatCell> cells;
    for (std::size_t column = 0; column < chart.columns.size(); ++column) {
      const double ratio = 0.05 + 0.031 * static_cast<double>((row * 7 + column * 5) % 29);
      HeatCell cell;
      if (column < 4 || row == 0) {
        std::string text = std::to_string(ratio).substr(0, 4);
        cell = {text, ratio, false, chart.rows[row] + " " + chart.columns[column] + ": " + text};
      }
      if (row == 2 && column == 3) cell = {"3.21", 1.0, true, "conv backward_filter f16: 3.21 times its bound"};
      cells.push_back(cell);
    }
    chart.cells.push_back(cells);
  }
  return chart;
}

ForestChart comparison_sample() {
  ForestChart chart;
  chart.title = "B over A";
  chart.description = "Two cases are faster, one is slower.";
  chart.axis_title = "Ratio of rates, 95% interval";
  chart.rows = {{"gemm/m=8192,n=3072,k=1024/bf16/x1", 1.42, 1.38, 1.46, "FASTER"},
                {"conv/res3/bf16/x1", 1.21, 1.13, 1.29, "FASTER"},
                {"softmax/rows=8192/f32/x1", 1.004, 0.991, 1.017, "SAME"},
                {"all_reduce/8KiB/x8", 1.02, 0.1, 9.0, "UNSURE"},
                {"adamw/f32/x1", 0.91, 0.89, 0.93, "SLOWER"},
                {"geometric mean", 1.101, 1.07, 1.135, "", true}};
  return chart;
}

std::vector<NamedDrawing> sample_drawings(Placement placement) {
  return {{"throughput", svg(throughput_sample(), "throughput", placement)},
          {"roofline", svg(roofline_sample(), "roofline", placement)},
          {"precision", svg(precision_sample(), "precision", placement)},
          {"step", svg(step_sample(), "step", placement)},
          {"budget", svg(budget_sample(), "budget", placement)},
          {"comparison", svg(comparison_sample(), "comparison", placement)}};
}

}  // namespace gpubench::chart
