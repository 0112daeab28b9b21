/* stages.h: the stages of loading and training. Users grep for their names in logs. */
#ifndef WEIR_STAGES_H
#define WEIR_STAGES_H

#ifdef __cplusplus
extern "C" {
#endif

enum weir_loader_stage {
    WEIR_STAGE_TOTAL_GETITEM,   /* 00_TOTAL_getitem */
    WEIR_STAGE_FILE_CACHE,      /* 01_file_cache */
    WEIR_STAGE_READ_QPOS,       /* 02_read_qpos */
    WEIR_STAGE_IMAGES_TOTAL,    /* 03_read_images_total */
    WEIR_STAGE_ONE_CAMERA,      /* 03a_read_one_camera */
    WEIR_STAGE_IMAGE_DECODE,    /* 03b_image_decode */
    WEIR_STAGE_READ_BYTES,      /* 03c_read_bytes */
    WEIR_STAGE_INFLATE,         /* 03d_inflate */
    WEIR_STAGE_CACHE_COPY,      /* 03e_cache_copy */
    WEIR_STAGE_CACHE_KEEP,      /* 03f_cache_keep */
    WEIR_STAGE_SHARE_COPY,      /* 03g_share_copy */
    WEIR_STAGE_HAND_OVER,       /* 03h_hand_to_gpu */
    WEIR_STAGE_GPU_DECODE,      /* 03i_gpu_decode */
    WEIR_STAGE_VIDEO_DECODE,    /* 03j_video_decode */
    WEIR_STAGE_CONNECT,         /* 03k_connect: to a server; with TLS */
    WEIR_STAGE_FIRST_BYTE,      /* 03l_first_byte: of a response, from the start of the request, after connecting */
    WEIR_STAGE_TRANSFER,        /* 03m_transfer: of a response, from the first byte */
    WEIR_STAGE_RETRY_PAUSE,     /* 03n_retry_pause: before a request is repeated */
    WEIR_STAGE_READ_ACTIONS,    /* 04_read_actions */
    WEIR_STAGE_TO_TENSOR,       /* 05_to_tensor_normalize */
    WEIR_STAGE_COLLATE,         /* 06_collate */
    WEIR_STAGE_H2D_COPY,        /* 07_h2d_copy */
    WEIR_STAGE_PREPARE_BATCH,   /* 07b_prepare_batch */
    WEIR_STAGE_WAIT_DATA,       /* 08_wait_for_data */
    WEIR_STAGE_WAIT_GPU,        /* 08b_wait_for_gpu */
    WEIR_STAGE_WAIT_SLOT,       /* 09_wait_for_slot */
    WEIR_STAGE_WAIT_WORK,       /* 09b_wait_for_work */
    WEIR_STAGE_WAIT_LIBRARY,    /* 09c_wait_for_library */
    WEIR_STAGE_WAIT_GPU_DECODE, /* 09d_wait_for_gpu_decode */
    WEIR_STAGE_WAIT_AHEAD,      /* 09e_wait_for_read_ahead */
    WEIR_STAGE_VAL_FORWARD,     /* 10_val_forward_pass */
    WEIR_STAGE_TRAIN_FORWARD,   /* 20_train_forward_pass */
    WEIR_STAGE_BACKWARD,        /* 21_backward */
    WEIR_STAGE_OPTIMIZER,       /* 22_optimizer_step */
    WEIR_STAGE_RELEASE,         /* 23_release_batch */
    WEIR_STAGE_CHECKSUM,        /* 24_checksum */
    WEIR_STAGE_REPORT,          /* 25_report */
    WEIR_STAGE_CHECKPOINT,      /* 26_checkpoint */
    WEIR_STAGE_WORKER_LOOP,     /* not printed */
    WEIR_LOADER_STAGES,
};

/* Registers these stages, as weir_loader_open does. Returns 0, or -EEXIST if the program has registered a table of its
 * own. */
int weir_loader_stages(void);

#ifdef __cplusplus
}
#endif

#endif
