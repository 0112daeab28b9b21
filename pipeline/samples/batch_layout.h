/* batch_layout.h: positions of the tensors in a slot's memory, and of each sample's part of the tensors. */
#ifndef WEIR_PIPELINE_SAMPLES_BATCH_LAYOUT_H
#define WEIR_PIPELINE_SAMPLES_BATCH_LAYOUT_H

#include "pipeline/samples/deltas.h"
#include "pipeline/samples/probe.h"
#include "weir/loader.h"

#include <stdio.h>

struct weir_batch_layout {
    int n_cameras, batch_size;
    const struct weir_windows *windows; /* borrowed */
    int width[WEIR_CAMERAS_MAX], height[WEIR_CAMERAS_MAX];
    int tensor[WEIR_CAMERAS_MAX]; /* tensor with the camera's images; colour or depth cameras of equal size share one */
    int index[WEIR_CAMERAS_MAX];  /* index of the camera within its tensor */
    size_t image_bytes[WEIR_CAMERAS_MAX];
    const float *depth_values[WEIR_CAMERAS_MAX]; /* see struct weir_camera; NULL: depth is u16 */
    bool is_window[WEIR_CAMERAS_MAX];            /* images have a dimension for the window, even if it has one step */
    int n_tensors;
    struct weir_tensor tensors[WEIR_TENSORS_MAX]; /* shapes are those of a full batch; data is NULL */
    size_t offsets[WEIR_TENSORS_MAX];
    int qpos, actions, is_pad;                                    /* indexes of these tensors */
    int qpos_pad, image_pads[WEIR_CAMERAS_MAX];                   /* indexes of further tensors is_pad/...; -1 = none */
    int columns[WEIR_COLUMNS_MAX], column_pads[WEIR_COLUMNS_MAX]; /* the same for column/... and their masks */
    size_t slot_bytes;
    /* Size of the contiguous region that starts with the tensors qpos, actions and is_pad. One call copies it to a GPU.
     */
    size_t packed_bytes;
    size_t sources_at; /* offset of the GPU's image descriptions, which are in that region; 0 = none */
    char names[WEIR_CAMERAS_MAX][WEIR_NAME_MAX + 8], pad_names[WEIR_CAMERAS_MAX][WEIR_NAME_MAX + 8];
    char column_names[WEIR_COLUMNS_MAX][WEIR_NAME_MAX + 8], column_pad_names[WEIR_COLUMNS_MAX][WEIR_NAME_MAX + 8];
};

/* views: transformation of each camera's images. windows must outlive the layout. Returns -EOVERFLOW if a batch would
 * exceed the address space. */
int weir_batch_layout_init(struct weir_batch_layout *layout, const struct weir_windows *windows,
                           const struct weir_loader_config *config, const struct weir_dataset *dataset,
                           const struct weir_camera_probe *probes, const struct weir_view *views, struct weir_err *err);

/* Reserves bytes_each per image after the packed tensors, for the image descriptions that a GPU needs. */
void weir_batch_layout_add_sources(struct weir_batch_layout *layout, size_t bytes_each);

/* Returns the number of frames per sample of a camera. */
static inline int weir_layout_frames(const struct weir_batch_layout *layout, int camera)
{
    return layout->windows->cameras[camera].n;
}
/* Returns the address of one image in the slot's memory. at: position in the camera's window. */
void *weir_layout_image(const struct weir_batch_layout *layout, uint8_t *slot, int sample, int camera, int at);
/* Lists the cameras of a tensor in order of their index. Returns their number. */
int weir_layout_cameras(const struct weir_batch_layout *layout, int tensor, int cameras[WEIR_CAMERAS_MAX]);
/* Returns the index of an image within its slot. Images are ordered by sample, then camera, then position in the
 * window. Indexes are not consecutive if windows differ in length; weir_layout_numbers returns their upper bound. */
int weir_layout_number(const struct weir_batch_layout *layout, int sample, int camera, int at);
size_t weir_layout_numbers(const struct weir_batch_layout *layout);
/* Returns the address of one sample's part of a tensor. */
void *weir_layout_row(const struct weir_batch_layout *layout, uint8_t *slot, int tensor, int sample);

/* Prints a line of checksums, for comparing settings, machines and versions, and a newline: "epoch 1 train 0 samples
 * 3:17,4:2 images 0123456789abcdef qpos ... actions ... is_pad ...". Epochs are counted from 1; batches, episodes and
 * steps are counted from 0. */
void weir_checksum_line(FILE *out, const struct weir_batch *batch);

/* ---- views.c: crop and size of each camera's images in a batch. */

/* Fills in one view per camera from config's crop and image size. Without them, a view is the whole image. Returns
 * -EINVAL, with err naming the crop and the camera, if a crop does not fit. */
int weir_views_init(struct weir_view *views, const struct weir_loader_config *config,
                    const struct weir_dataset *dataset, const struct weir_camera_probe *probes, struct weir_err *err);

/* Returns 0 if every item of crop is well-formed, or -EINVAL. */
int weir_crop_check(const char *crop, struct weir_err *err);

/* Returns whether the view is the whole image at its own size. */
bool weir_view_is_whole(const struct weir_view *view, const struct weir_camera_probe *probe);

#endif
