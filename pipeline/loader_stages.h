/* loader_stages.h: the stages of loading and training, by the names that users grep for in their logs. */
#ifndef WEIR_PIPELINE_LOADER_STAGES_H
#define WEIR_PIPELINE_LOADER_STAGES_H

#include "datasets/dataset_stages.h"
#include "decoders/decoder_stages.h"
#include "io/io_stages.h"
#include "prof/record/stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers that are left out here are those of io/io_stages.h, decoders/decoder_stages.h and
 * datasets/dataset_stages.h. */
enum weir_loader_stage {
    WEIR_STAGE_TOTAL_GETITEM = 0,    /* 00_TOTAL_getitem */
    WEIR_STAGE_READ_QPOS = 2,        /* 02_read_qpos */
    WEIR_STAGE_IMAGES_TOTAL,         /* 03_read_images_total */
    WEIR_STAGE_ONE_CAMERA,           /* 03a_read_one_camera */
    WEIR_STAGE_INFLATE = 7,          /* 03d_inflate */
    WEIR_STAGE_CACHE_COPY,           /* 03e_cache_copy */
    WEIR_STAGE_CACHE_KEEP,           /* 03f_cache_keep */
    WEIR_STAGE_SHARE_COPY,           /* 03g_share_copy */
    WEIR_STAGE_HAND_OVER,            /* 03h_hand_to_gpu */
    WEIR_STAGE_GPU_DECODE,           /* 03i_gpu_decode */
    WEIR_STAGE_READ_ACTIONS,         /* 04_read_actions */
    WEIR_STAGE_COLLATE = 15,         /* 06_collate */
    WEIR_STAGE_H2D_COPY,             /* 07_h2d_copy */
    WEIR_STAGE_PREPARE_BATCH,        /* 07b_prepare_batch */
    WEIR_STAGE_WAIT_DATA,            /* 08_wait_for_data */
    WEIR_STAGE_WAIT_GPU,             /* 08b_wait_for_gpu */
    WEIR_STAGE_WAIT_SLOT,            /* 09_wait_for_slot */
    WEIR_STAGE_WAIT_WORK,            /* 09b_wait_for_work */
    WEIR_STAGE_WAIT_GPU_DECODE = 23, /* 09d_wait_for_gpu_decode */
    WEIR_STAGE_VAL_FORWARD = 25,     /* 10_val_forward_pass */
    WEIR_STAGE_TRAIN_FORWARD,        /* 20_train_forward_pass */
    WEIR_STAGE_BACKWARD,             /* 21_backward */
    WEIR_STAGE_OPTIMIZER,            /* 22_optimizer_step */
    WEIR_STAGE_RELEASE,              /* 23_release_batch */
    WEIR_STAGE_CHECKSUM,             /* 24_checksum */
    WEIR_STAGE_REPORT,               /* 25_report */
    WEIR_STAGE_CHECKPOINT,           /* 26_checkpoint */
    WEIR_STAGE_WORKER_LOOP,          /* the worker's loop itself */
    WEIR_LOADER_STAGES,
};

/* Registers them, all at once; further calls change nothing. weir_loader_open does it itself. 0; -EEXIST: the program
 * has registered a table of its own. */
int weir_loader_stages(void);

#ifdef __cplusplus
}
#endif

#endif
