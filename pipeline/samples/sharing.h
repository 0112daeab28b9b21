/* sharing.h: samples of a batch whose frames are in the same blocks, and are therefore loaded by one task. */
#ifndef WEIR_PIPELINE_SAMPLES_SHARING_H
#define WEIR_PIPELINE_SAMPLES_SHARING_H

struct weir_setup;
struct weir_slot_order;

/* Return the number of the first and the last block that the window of a sample touches. */
int weir_sharing_first_block(const struct weir_setup *setup, const struct weir_slot_order *at, int camera);
int weir_sharing_last_block(const struct weir_setup *setup, const struct weir_slot_order *at, int camera);

/* Finds the samples that share blocks with the sample at index `at` of the order, directly or through others: those at
 * *from .. *to - 1. n: number of samples in the batch. */
void weir_sharing_group(const struct weir_setup *setup, const struct weir_slot_order *order, int n, int at, int camera,
                        int *from, int *to);

#endif
