/* task.h: one task: the images of one camera (history included), or the state and actions, of one sample. Who ends a
 * sample's last task records its spans; who ends the batch's last one completes the slot. */
#ifndef WEIR_PIPELINE_WORK_TASK_H
#define WEIR_PIPELINE_WORK_TASK_H

#include "pipeline/gpu/gpu_decode.h"

struct weir_worker;

/* Does task number task of the slot's batch, and what follows when it was the last one of its sample or batch. */
void weir_task_run(struct weir_worker *worker, struct weir_slot *slot, int task);

/* A weir_decode_client's complete: a frame that the task had handed over to the GPU has come back. user: a worker that
 * no thread uses otherwise. The last one ends the task. */
void weir_task_frame_decoded(void *user, const struct weir_handed *frame, const struct weir_decoded *result);

#endif
