#include "prof/record/stages.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define WORK      WEIR_KIND_WORK
#define INCLUSIVE WEIR_KIND_INCLUSIVE
#define SPAN      WEIR_KIND_SPAN
#define WAIT      WEIR_KIND_WAIT

static struct weir_stage_info stages[WEIR_STAGE_MAX] = {
    [WEIR_STAGE_TOTAL_GETITEM] = {"00_TOTAL_getitem", SPAN, false},
    [WEIR_STAGE_FILE_CACHE] = {"01_file_cache", WORK, false},
    [WEIR_STAGE_READ_QPOS] = {"02_read_qpos", WORK, false},
    [WEIR_STAGE_IMAGES_TOTAL] = {"03_read_images_total", SPAN, false},
    [WEIR_STAGE_ONE_CAMERA] = {"03a_read_one_camera", INCLUSIVE, false},
    [WEIR_STAGE_IMAGE_DECODE] = {"03b_image_decode", WORK, false},
    [WEIR_STAGE_READ_BYTES] = {"03c_read_bytes", WORK, false},
    [WEIR_STAGE_INFLATE] = {"03d_inflate", WORK, false},
    [WEIR_STAGE_CACHE_COPY] = {"03e_cache_copy", WORK, false},
    [WEIR_STAGE_CACHE_KEEP] = {"03f_cache_keep", WORK, false},
    [WEIR_STAGE_SHARE_COPY] = {"03g_share_copy", WORK, false},
    [WEIR_STAGE_HAND_OVER] = {"03h_hand_to_gpu", WORK, false},
    [WEIR_STAGE_GPU_DECODE] = {"03i_gpu_decode", WORK, true},
    [WEIR_STAGE_READ_ACTIONS] = {"04_read_actions", WORK, false},
    [WEIR_STAGE_TO_TENSOR] = {"05_to_tensor_normalize", WORK, false},
    [WEIR_STAGE_COLLATE] = {"06_collate", WORK, false},
    [WEIR_STAGE_H2D_COPY] = {"07_h2d_copy", WORK, true},
    [WEIR_STAGE_PREPARE_BATCH] = {"07b_prepare_batch", WORK, true},
    [WEIR_STAGE_WAIT_DATA] = {"08_wait_for_data", WAIT, true},
    [WEIR_STAGE_WAIT_GPU] = {"08b_wait_for_gpu", WAIT, true},
    [WEIR_STAGE_WAIT_SLOT] = {"09_wait_for_slot", WAIT, false},
    [WEIR_STAGE_WAIT_WORK] = {"09b_wait_for_work", WAIT, false},
    [WEIR_STAGE_WAIT_LIBRARY] = {"09c_wait_for_library", WAIT, false},
    [WEIR_STAGE_WAIT_GPU_DECODE] = {"09d_wait_for_gpu_decode", WAIT, false},
    [WEIR_STAGE_WAIT_AHEAD] = {"09e_wait_for_read_ahead", WAIT, false},
    [WEIR_STAGE_VAL_FORWARD] = {"10_val_forward_pass", WORK, true},
    [WEIR_STAGE_TRAIN_FORWARD] = {"20_train_forward_pass", WORK, true},
    [WEIR_STAGE_BACKWARD] = {"21_backward", WORK, true},
    [WEIR_STAGE_OPTIMIZER] = {"22_optimizer_step", WORK, true},
    [WEIR_STAGE_RELEASE] = {"23_release_batch", WORK, true},
    [WEIR_STAGE_CHECKSUM] = {"24_checksum", WORK, true},
    [WEIR_STAGE_REPORT] = {"25_report", WORK, true},
    [WEIR_STAGE_WORKER_LOOP] = {"worker_loop", WEIR_KIND_LOOP, false},
};
static _Atomic int stage_count = WEIR_STAGE_BUILTIN_COUNT;
static pthread_mutex_t stage_lock = PTHREAD_MUTEX_INITIALIZER;

const struct weir_stage_info *weir_stage_info(int stage)
{
    return stage >= 0 && stage < weir_stage_count() ? &stages[stage] : NULL;
}

int weir_stage_count(void)
{
    return atomic_load_explicit(&stage_count, memory_order_acquire);
}

static int find(const char *name, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(stages[i].name, name) == 0)
            return i;
    return -ENOENT;
}

int weir_stage_register(const char *name, enum weir_stage_kind kind, bool consumer)
{
    pthread_mutex_lock(&stage_lock);
    int n = weir_stage_count();
    int id = find(name, n);
    if (id < 0 && n == WEIR_STAGE_MAX)
        id = -ENOSPC;
    if (id == -ENOENT) {
        id = n;
        stages[id] = (struct weir_stage_info){name, kind, consumer};
        atomic_store_explicit(&stage_count, n + 1, memory_order_release); /* publishes the row written above */
    }
    pthread_mutex_unlock(&stage_lock);
    return id;
}
