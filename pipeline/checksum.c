#include "pipeline/checksum.h"
#include "base/hash.h"

#include <inttypes.h>

void weir_checksum_line(FILE *out, const struct weir_batch *batch)
{
    fprintf(out, "epoch %d %s %d samples ", batch->plan.epoch + 1,
            batch->plan.split == WEIR_SPLIT_TRAIN ? "train" : "val", batch->plan.index);
    for (int i = 0; i < batch->n; i++)
        fprintf(out, "%s%d:%d", i ? "," : "", batch->samples[i].episode, batch->samples[i].t);
    if (batch->n == 0)
        fputc('-', out);
    for (int i = 0; i < batch->n_tensors; i++) {
        const struct weir_tensor *tensor = &batch->tensors[i];
        size_t bytes = tensor->sample_bytes * (size_t)batch->n;
        fprintf(out, " %s %016" PRIx64, tensor->name, weir_hash64(tensor->data, bytes));
    }
    fputc('\n', out);
}
