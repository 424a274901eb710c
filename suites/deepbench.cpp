// DeepBench's training lists (baidu-research/DeepBench, code/kernels/gemm_problems.h and conv_problems.h): speech, OCR,
// face, VGG, GoogLeNet and ResNet layers. Two convolutions that the list repeats appear once.
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "suites/suites.h"

namespace gpubench::suites {
namespace {

using Counts = std::vector<std::int64_t>;

// Products [m, n] over k of column-major matrices; n is the batch. In cuBLAS's letters, TN is a linear layer's forward,
// NN its backward_data, NT its backward_weight.
struct ProductFamily {
  std::vector<std::pair<std::int64_t, std::int64_t>> m_k;
  Counts n;
  std::array<Direction, 2> directions;
};

constexpr std::array nn_tn{Direction::backward_data, Direction::forward};
constexpr std::array nt_only{Direction::backward_weight, Direction::backward_weight};
constexpr std::array nn_nt{Direction::backward_data, Direction::backward_weight};

std::vector<ProductFamily> products() {
  return {
      {{{1760, 1760}, {2048, 2048}, {2560, 2560}, {4096, 4096}}, {16, 32, 64, 128, 7000}, nn_tn},
      {{{1760, 1760}, {2048, 2048}, {2560, 2560}, {4096, 4096}}, {7133}, nt_only},
      {{{5124, 1760}, {5124, 2048}, {5124, 2560}, {5124, 4096}}, {9124}, nn_tn},
      {{{35, 1760}, {35, 2048}, {35, 2560}, {35, 4096}}, {8457}, nn_tn},
      {{{7680, 2560}, {3072, 1024}}, {16, 32, 64, 128}, nn_tn},
      {{{3072, 1024}}, {7435}, nt_only},
      {{{7680, 2560}}, {5481}, nt_only},
      {{{512, 500000}, {1024, 500000}}, {8, 16}, nn_tn},
      {{{1024, 512}}, {700}, nn_tn},
      {{{7680, 2560}, {6144, 2048}, {4608, 1536}, {8448, 2816}, {3072, 1024}}, {24000, 48000}, nn_tn},
      {{{6144, 2048}, {4608, 1536}, {8448, 2816}}, {16, 32}, nn_tn},
      {{{512, 2816}, {512, 2048}, {512, 2560}, {512, 1536}}, {24000, 48000}, nn_tn},
      {{{1024, 2816}, {1024, 2048}, {1024, 2560}, {1024, 1536}}, {24000, 48000}, nn_tn},
      {{{512, 512}, {1024, 512}}, {16, 32}, nn_nt},
  };
}

Dims layer_of(Direction direction, std::int64_t m, std::int64_t n, std::int64_t k) {
  switch (direction) {
    case Direction::forward: return {{"m", n}, {"n", m}, {"k", k}};
    case Direction::backward_data: return {{"m", n}, {"n", k}, {"k", m}};
    case Direction::backward_weight: break;
  }
  return {{"m", k}, {"n", n}, {"k", m}};
}

struct ConvolutionFamily {
  const char* label;
  Counts images;
  std::vector<Convolution> layers;
};

std::vector<ConvolutionFamily> convolutions() {
  return {
      {"deepbench speech", {4, 8, 16, 32}, {{161, 700, 1, 32, 5, 20, 2, 0}, {79, 341, 32, 32, 5, 10, 2, 0}}},
      {"deepbench ocr",
       {16},
       {{48, 480, 1, 16, 3, 3, 1, 1},
        {24, 240, 16, 32, 3, 3, 1, 1},
        {12, 120, 32, 64, 3, 3, 1, 1},
        {6, 60, 64, 128, 3, 3, 1, 1}}},
      {"deepbench face",
       {8},
       {{108, 108, 3, 64, 3, 3, 2, 1},
        {54, 54, 64, 64, 3, 3, 1, 1},
        {27, 27, 128, 128, 3, 3, 1, 1},
        {14, 14, 128, 256, 3, 3, 1, 1},
        {7, 7, 256, 512, 3, 3, 1, 1}}},
      {"deepbench vgg",
       {8, 16},
       {{224, 224, 3, 64, 3, 3, 1, 1},
        {112, 112, 64, 128, 3, 3, 1, 1},
        {56, 56, 128, 256, 3, 3, 1, 1},
        {28, 28, 256, 512, 3, 3, 1, 1},
        {14, 14, 512, 512, 3, 3, 1, 1},
        {7, 7, 512, 512, 3, 3, 1, 1}}},
      {"deepbench googlenet",
       {16},
       {{224, 224, 3, 64, 7, 7, 2, 3},
        {28, 28, 192, 32, 5, 5, 1, 2},
        {28, 28, 192, 64, 1, 1, 1, 0},
        {14, 14, 512, 48, 5, 5, 1, 2},
        {14, 14, 512, 192, 1, 1, 1, 0},
        {7, 7, 832, 256, 1, 1, 1, 0},
        {7, 7, 832, 128, 5, 5, 1, 2}}},
      {"deepbench resnet",
       {8, 16},
       {{56, 56, 64, 64, 3, 3, 1, 1},     {56, 56, 64, 256, 1, 1, 2, 0},   {28, 28, 128, 128, 3, 3, 1, 1},
        {28, 28, 128, 512, 1, 1, 2, 0},   {14, 14, 256, 256, 1, 1, 1, 0},  {14, 14, 256, 256, 3, 3, 1, 1},
        {14, 14, 256, 1024, 1, 1, 2, 0},  {7, 7, 512, 512, 1, 1, 1, 0},    {7, 7, 2048, 512, 1, 1, 2, 3},
        {112, 112, 64, 64, 1, 1, 1, 0},   {56, 56, 64, 256, 1, 1, 1, 0},   {56, 56, 256, 64, 1, 1, 1, 0},
        {56, 56, 256, 128, 1, 1, 2, 0},   {28, 28, 128, 512, 1, 1, 1, 0},  {28, 28, 512, 128, 1, 1, 1, 0},
        {28, 28, 512, 256, 1, 1, 2, 0},   {14, 14, 256, 1024, 1, 1, 1, 0}, {28, 28, 512, 1024, 1, 1, 2, 0},
        {14, 14, 1024, 256, 1, 1, 1, 0},  {14, 14, 1024, 512, 1, 1, 2, 0}, {7, 7, 512, 2048, 1, 1, 1, 0},
        {14, 14, 1024, 2048, 1, 1, 2, 0}, {7, 7, 2048, 512, 1, 1, 1, 0}}},
      {"deepbench speech 2",
       {16},
       {{161, 700, 1, 64, 5, 5, 2, 1},
        {80, 350, 64, 64, 3, 3, 1, 1},
        {80, 350, 64, 128, 5, 5, 2, 1},
        {40, 175, 128, 128, 3, 3, 1, 1},
        {40, 175, 128, 256, 5, 5, 2, 1},
        {20, 84, 256, 256, 3, 3, 1, 1},
        {20, 84, 256, 512, 5, 5, 2, 1},
        {10, 42, 512, 512, 3, 3, 1, 1}}},
  };
}

}  // namespace

std::vector<Point> deepbench_products(Direction direction) {
  std::vector<Point> points;
  for (const ProductFamily& family : products()) {
    if (family.directions[0] != direction && family.directions[1] != direction) continue;
    for (const auto& [m, k] : family.m_k) {
      for (const std::int64_t n : family.n) {
        points.push_back({layer_of(direction, m, n, k), "deepbench", Tier::large, training_recipes()});
      }
    }
  }
  return points;
}

std::vector<Point> deepbench_convolutions() {
  std::vector<Point> points;
  for (const ConvolutionFamily& family : convolutions()) {
    for (const std::int64_t n : family.images) {
      for (const Convolution& layer : family.layers) points.push_back(conv_point(layer, n, family.label, Tier::large));
    }
  }
  return points;
}

}  // namespace gpubench::suites
