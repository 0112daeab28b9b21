#include "weir/recorder.h"
#include "weir/stages.h"

#define WORK      WEIR_KIND_WORK
#define INCLUSIVE WEIR_KIND_INCLUSIVE
#define SPAN      WEIR_KIND_SPAN
#define WAIT      WEIR_KIND_WAIT

static const struct weir_stage_info stages[WEIR_LOADER_STAGES] = {
    [WEIR_STAGE_TOTAL_GETITEM] = {.name = "00_TOTAL_getitem", .kind = SPAN},
    [WEIR_STAGE_FILE_CACHE] = {.name = "01_file_cache", .kind = WORK},
    [WEIR_STAGE_READ_QPOS] = {.name = "02_read_qpos", .kind = WORK},
    [WEIR_STAGE_IMAGES_TOTAL] = {.name = "03_read_images_total", .kind = SPAN},
    [WEIR_STAGE_ONE_CAMERA] = {.name = "03a_read_one_camera", .kind = INCLUSIVE},
    [WEIR_STAGE_IMAGE_DECODE] = {.name = "03b_image_decode", .kind = WORK},
    [WEIR_STAGE_READ_BYTES] = {.name = "03c_read_bytes", .kind = WORK},
    [WEIR_STAGE_INFLATE] = {.name = "03d_inflate", .kind = WORK},
    [WEIR_STAGE_CACHE_COPY] = {.name = "03e_cache_copy", .kind = WORK},
    [WEIR_STAGE_CACHE_KEEP] = {.name = "03f_cache_keep", .kind = WORK},
    [WEIR_STAGE_SHARE_COPY] = {.name = "03g_share_copy", .kind = WORK},
    [WEIR_STAGE_HAND_OVER] = {.name = "03h_hand_to_gpu", .kind = WORK},
    [WEIR_STAGE_GPU_DECODE] = {.name = "03i_gpu_decode", .kind = WORK, .consumer = true},
    [WEIR_STAGE_VIDEO_DECODE] = {.name = "03j_video_decode", .kind = WORK},
    [WEIR_STAGE_CONNECT] = {.name = "03k_connect", .kind = SPAN},
    [WEIR_STAGE_FIRST_BYTE] = {.name = "03l_first_byte", .kind = SPAN},
    [WEIR_STAGE_TRANSFER] = {.name = "03m_transfer", .kind = SPAN},
    [WEIR_STAGE_RETRY_PAUSE] = {.name = "03n_retry_pause", .kind = SPAN},
    [WEIR_STAGE_READ_ACTIONS] = {.name = "04_read_actions", .kind = WORK},
    [WEIR_STAGE_TO_TENSOR] = {.name = "05_to_tensor_normalize", .kind = WORK},
    [WEIR_STAGE_COLLATE] = {.name = "06_collate", .kind = WORK},
    [WEIR_STAGE_H2D_COPY] = {.name = "07_h2d_copy", .kind = WORK, .consumer = true},
    [WEIR_STAGE_PREPARE_BATCH] = {.name = "07b_prepare_batch", .kind = WORK, .consumer = true},
    [WEIR_STAGE_WAIT_DATA] = {.name = "08_wait_for_data", .kind = WAIT, .consumer = true, .data_wait = true},
    [WEIR_STAGE_WAIT_GPU] = {.name = "08b_wait_for_gpu", .kind = WAIT, .consumer = true},
    [WEIR_STAGE_WAIT_SLOT] = {.name = "09_wait_for_slot", .kind = WAIT},
    [WEIR_STAGE_WAIT_WORK] = {.name = "09b_wait_for_work", .kind = WAIT},
    [WEIR_STAGE_WAIT_LIBRARY] = {.name = "09c_wait_for_library", .kind = WAIT},
    [WEIR_STAGE_WAIT_GPU_DECODE] = {.name = "09d_wait_for_gpu_decode", .kind = WAIT},
    [WEIR_STAGE_WAIT_AHEAD] = {.name = "09e_wait_for_read_ahead", .kind = WAIT},
    [WEIR_STAGE_VAL_FORWARD] = {.name = "10_val_forward_pass", .kind = WORK, .consumer = true},
    [WEIR_STAGE_TRAIN_FORWARD] = {.name = "20_train_forward_pass", .kind = WORK, .consumer = true},
    [WEIR_STAGE_BACKWARD] = {.name = "21_backward", .kind = WORK, .consumer = true},
    [WEIR_STAGE_OPTIMIZER] = {.name = "22_optimizer_step", .kind = WORK, .consumer = true},
    [WEIR_STAGE_RELEASE] = {.name = "23_release_batch", .kind = WORK, .consumer = true},
    [WEIR_STAGE_CHECKSUM] = {.name = "24_checksum", .kind = WORK, .consumer = true},
    [WEIR_STAGE_REPORT] = {.name = "25_report", .kind = WORK, .consumer = true},
    [WEIR_STAGE_CHECKPOINT] = {.name = "26_checkpoint", .kind = WORK, .consumer = true},
    [WEIR_STAGE_WORKER_LOOP] = {.name = "worker_loop", .kind = WEIR_KIND_LOOP},
};

int weir_loader_stages(void)
{
    return weir_stages_register(stages, WEIR_LOADER_STAGES);
}
