/* deltas.h: the steps of an episode that a sample needs, relative to its own step t. Steps outside the episode are
 * replaced by its first or last step. */
#ifndef WEIR_PIPELINE_SAMPLES_DELTAS_H
#define WEIR_PIPELINE_SAMPLES_DELTAS_H

#include "weir/loader.h"

enum { WEIR_WINDOW_MAX = 4096, WEIR_WINDOW_OFFSET_MAX = 1000000 };

/* Offsets first, first + 1, ..., or those of the list. */
struct weir_window {
    int n, first;
    int *list;     /* owned; NULL = consecutive offsets */
    bool is_given; /* the user chose the offsets, so the batch reports which steps are outside the episode */
};

static inline int weir_window_offset(const struct weir_window *window, int i)
{
    return window->list ? window->list[i] : window->first + i;
}

static inline int weir_window_clamp(int64_t step, int steps)
{
    return step < 0 ? 0 : step >= steps ? steps - 1 : (int)step;
}

/* Returns step i of a sample at step t of an episode. */
static inline int weir_window_step(const struct weir_window *window, int i, int t, int steps)
{
    return weir_window_clamp((int64_t)t + weir_window_offset(window, i), steps);
}

/* Writes n bools to is_pad: whether step i is outside the episode. */
void weir_window_pads(const struct weir_window *window, int t, int steps, uint8_t *is_pad);

/* The windows of all parts of a sample. */
struct weir_windows {
    struct weir_window cameras[WEIR_CAMERAS_MAX], columns[WEIR_COLUMNS_MAX], qpos, actions;
    int n_cameras, n_columns;
    int first, last; /* the smallest and the largest offset of all cameras */
    int images_max;  /* maximum number of frames per camera */
};

/* Sets the windows to those of config->delta_indices and, for parts that it does not name, of obs_history and
 * chunk_size. Returns 0; or -EINVAL or -ENOMEM with an error. */
int weir_windows_init(struct weir_windows *windows, const struct weir_loader_config *config,
                      const struct weir_dataset *dataset, struct weir_err *err);
void weir_windows_close(struct weir_windows *windows);

/* Returns the number of images per sample. */
int weir_windows_images(const struct weir_windows *windows);

#endif
