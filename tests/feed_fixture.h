/* feed_fixture.h: runs with a device beside runs without, for the stand-in and for GPUs. Free of Criterion: what must
 * not differ prints one line and aborts. */
#ifndef WEIR_TESTS_FEED_FIXTURE_H
#define WEIR_TESTS_FEED_FIXTURE_H

#include "pipeline/gpu.h"

/* A consumer's end: a stream of its own, and memory of the host. */
struct feed_reader {
    struct weir_device *device;
    void *stream;
    uint8_t *memory;
};
struct feed_reader feed_reader_open(struct weir_loader *loader);
/* Waits for what is on the stream. */
void feed_reader_close(struct feed_reader *reader);
/* Has the stream wait for the batch; the batch with its tensors in the reader's memory, until the next. */
struct weir_batch feed_fetch(struct feed_reader *reader, struct weir_loader *loader, struct weir_batch *batch);

/* Both runs to their ends: all tensors are the same, f16 and bf16 what the host's f32 rounds to. How many batches. */
int feed_compare(const struct weir_loader_config *config);

/* A consumer that never waits: its stream copies each batch's images out, so late, to a place of their own; then they
 * are the host's. For u8 and f32. */
void feed_consume_late(const struct weir_loader_config *config, uint64_t late_ns);

#endif
