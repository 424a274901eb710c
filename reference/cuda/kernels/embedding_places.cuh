// Positions of each token, in scratch memory, for the embedding gradient (embedding_places.cu).
#pragma once

#include "reference/cuda/kernels/device.cuh"
#include "reference/cuda/kernels/tokens.h"

namespace gpubench::cuda {

/// Per table row [rows]: number of occurrences of its token, and start of its places.
/// Per token [tokens]: slot among equal tokens (later the ordered places of frequent tokens); and the places sorted by
/// row.
/// Frequent tokens [tokens / 32], their number, and the number of assigned places.
struct Lists {
  int* counts;
  int* begins;
  int* slots;
  int* places;
  int* frequent;
  int* frequent_count;
  int* given_out;
};

__device__ __forceinline__ Lists lists_of(const EmbeddingBackwardArgs& args) {
  int* begins = args.scratch + args.rows;
  int* slots = begins + args.rows;
  int* places = slots + args.tokens_count;
  int* frequent = places + args.tokens_count;
  int* frequent_count = frequent + args.tokens_count / warp_lanes;
  return {args.scratch, begins, slots, places, frequent, frequent_count, frequent_count + 1};
}

/// Fills the lists in five launches: clear counts, count, assign ranges, fill in places, sort the places of frequent
/// tokens.
void launch_embedding_places(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream);

}  // namespace gpubench::cuda
