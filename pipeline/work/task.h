/* task.h: one task: the images of one camera (history included), or the state and actions, of one sample. The last task
 * of a sample records its spans; the last one of the batch completes the slot. */
#ifndef WEIR_PIPELINE_WORK_TASK_H
#define WEIR_PIPELINE_WORK_TASK_H

#include "pipeline/offload/gpu_decode.h"

struct weir_worker;

/* Runs task number `task` of the slot's batch, and completes its sample or batch if it was the last task. */
void weir_task_run(struct weir_worker *worker, struct weir_slot *slot, int task);

/* The complete function of weir_decode_client: a frame that the task submitted to the GPU has returned. user: a worker
 * that no other thread uses. The last frame ends the task. */
void weir_task_frame_decoded(void *user, const struct weir_handed *frame, const struct weir_decoded *result);

#endif
