#include "tests/reference/cpu/program_run.h"

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "reference/cpu/cpu_backend.h"
#include "tests/thrown_text.h"

namespace gpubench::testing {
namespace {

constexpr std::int64_t guard_bytes = 256;
constexpr std::byte poison{0xFF};  // fills workspaces: NaN in every floating-point type

Buffer guarded(Backend& backend, int rank, std::int64_t bytes) {
  Buffer buffer = backend.allocate_on(rank, static_cast<std::size_t>(bytes + 2 * guard_bytes));
  backend.fill(buffer.data(), std::span(&canary, 1), buffer.bytes());
  return buffer;
}

std::vector<std::byte> read(Backend& backend, const std::byte* data, std::int64_t bytes) {
  std::vector<std::byte> read(static_cast<std::size_t>(bytes));
  backend.read(read, data);
  return read;
}

}  // namespace

std::vector<double> indices(std::int64_t count, std::int64_t limit, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(hash_at(seed, i) % static_cast<std::uint64_t>(limit));
  return values;
}

Backend& shared_backend() {
  static const std::unique_ptr<Backend> backend = open_cpu_backend();
  return *backend;
}

ProgramRun::ProgramRun(Backend& backend, Program program) : backend_(backend), program_(std::move(program)) {
  for (const Storage& storage : program_.storages())
    storages_.push_back(guarded(backend_, storage.rank, storage.bytes));
}

Tensor ProgramRun::tensor_of(ValueId id) const {
  const Value& value = program_.value(id);
  std::byte* base = storages_.at(static_cast<std::size_t>(value.storage.index)).data();
  return {value.spec, base + guard_bytes + value.offset_bytes};
}

void ProgramRun::set(ValueId id, std::span<const double> values) {
  owners_.insert(id);
  const Tensor tensor = tensor_of(id);
  std::vector<std::byte> bytes = bytes_of(id);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t offset = tensor.spec.layout.offset(tensor.spec.shape, static_cast<std::int64_t>(i));
    store(tensor.spec.dtype, bytes.data(), offset, values[i]);
  }
  backend_.write(tensor.data, bytes);
}

void ProgramRun::set_random(ValueId id, std::uint64_t seed, double scale) {
  std::vector<double> values(static_cast<std::size_t>(program_.spec(id).shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    // The sum of four uniform numbers in [-1/2, 1/2) has variance 1/3.
    double sum = 0.0;
    for (int part = 0; part < 4; ++part)
      sum += static_cast<double>((hash_at(seed, i) >> (16 * part)) & 0xFFFFU) / 65536.0 - 0.5;
    values[i] = scale * sum * 1.7320508;
  }
  set(id, values);
}

std::vector<double> ProgramRun::get(ValueId id) const {
  const TensorSpec& spec = program_.spec(id);
  const std::vector<std::byte> bytes = bytes_of(id);
  std::vector<double> values(static_cast<std::size_t>(spec.shape.elements()));
  TensorView(spec, bytes.data()).read(0, values);
  return values;
}

std::vector<std::byte> ProgramRun::bytes_of(ValueId id) const {
  const Tensor tensor = tensor_of(id);
  return read(backend_, tensor.data, tensor.spec.bytes());
}

void ProgramRun::bind() {
  for (const OpCall& call : program_.ops()) {
    std::vector<ValueId> ids(call.inputs);
    ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
    owners_.insert(ids.begin(), ids.end());
    const Plan plan = backend_.plan(call, specs_of(program_, ids), options_);
    std::vector<Tensor> tensors;
    for (const ValueId id : ids) tensors.push_back(tensor_of(id));
    const int rank = rank_of(program_, call).value_or(0);
    workspaces_.push_back(guarded(backend_, rank, static_cast<std::int64_t>(plan->workspace_bytes())));
    const Workspace workspace{workspaces_.back().data() + guard_bytes, plan->workspace_bytes()};
    backend_.fill(workspace.data, std::span(&poison, 1), plan->workspace_bytes());
    launches_.push_back(backend_.bind(plan, tensors, workspace));
    implementations_.push_back(plan->implementation());
  }
}

void ProgramRun::run() {
  bind();
  run_again();
}

void ProgramRun::run_again() {
  for (const Launch& launch : launches_) backend_.run(launch);
}

bool ProgramRun::canaries_intact() const {
  const auto still = [](std::byte byte) { return byte == canary; };
  for (const Buffer& workspace : workspaces_) {
    const std::byte* end = workspace.data() + workspace.bytes();
    for (const std::byte* guard : {static_cast<const std::byte*>(workspace.data()), end - guard_bytes}) {
      const std::vector<std::byte> bytes = read(backend_, guard, guard_bytes);
      if (!std::all_of(bytes.begin(), bytes.end(), still)) return false;
    }
  }
  std::vector<std::vector<bool>> owned;
  for (const Buffer& storage : storages_) owned.emplace_back(storage.bytes(), false);
  for (const ValueId id : owners_) {
    const Value& value = program_.value(id);
    if (value.spec.layout.blocks.empty()) {
      for (std::int64_t i = 0; i < value.spec.shape.elements(); ++i) {
        const DType type = value.spec.dtype;
        const std::int64_t element = value.spec.layout.offset(value.spec.shape, i);
        const std::int64_t begin = guard_bytes + value.offset_bytes + element * bits_of(type) / 8;
        auto& bytes = owned[static_cast<std::size_t>(value.storage.index)];
        std::fill_n(bytes.begin() + begin, gpubench::bytes_of(type, 1), true);
      }
    } else {  // padding between blocks belongs to the tensor
      auto& bytes = owned[static_cast<std::size_t>(value.storage.index)];
      std::fill_n(bytes.begin() + guard_bytes + value.offset_bytes, value.spec.bytes(), true);
    }
  }
  for (std::size_t storage = 0; storage < storages_.size(); ++storage) {
    const Buffer& buffer = storages_[storage];
    const std::vector<std::byte> bytes = read(backend_, buffer.data(), static_cast<std::int64_t>(buffer.bytes()));
    for (std::size_t i = 0; i < owned[storage].size(); ++i) {
      if (!owned[storage][i] && !still(bytes[i])) return false;
    }
  }
  return true;
}

std::string refusal(Backend& backend, const Program& program, std::string pinned) {
  ProgramRun run(backend, program);
  run.pin(std::move(pinned));
  return thrown_text<Unsupported>([&] { run.bind(); });
}

}  // namespace gpubench::testing
