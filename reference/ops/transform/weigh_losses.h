// The mean loss of a batch that is on several ranks, or in several micro-batches, and of which not all labels count:
// not the mean of the parts' means, since some parts have more labels that count than others. (Averaging means over
// micro-batches is what several frameworks did until 2024: Unsloth, "Bugs in gradient accumulation".)
#pragma once

#include "harness/core/program.h"

namespace gpubench {

/// `step`, on all ranks that share it, with each loss that ignores labels divided by how many count in a part on
/// average, instead of how many do in its own: so that the average over the parts, which other transforms take of
/// losses and of gradients, is that of the batch. Parts are those of the labels: what the ranks that share nothing else
/// have, and each of a rank's micro-batches. Counts are reduced before anything else. A part in which no label counts
/// loses 0, and adds nothing.
///
/// Comes after all other transforms. `wide`: the type of losses. A step without such losses, and one whose batch is in
/// one part, stays as it is. Throws ProgramError for labels that are no equal parts of a source, as many on every rank.
[[nodiscard]] Program weigh_losses(const Program& step, const Math& math, DType wide);

}  // namespace gpubench
