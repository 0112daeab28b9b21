/* synth_priv.h: rendered and encoded frames, made by many threads, handed out in order. */
#ifndef WEIR_DATASETS_SYNTH_SYNTH_PRIV_H
#define WEIR_DATASETS_SYNTH_SYNTH_PRIV_H

#include "datasets/synth/jpeg_write.h"
#include "datasets/synth/scene.h"
#include "weir/base.h"

enum weir_depth {
    WEIR_DEPTH_NONE,
    WEIR_DEPTH_PNG, /* 16-bit grey */
    WEIR_DEPTH_RAW, /* uint16_t, as the machine holds them */
};

struct weir_frames_config {
    const struct weir_scene *scene; /* borrowed until close */
    int episodes, cameras, steps;
    int width, height;
    bool jpeg; /* else raw RGB */
    int quality;
    enum weir_depth depth; /* beside each picture */
    int threads;           /* the most to use; fewer when their memory would pass about 1.5 GiB */
};

struct weir_frame {
    struct weir_bytes image, depth;
};

struct weir_frames;

int weir_frames_open(struct weir_frames **frames, const struct weir_frames_config *config, struct weir_err *err);
/* The next frame: all steps of the first camera of the first episode, then the next camera, then the next episode. Lent
 * until the next call. Not to be called past the last. Returns 0, or the errno of the thread that made it. */
int weir_frames_next(struct weir_frames *frames, const struct weir_frame **frame);
/* Stops the threads, wherever they are; *frames may be NULL. */
void weir_frames_close(struct weir_frames **frames);

#endif
