#include "datasets/hdf5/h5_write.h"

#include <math.h>
#include <stdbool.h>

static const double base_bytes = 16 * 1024, least_bytes = 8 * 1024, most_bytes = 1024 * 1024;

/* Returns 16 KiB for a dataset of 1 MiB. The target doubles for every factor of ten. */
static double target_bytes(double dataset_bytes)
{
    double target = base_bytes * pow(2, log10(dataset_bytes / (1024 * 1024)));
    return fmin(fmax(target, least_bytes), most_bytes);
}

static double product(const uint64_t *sizes, int rank)
{
    double all = 1;
    for (int i = 0; i < rank; i++)
        all *= (double)sizes[i];
    return all;
}

/* Implements h5py's rule: halves the dimensions in turn until the chunk is close to the target size. Uses floating
 * point like h5py, so that ties are resolved the same way. */
void weir_chunk_guess(const uint64_t *dims, int rank, size_t element_bytes, uint64_t *chunk)
{
    for (int i = 0; i < rank; i++)
        chunk[i] = dims[i] > 0 ? dims[i] : 1024;
    double target = target_bytes(product(chunk, rank) * (double)element_bytes);
    for (int turn = 0;; turn = (turn + 1) % rank) {
        double elements = product(chunk, rank), bytes = elements * (double)element_bytes;
        bool near = bytes < target || fabs(bytes - target) / target < 0.5;
        if ((near && bytes < most_bytes) || elements == 1)
            return;
        chunk[turn] = chunk[turn] / 2 + chunk[turn] % 2;
    }
}
