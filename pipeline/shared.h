/* shared.h: what the threads of a run share: the loader's modules, opened in the order of what needs what. Workers, the
 * threads of a GPU and the consumer read it; who writes what is said at each part. */
#ifndef WEIR_PIPELINE_SHARED_H
#define WEIR_PIPELINE_SHARED_H

#include "pipeline/batch_layout.h"
#include "pipeline/faults.h"
#include "pipeline/file_watch.h"
#include "pipeline/frame_cache.h"
#include "pipeline/gpu/choose_decoder.h"
#include "pipeline/norm.h"
#include "pipeline/placement.h"
#include "pipeline/probe.h"
#include "pipeline/read_ahead.h"
#include "pipeline/slot.h"
#include "pipeline/sources.h"
#include "pipeline/views.h"
#include "pipeline/work/completion.h"
#include "weir/loader.h"

#include <stdalign.h>
#include <stdatomic.h>

struct weir_upload;
struct weir_gpu_decode;

/* What is to be done. It does not change once the loader is open. */
struct weir_setup {
    struct weir_loader_config config; /* with what was automatic decided */
    struct weir_placement placement;
    struct weir_decoder_choice decoder;
    struct weir_dataset *dataset;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    struct weir_view views[WEIR_CAMERAS_MAX]; /* what workers make of the images */
    struct weir_view
        out_views[WEIR_CAMERAS_MAX]; /* what a batch has of them: the same, unless the GPU crops and resizes */
    int block_rows;                  /* frames of the largest blocks of chunks; 0 = none lie in blocks */
    struct weir_sampler *sampler;
    uint64_t total; /* batches of the run */
    struct weir_norm qpos, actions;
    struct weir_batch_layout layout; /* of the slots */
};

/* Who does it. Each module's header says which thread may call it. */
struct weir_shared {
    struct weir_setup setup;
    struct weir_recorder *recorder; /* NULL = nothing is timed */
    struct weir_file_set *files;
    struct weir_reading reading; /* the engine, and read-ahead */
    struct weir_slots slots;
    struct weir_completion completion;
    struct weir_upload *upload;     /* to a GPU; NULL = batches are the slots' */
    struct weir_gpu_decode *decode; /* JPEGs are decoded there too; NULL = they are not */
    struct weir_frame_cache cache;
    struct weir_faults faults;
    struct weir_file_watch watch;
    struct weir_sources sources; /* which camera, which file */
    alignas(64) _Atomic uint64_t next_task;
};

#endif
