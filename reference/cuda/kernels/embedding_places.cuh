// Where each token occurs, for its gradient: what embedding_places.cu leaves in scratch memory.
#pragma once

#include "reference/cuda/kernels/device.cuh"
#include "reference/cuda/kernels/tokens.h"

namespace gpubench::cuda {

/// Of each row of the table how often its token occurs, and where its places begin [rows]; of each token the slot
/// among its equals, later the places of frequent ones in order, and the places by row [tokens]; the frequent tokens
/// [tokens / 32], how many they are, and how many places have been given out.
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

/// Fills the lists, in five launches: empty counts; count; give room; fill it with places; put those of frequent tokens
/// in order.
void launch_embedding_places(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream);

}  // namespace gpubench::cuda
