// A backend that forwards all calls to an inner backend except those that are overridden.
#pragma once

#include <memory>
#include <utility>

#include "harness/core/backend.h"

namespace gpubench {

struct ForwardingPlan : PlanImpl {
  explicit ForwardingPlan(Plan of) : inner(std::move(of)) {}
  [[nodiscard]] std::string implementation() const override { return inner->implementation(); }
  [[nodiscard]] std::size_t workspace_bytes() const override { return inner->workspace_bytes(); }
  [[nodiscard]] Choice choice() const override { return inner->choice(); }
  [[nodiscard]] std::vector<std::string> rejected() const override { return inner->rejected(); }

  Plan inner;
};

class ForwardingBackend : public Backend {
 public:
  /// `owner` keeps the inner backend alive if nothing else does.
  ForwardingBackend(Backend& inner, std::unique_ptr<Backend> owner) : inner_(inner), owner_(std::move(owner)) {}

  [[nodiscard]] const DeviceInfo& device() const override { return inner_.device(); }
  [[nodiscard]] std::vector<std::string> flags() const override { return inner_.flags(); }
  [[nodiscard]] bool hangs() const override { return inner_.hangs(); }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  [[nodiscard]] Buffer allocate_on(int rank, std::size_t bytes) override { return inner_.allocate_on(rank, bytes); }
  [[nodiscard]] Buffer allocate_in(Memory memory, std::size_t bytes) override {
    return inner_.allocate_in(memory, bytes);
  }
  void write(std::byte* device, std::span<const std::byte> host) override { inner_.write(device, host); }
  void read(std::span<std::byte> host, const std::byte* device) override { inner_.read(host, device); }
  void read_runs(std::span<std::byte> host, std::span<const std::byte* const> from) override {
    inner_.read_runs(host, from);
  }
  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes) override {
    inner_.fill(device, pattern, bytes);
  }
  [[nodiscard]] bool host_visible() const override { return inner_.host_visible(); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override { inner_.copy(to, from, bytes); }
  [[nodiscard]] bool examines_memory() const override { return inner_.examines_memory(); }
  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) override {
    inner_.gather(host, device, offsets);
  }
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) override {
    inner_.scan(chunks, device, type, rows);
  }
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes) override {
    return inner_.fingerprint(device, bytes);
  }
  void announce_plans(std::span<const CallToPlan> calls, const std::function<void()>& alive) override {
    inner_.announce_plans(calls, alive);
  }
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    return inner_.plan(call, tensors, options);
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    return inner_.bind(plan, tensors, workspace);
  }
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    return inner_.sequence(launches, schedule);
  }
  [[nodiscard]] Launch launch_of(std::function<void(void* stream)> work) override {
    return inner_.launch_of(std::move(work));
  }
  void run(const Launch& launch) override { inner_.run(launch); }
  [[nodiscard]] RoundTimes time(std::span<const Launch> copies, const RoundPlan& plan) override {
    return inner_.time(copies, plan);
  }
  void on_each_thread(const std::function<void()>& work) override { inner_.on_each_thread(work); }
  [[nodiscard]] bool keeps(const OpCall& call, std::span<const TensorSpec> tensors) override {
    return inner_.keeps(call, tensors);
  }
  [[nodiscard]] std::span<const FusionClaim> fused_ops() const override { return inner_.fused_ops(); }

 protected:
  [[nodiscard]] Backend& inner() const { return inner_; }

 private:
  Backend& inner_;
  std::unique_ptr<Backend> owner_;
};

/// Reads the inner backend's memory back and examines it on the host.
class ReadBackBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  [[nodiscard]] bool examines_memory() const override { return host_visible(); }
  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets) override {
    Backend::gather(host, device, offsets);
  }
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows) override {
    Backend::scan(chunks, device, type, rows);
  }
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes) override {
    return Backend::fingerprint(device, bytes);
  }
};

}  // namespace gpubench
