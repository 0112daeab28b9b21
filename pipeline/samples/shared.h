/* shared.h: state shared by the threads of a run: the loader's modules, opened in dependency order. Workers, GPU
 * threads and the consumer read it; each member's header documents who writes it. */
#ifndef WEIR_PIPELINE_SAMPLES_SHARED_H
#define WEIR_PIPELINE_SAMPLES_SHARED_H

#include "pipeline/samples/batch_layout.h"
#include "pipeline/samples/completion.h"
#include "pipeline/samples/file_watch.h"
#include "pipeline/samples/frame_cache.h"
#include "pipeline/samples/probe.h"
#include "pipeline/samples/read_ahead.h"
#include "pipeline/samples/slot.h"
#include "pipeline/samples/sources.h"
#include "weir/base.h"
#include "weir/loader.h"

#include <stdalign.h>
#include <stdatomic.h>

/* ---- placement.c: the part of a machine that a process uses: its cores and its GPU, which it may share with other
 * local ranks, and the decoder that runs on them. */

struct weir_placement {
    int cores; /* this process's share of the usable cores */
    int gpu;   /* number of the GPU; -1 = none */
    int gpus;  /* number of GPUs if they were assigned to local ranks; otherwise 0 */
    /* The GPU whose video engines decode; -1 = none, also if a decoder of the CPU was requested by name. */
    int video_gpu;
};

/* The chosen JPEG decoder, and the reason for the choice. */
struct weir_decoder_choice {
    const char *requested;     /* from the configuration; borrowed */
    const char *decoder;       /* "turbo", "nvjpeg" or "hybrid" */
    double cpu_rate, gpu_rate; /* frames per second; 0 = not measured */
    /* One sentence: the reason for the choice. For a decoder requested by name it is empty, unless the dataset has no
     * JPEGs for that decoder. */
    char why[512];
};

/* config must have been validated. */
void weir_placement_find(struct weir_placement *placement, const struct weir_loader_config *config);

/* ---- norm.c: mean and standard deviation of state or actions over the training episodes, for normalising batches. */

struct weir_dataset;
struct weir_sampler;

/* One value per dimension; std is at least 1e-2, as in ACT. */
struct weir_norm {
    int dim;
    float *mean, *std; /* owned */
};

/* Computes the statistics of the state or the actions. raw: mean 0 and std 1, so that values do not change. Returns
 * -ENOMEM or a read error; call weir_norm_close even then. */
int weir_norm_open(struct weir_norm *norm, const struct weir_dataset *dataset, const struct weir_sampler *sampler,
                   bool actions, bool raw, struct weir_err *err);
/* Accepts a zeroed struct. */
void weir_norm_close(struct weir_norm *norm);

struct weir_upload;
struct weir_gpu_decode;

/* ---- the state */

/* The resolved configuration. Constant once the loader is open. */
struct weir_setup {
    struct weir_loader_config config; /* with automatic values resolved */
    struct weir_placement placement;
    struct weir_decoder_choice decoder;
    struct weir_dataset *dataset;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    struct weir_view views[WEIR_CAMERAS_MAX]; /* crops and sizes that workers apply */
    struct weir_view
        out_views[WEIR_CAMERAS_MAX]; /* views in the batch; differ from `views` if the GPU crops and resizes */
    int block_rows;                  /* maximum number of frames per block of chunks; 0 = no blocks */
    struct weir_windows windows;
    struct weir_sampler *sampler;
    uint64_t total;         /* number of batches in the run */
    uint64_t episodes_hash; /* of their contents, for saved positions; 0 = not needed so far */
    struct weir_norm qpos, actions;
    struct weir_batch_layout layout; /* layout of the slots */
};

/* The modules. The header of each module documents which threads may use it. */
struct weir_shared {
    struct weir_setup setup;
    struct weir_recorder *recorder; /* NULL = nothing is timed */
    struct weir_file_set *files;
    struct weir_reading reading; /* I/O engine and read-ahead */
    struct weir_slots slots;
    struct weir_completion completion;
    struct weir_upload *upload;     /* uploads to a GPU; NULL = batches are delivered in the slots */
    struct weir_gpu_decode *decode; /* JPEG decoding on the GPU; NULL = none */
    struct weir_frame_cache cache;
    struct weir_faults faults;
    struct weir_file_watch watch;
    struct weir_sources sources; /* figures per camera and per file */
    alignas(64) _Atomic uint64_t next_task;
};

#endif
