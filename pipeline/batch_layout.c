#include "pipeline/batch_layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 4096 };
static const uint64_t SLOT_MAX_BYTES = 1ull << 40;

static size_t element_bytes(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_F32 ? sizeof(float) : 1;
}

/* Adds a tensor of these dimensions after the batch's; its number, or -EOVERFLOW. */
static int add(struct weir_batch_layout *layout, const char *name, enum weir_dtype dtype, const int64_t *dims, int n)
{
    struct weir_tensor *tensor = &layout->tensors[layout->n_tensors];
    uint64_t bytes = element_bytes(dtype), total;
    tensor->name = name;
    tensor->dtype = dtype;
    tensor->ndim = n + 1;
    tensor->shape[0] = layout->batch_size;
    for (int i = 0; i < n; i++) {
        tensor->shape[i + 1] = dims[i];
        if (__builtin_mul_overflow(bytes, (uint64_t)dims[i], &bytes))
            return -EOVERFLOW;
    }
    if (__builtin_mul_overflow(bytes, (uint64_t)layout->batch_size, &total) || total > SLOT_MAX_BYTES)
        return -EOVERFLOW;
    tensor->sample_bytes = bytes;
    layout->offsets[layout->n_tensors] = layout->slot_bytes;
    layout->slot_bytes += (total + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return layout->n_tensors++;
}

static int add_images(struct weir_batch_layout *layout, const struct weir_pixel_format *format, const char *name,
                      int first, int cameras)
{
    int64_t dims[5];
    int n = 0;
    bool planar = format->layout == WEIR_LAYOUT_NCHW;
    if (cameras > 0)
        dims[n++] = cameras;
    if (layout->history > 1)
        dims[n++] = layout->history;
    if (planar)
        dims[n++] = 3;
    dims[n++] = layout->height[first];
    dims[n++] = layout->width[first];
    if (!planar)
        dims[n++] = 3;
    return add(layout, name, format->dtype, dims, n);
}

static int add_cameras(struct weir_batch_layout *layout, const struct weir_loader_config *config,
                       const struct weir_dataset *dataset, const struct weir_camera_probe *probes)
{
    layout->n_cameras = weir_dataset_cameras(dataset);
    layout->grouped = true;
    for (int c = 0; c < layout->n_cameras; c++) {
        layout->width[c] = probes[c].width;
        layout->height[c] = probes[c].height;
        layout->image_bytes[c] = weir_image_bytes(&config->format, probes[c].width, probes[c].height);
        layout->grouped &= probes[c].width == probes[0].width && probes[c].height == probes[0].height;
    }
    if (layout->grouped)
        return add_images(layout, &config->format, "images", 0, layout->n_cameras);
    int rc = 0;
    for (int c = 0; c < layout->n_cameras && rc >= 0; c++) {
        snprintf(layout->names[c], sizeof layout->names[c], "images/%s", weir_dataset_camera(dataset, c)->name);
        rc = add_images(layout, &config->format, layout->names[c], c, 0);
    }
    return rc;
}

int weir_batch_layout_init(struct weir_batch_layout *layout, const struct weir_loader_config *config,
                           const struct weir_dataset *dataset, const struct weir_camera_probe *probes,
                           struct weir_err *err)
{
    memset(layout, 0, sizeof *layout);
    layout->batch_size = config->batch_size;
    layout->history = config->obs_history;
    int64_t qpos[2] = {config->obs_history, weir_dataset_qpos_dim(dataset)};
    int64_t actions[2] = {config->chunk_size, weir_dataset_action_dim(dataset)};
    bool history = config->obs_history > 1;
    int rc = add_cameras(layout, config, dataset, probes);
    if (rc >= 0)
        rc = layout->qpos = add(layout, "qpos", WEIR_DTYPE_F32, history ? qpos : qpos + 1, history ? 2 : 1);
    if (rc >= 0)
        rc = layout->actions = add(layout, "actions", WEIR_DTYPE_F32, actions, 2);
    if (rc >= 0)
        rc = layout->is_pad = add(layout, "is_pad", WEIR_DTYPE_U8, actions, 1);
    return rc < 0 ? weir_err_set(err, rc, "a batch would be larger than any memory; use a smaller --batch-size") : 0;
}

void *weir_layout_row(const struct weir_batch_layout *layout, uint8_t *slot, int tensor, int sample)
{
    return slot + layout->offsets[tensor] + (size_t)sample * layout->tensors[tensor].sample_bytes;
}

void *weir_layout_image(const struct weir_batch_layout *layout, uint8_t *slot, int sample, int camera, int history)
{
    uint8_t *row = weir_layout_row(layout, slot, layout->grouped ? 0 : camera, sample);
    size_t before = (size_t)(layout->grouped ? camera : 0) * (size_t)layout->history + (size_t)history;
    return row + before * layout->image_bytes[camera];
}
