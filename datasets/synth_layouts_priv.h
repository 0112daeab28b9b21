/* synth_layouts_priv.h: one function per format that writes an episode's file. */
#ifndef WEIR_DATASETS_SYNTH_LAYOUTS_PRIV_H
#define WEIR_DATASETS_SYNTH_LAYOUTS_PRIV_H

#include "datasets/h5_write.h"
#include "datasets/synth.h"
#include "datasets/synth_priv.h"

enum { WEIR_SYNTH_NAME = 64, WEIR_SYNTH_CAMERAS = 16 };

struct weir_synth_job;

struct weir_synth_format {
    const char *name, *cameras;
    const char *prefix; /* that a camera's name may carry; taken off */
    double rate_hz;
    bool jpeg, depth;
    /* Takes the episode's frames in order; commits the file, or leaves none. */
    int (*write)(struct weir_synth_job *job, int episode, struct weir_err *err);
};

struct weir_synth_job {
    const struct weir_synth_config *config;
    const struct weir_synth_format *format;
    char camera[WEIR_SYNTH_CAMERAS][WEIR_SYNTH_NAME];
    int n_cameras;
    struct weir_scene *scene;
    struct weir_frames *frames;
    struct weir_synth_stats stats;
};

int weir_synth_act(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_act_jpeg(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_astrobench(struct weir_synth_job *job, int episode, struct weir_err *err);

#endif
