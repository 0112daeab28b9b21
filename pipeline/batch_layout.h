/* batch_layout.h: where in a slot's memory each tensor, and each sample's part of it, lies. */
#ifndef WEIR_PIPELINE_BATCH_LAYOUT_H
#define WEIR_PIPELINE_BATCH_LAYOUT_H

#include "pipeline/probe.h"
#include "weir/loader.h"

struct weir_batch_layout {
    int n_cameras, history, batch_size;
    int width[WEIR_CAMERAS_MAX], height[WEIR_CAMERAS_MAX];
    int tensor[WEIR_CAMERAS_MAX]; /* where the camera's images are; colour or depth cameras of one size share one */
    int index[WEIR_CAMERAS_MAX];  /* of the camera among those of its tensor */
    size_t image_bytes[WEIR_CAMERAS_MAX];
    int n_tensors;
    struct weir_tensor tensors[WEIR_TENSORS_MAX]; /* of a full batch; data is NULL */
    size_t offsets[WEIR_TENSORS_MAX];
    int qpos, actions, is_pad; /* numbers of these tensors */
    size_t slot_bytes;
    size_t packed_bytes; /* from the first of these three on, side by side: small, and copied to a GPU at once */
    size_t sources_at;   /* for a GPU, a part of what is packed; 0 = not there */
    char names[WEIR_CAMERAS_MAX][WEIR_NAME_MAX + 8];
};

/* views: of each camera, what its images become. -EOVERFLOW when a batch would be larger than memory can be. */
int weir_batch_layout_init(struct weir_batch_layout *layout, const struct weir_loader_config *config,
                           const struct weir_dataset *dataset, const struct weir_camera_probe *probes,
                           const struct weir_view *views, struct weir_err *err);

/* Reserves memory behind the packed tensors for so many bytes of each image: what a GPU has to know about it. */
void weir_batch_layout_add_sources(struct weir_batch_layout *layout, size_t bytes_each);

/* One image in the slot's memory. */
void *weir_layout_image(const struct weir_batch_layout *layout, uint8_t *slot, int sample, int camera, int history);
/* The cameras of a tensor, in the order of their indices; how many. */
int weir_layout_cameras(const struct weir_batch_layout *layout, int tensor, int cameras[WEIR_CAMERAS_MAX]);
/* The number of an image among those of a slot: by sample, camera, position in the history. */
int weir_layout_number(const struct weir_batch_layout *layout, int sample, int camera, int history);
/* One sample's part of a tensor. */
void *weir_layout_row(const struct weir_batch_layout *layout, uint8_t *slot, int tensor, int sample);

#endif
