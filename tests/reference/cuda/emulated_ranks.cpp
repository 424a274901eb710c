#include "reference/cuda/cuda_communicator.h"
#include "tests/reference/cuda/emulated_backend.h"

namespace gpubench::testing {

RankSet open_emulated_ranks(int ranks, const OpenCommunicator& open) {
  std::unique_ptr<cuda::CudaCommunicator> communicator = open(ranks);
  const auto streams = std::make_shared<std::vector<cuda::Stream>>();
  RankSet set;
  for (int rank = 0; rank < ranks; ++rank) {
    set.backends.push_back(open_emulated_backend());
    streams->push_back(cuda::make_stream());
    set.queues.push_back(cuda::open_rank_streams(*communicator, rank, streams->back().get()));
  }
  set.communicator = std::move(communicator);
  set.device = set.backends.front()->device();
  set.enter = [streams](int) {};  // keeps the streams alive
  return set;
}

}  // namespace gpubench::testing
