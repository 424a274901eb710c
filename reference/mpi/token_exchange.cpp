// Ranks exchange sizes, then rows, which go straight to their places. A rank's rows are sorted by expert, so the rows
// from one rank lie in as many places as this rank has experts.
#include "reference/mpi/mpi_processes.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "reference/ops/token_exchange.h"

namespace gpubench::mpi {
namespace {

/// An MPI datatype, freed by the destructor.
class HeldType {
 public:
  HeldType() = default;
  HeldType(const HeldType&) = delete;
  HeldType& operator=(const HeldType&) = delete;
  ~HeldType() {
    if (type_ != MPI_DATATYPE_NULL) (void)MPI_Type_free(&type_);
  }
  [[nodiscard]] MPI_Datatype* made() { return &type_; }
  [[nodiscard]] MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

struct Exchange : ExchangeOperands {
  MPI_Comm comm = MPI_COMM_NULL;
  int member = 0, members = 1;
  HeldType row;

  explicit Exchange(ExchangeOperands operands) : ExchangeOperands(std::move(operands)) {}

  [[nodiscard]] TokenRoutes routes() const {
    const auto experts = static_cast<int>(sizes.spec.shape[0]);
    std::vector<std::int32_t> all(static_cast<std::size_t>(experts * members));
    run_check(MPI_Allgather(sizes.data, experts, MPI_INT32_T, all.data(), experts, MPI_INT32_T, comm), "MPI_Allgather");
    return {all, members, own_rows};
  }

  void run() const {
    const TokenRoutes all = routes();
    // Own rows form one block per rank, those for experts several.
    std::vector<int> counts(static_cast<std::size_t>(members)), one(counts.size(), 1);
    std::vector<int> firsts(counts.size()), nowhere(counts.size());
    std::vector<std::vector<int>> lengths(counts.size()), places(counts.size());
    for (const RowRun& run : all.sent(member)) {
      const auto peer = static_cast<std::size_t>(run.member);
      if (counts[peer] == 0) firsts[peer] = static_cast<int>(run.own * row_bytes);
      counts[peer] += static_cast<int>(run.rows);
    }
    for (const RowRun& run : all.received(member)) {
      lengths[static_cast<std::size_t>(run.member)].push_back(static_cast<int>(run.rows));
      places[static_cast<std::size_t>(run.member)].push_back(static_cast<int>(run.there));
    }
    std::vector<HeldType> held(counts.size());
    std::vector<MPI_Datatype> pieces, plain(counts.size(), row.get());
    for (std::size_t peer = 0; peer < counts.size(); ++peer) {
      run_check(MPI_Type_indexed(static_cast<int>(lengths[peer].size()), lengths[peer].data(), places[peer].data(),
                                 row.get(), held[peer].made()),
                "MPI_Type_indexed");
      run_check(MPI_Type_commit(held[peer].made()), "MPI_Type_commit");
      pieces.push_back(held[peer].get());
    }
    if (dispatches) {
      run_check(MPI_Alltoallw(rows.data, counts.data(), firsts.data(), plain.data(), result.data, one.data(),
                              nowhere.data(), pieces.data(), comm),
                "MPI_Alltoallw");
      const std::vector<std::int32_t> own = all.own_sizes(member);
      std::memcpy(own_sizes.data, own.data(), own.size() * sizeof own[0]);
    } else {
      run_check(MPI_Alltoallw(rows.data, one.data(), nowhere.data(), pieces.data(), result.data, counts.data(),
                              firsts.data(), plain.data(), comm),
                "MPI_Alltoallw");
    }
    const std::int64_t filled = all.result_rows(dispatches, member) * row_bytes;
    std::memset(result.data + filled, 0, static_cast<std::size_t>(result.spec.bytes() - filled));
  }
};

}  // namespace

std::function<void()> exchange_of(MPI_Comm comm, int member, const OpCall& call, std::span<const Tensor> tensors) {
  const std::size_t inputs = call.inputs.size();
  auto exchange =
      std::make_shared<Exchange>(exchange_operands(call, tensors.first(inputs), tensors.subspan(inputs), member));
  exchange->comm = comm;
  exchange->member = member;
  exchange->members = ranks_of(call);
  if (exchange->rows.data == nullptr || exchange->sizes.data == nullptr || exchange->result.data == nullptr ||
      (exchange->dispatches && exchange->own_sizes.data == nullptr))
    throw BackendError(fmt::format("mpi: {} '{}': a tensor of rank {} is not in its process", call.kind.name,
                                   call.label, call.group[member]));
  check(MPI_Type_contiguous(static_cast<int>(exchange->row_bytes), MPI_BYTE, exchange->row.made()),
        "creating the type of a row");
  check(MPI_Type_commit(exchange->row.made()), "creating the type of a row");
  return [exchange] { exchange->run(); };
}

}  // namespace gpubench::mpi
