/* synth_layouts_priv.h: the formats of weir synth, and what they share. */
#ifndef WEIR_DATASETS_SYNTH_SYNTH_LAYOUTS_PRIV_H
#define WEIR_DATASETS_SYNTH_SYNTH_LAYOUTS_PRIV_H

#include "datasets/hdf5/h5_write.h"
#include "datasets/synth/synth.h"
#include "datasets/synth/synth_priv.h"

enum { WEIR_SYNTH_NAME = 64, WEIR_SYNTH_CAMERAS = 16, WEIR_SYNTH_PATH = 128 /* of an object in a file */ };

struct weir_synth_job;

struct weir_synth_format {
    const char *name, *cameras;
    const char *prefix, *suffix; /* that a camera's name may carry; taken off. NULL = none */
    double rate_hz;
    bool jpeg;
    enum weir_depth depth;
    bool one_file;                 /* of all episodes */
    enum weir_h5w_storage storage; /* of what belongs to an episode of such a file */
    /* Makes job->file: for each episode, or for all of them. */
    int (*create)(struct weir_synth_job *job, int episode, struct weir_err *err);
    /* Writes the episode to it, taking the frames in order. */
    int (*write)(struct weir_synth_job *job, int episode, struct weir_err *err);
};

struct weir_synth_job {
    const struct weir_synth_config *config;
    const struct weir_synth_format *format;
    char camera[WEIR_SYNTH_CAMERAS][WEIR_SYNTH_NAME];
    int n_cameras;
    struct weir_scene *scene;
    struct weir_frames *frames;
    struct weir_h5w *file;
    struct weir_synth_stats stats;
};

int weir_synth_act_create(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_act(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_act_jpeg(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_act_jpeg_nolen(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_agilex(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_astrobench_create(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_astrobench(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_robotwin_create(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_robotwin(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_robomind_create(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_robomind(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_robomimic_create(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_robomimic(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_libero_create(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_libero(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_isaaclab_create(struct weir_synth_job *job, int episode, struct weir_err *err);
int weir_synth_isaaclab(struct weir_synth_job *job, int episode, struct weir_err *err);

/* ---- what the formats share ---- */

/* Makes the folder and those above it. */
int weir_synth_make_folders(const char *path, struct weir_err *err);
/* Makes job->file below the output folder, and the folders that its name has. */
int weir_synth_create_file(struct weir_synth_job *job, const char *name, struct weir_err *err);
/* Groups of these names below parent ("" = the root); NULL ends the list. */
int weir_synth_groups(struct weir_synth_job *job, const char *parent, const char *const *names, struct weir_err *err);

/* The next frame, counted; lent until the next call. */
int weir_synth_next_frame(struct weir_synth_job *job, const struct weir_frame **frame, struct weir_err *err);
/* Tells the caller of weir_synth_write how far the job is. */
void weir_synth_report(struct weir_synth_job *job);

/* Takes all frames of a camera. depth may be NULL. */
/* pixels (T, H, W, 3), and depth (T, H, W) */
int weir_synth_raw_camera(struct weir_synth_job *job, const char *image, const char *depth,
                          enum weir_h5w_storage storage, struct weir_err *err);
/* variable-length JPEG, and PNG */
int weir_synth_vlen_camera(struct weir_synth_job *job, const char *image, const char *depth, struct weir_err *err);

/* Puts all frames of a camera into the spool, in place of what it held: their longest must be known before the first
 * is written. */
int weir_synth_spool(struct weir_spool *spool, struct weir_synth_job *job, struct weir_err *err);

#endif
