#include "pipeline/samples/batch_layout.h"
#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Alignment of images, and of small tensors (state, actions, masks). */
enum { ALIGNMENT = 4096, SMALL_ALIGNMENT = 256 };
static const uint64_t SLOT_MAX_BYTES = 1ull << 40;

static size_t element_bytes(enum weir_dtype dtype)
{
    static const size_t bytes[] = {[WEIR_DTYPE_U8] = 1,   [WEIR_DTYPE_F32] = sizeof(float),
                                   [WEIR_DTYPE_U16] = 2,  [WEIR_DTYPE_F16] = 2,
                                   [WEIR_DTYPE_BF16] = 2, [WEIR_DTYPE_I64] = 8,
                                   [WEIR_DTYPE_BOOL] = 1};
    return bytes[dtype];
}

static size_t rounded_up(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* Appends a tensor with these dimensions. Returns its index, or -EOVERFLOW. */
static int add(struct weir_batch_layout *layout, size_t alignment, const char *name, enum weir_dtype dtype,
               const int64_t *dims, int n)
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
    layout->slot_bytes += rounded_up(total, alignment);
    return layout->n_tensors++;
}

/* The cameras of one kind: colour or depth. */
struct kind {
    bool depth;
    const char *name;
    int n;
    int cameras[WEIR_CAMERAS_MAX];
};

/* Appends a tensor for images like those of camera c. cameras: number of cameras that share the tensor; 0 = only camera
 * c. */
static int add_images(struct weir_batch_layout *layout, const struct weir_pixel_format *format, bool depth,
                      const char *name, int c, int cameras)
{
    int64_t dims[5];
    int n = 0;
    bool planar = format->layout == WEIR_LAYOUT_NCHW;
    if (cameras > 0)
        dims[n++] = cameras;
    if (layout->is_window[c])
        dims[n++] = weir_layout_frames(layout, c);
    if (layout->depth_values[c])
        dims[n++] = 1;
    else if (planar && !depth)
        dims[n++] = 3;
    dims[n++] = layout->height[c];
    dims[n++] = layout->width[c];
    if (!planar && !depth)
        dims[n++] = 3;
    enum weir_dtype dtype = layout->depth_values[c] ? WEIR_DTYPE_F32 : depth ? WEIR_DTYPE_U16 : format->dtype;
    return add(layout, ALIGNMENT, name, dtype, dims, n);
}

static bool are_alike(const struct weir_batch_layout *layout, const struct kind *kind)
{
    for (int i = 1; i < kind->n; i++) {
        int a = kind->cameras[0], b = kind->cameras[i];
        if (layout->width[a] != layout->width[b] || layout->height[a] != layout->height[b] ||
            weir_layout_frames(layout, a) != weir_layout_frames(layout, b) ||
            layout->is_window[a] != layout->is_window[b] || !layout->depth_values[a] != !layout->depth_values[b])
            return false;
    }
    return true;
}

static int add_kind(struct weir_batch_layout *layout, const struct weir_pixel_format *format,
                    const struct weir_dataset *dataset, const struct kind *kind)
{
    int rc = 0;
    bool shared = kind->n > 0 && are_alike(layout, kind);
    if (shared)
        rc = add_images(layout, format, kind->depth, kind->name, kind->cameras[0], kind->n);
    for (int i = 0; i < kind->n && rc >= 0; i++) {
        int c = kind->cameras[i];
        if (!shared) {
            snprintf(layout->names[c], sizeof layout->names[c], "%s/%s", kind->name,
                     weir_dataset_camera(dataset, c)->name);
            rc = add_images(layout, format, kind->depth, layout->names[c], c, 0);
        }
        layout->tensor[c] = rc;
        layout->index[c] = shared ? i : 0;
    }
    return rc;
}

static int add_cameras(struct weir_batch_layout *layout, const struct weir_pixel_format *format,
                       const struct weir_dataset *dataset, const struct weir_camera_probe *probes,
                       const struct weir_view *views)
{
    struct kind color = {.name = "images"}, depth = {.depth = true, .name = "depth"};
    layout->n_cameras = weir_dataset_cameras(dataset);
    for (int c = 0; c < layout->n_cameras; c++) {
        struct kind *kind = weir_frame_is_depth(probes[c].kind) ? &depth : &color;
        /* LeRobot removes the dimension of a single step from videos, but not from other images. */
        layout->is_window[c] = weir_layout_frames(layout, c) > 1 ||
                               (layout->windows->n_columns > 0 && layout->windows->cameras[c].is_given &&
                                !weir_frame_is_video(probes[c].kind));
        kind->cameras[kind->n++] = c;
        layout->width[c] = views[c].out_width;
        layout->height[c] = views[c].out_height;
        layout->image_bytes[c] = weir_frame_bytes(format, probes[c].kind, layout->width[c], layout->height[c]);
        layout->depth_values[c] = weir_dataset_camera(dataset, c)->depth_values;
        if (layout->depth_values[c])
            layout->image_bytes[c] = layout->image_bytes[c] / sizeof(uint16_t) * sizeof(float);
    }
    int rc = add_kind(layout, format, dataset, &color);
    return rc < 0 ? rc : add_kind(layout, format, dataset, &depth);
}

static int add_pad(struct weir_batch_layout *layout, const struct weir_window *window, const char *name)
{
    int64_t n = window->n;
    return window->is_given ? add(layout, SMALL_ALIGNMENT, name, WEIR_DTYPE_U8, &n, 1) : -1;
}

/* Appends the tensors is_pad/... of parts whose windows were chosen by the user. */
static int add_pads(struct weir_batch_layout *layout, const struct weir_dataset *dataset)
{
    int rc = layout->qpos_pad = add_pad(layout, &layout->windows->qpos, "is_pad/qpos");
    for (int c = 0; c < layout->n_cameras && rc != -EOVERFLOW; c++) {
        snprintf(layout->pad_names[c], sizeof layout->pad_names[c], "is_pad/%s", weir_dataset_camera(dataset, c)->name);
        rc = layout->image_pads[c] = add_pad(layout, &layout->windows->cameras[c], layout->pad_names[c]);
    }
    return rc == -EOVERFLOW ? rc : 0;
}

static int add_column(struct weir_batch_layout *layout, const struct weir_dataset *dataset, int c)
{
    static const enum weir_dtype dtypes[] = {
        [WEIR_COLUMN_F32] = WEIR_DTYPE_F32, [WEIR_COLUMN_I64] = WEIR_DTYPE_I64, [WEIR_COLUMN_BOOL] = WEIR_DTYPE_BOOL};
    const struct weir_window *window = &layout->windows->columns[c];
    struct weir_column_shape shape;
    const char *name = weir_dataset_column(dataset, c, &shape);
    int64_t dims[1 + WEIR_COLUMN_RANK_MAX];
    int n = 0;
    snprintf(layout->column_names[c], sizeof layout->column_names[c], "column/%s", name);
    snprintf(layout->column_pad_names[c], sizeof layout->column_pad_names[c], "is_pad/%s", name);
    if (window->is_given)
        dims[n++] = window->n;
    for (int d = 0; d < shape.rank; d++)
        dims[n++] = shape.dims[d];
    int rc = layout->columns[c] = add(layout, SMALL_ALIGNMENT, layout->column_names[c], dtypes[shape.type], dims, n);
    if (rc >= 0)
        rc = layout->column_pads[c] = add_pad(layout, window, layout->column_pad_names[c]);
    return rc == -EOVERFLOW ? rc : 0;
}

int weir_batch_layout_init(struct weir_batch_layout *layout, const struct weir_windows *windows,
                           const struct weir_loader_config *config, const struct weir_dataset *dataset,
                           const struct weir_camera_probe *probes, const struct weir_view *views, struct weir_err *err)
{
    memset(layout, 0, sizeof *layout);
    layout->batch_size = config->batch_size;
    layout->windows = windows;
    int64_t qpos[2] = {windows->qpos.n, weir_dataset_qpos_dim(dataset)};
    int64_t actions[2] = {windows->actions.n, weir_dataset_action_dim(dataset)};
    bool several = windows->qpos.n > 1;
    int rc = add_cameras(layout, &config->format, dataset, probes, views);
    if (rc >= 0)
        rc = layout->qpos =
            add(layout, SMALL_ALIGNMENT, "qpos", WEIR_DTYPE_F32, several ? qpos : qpos + 1, several ? 2 : 1);
    if (rc >= 0)
        rc = layout->actions = add(layout, SMALL_ALIGNMENT, "actions", WEIR_DTYPE_F32, actions, 2);
    if (rc >= 0)
        rc = layout->is_pad = add(layout, SMALL_ALIGNMENT, "is_pad", WEIR_DTYPE_U8, actions, 1);
    if (rc >= 0)
        rc = add_pads(layout, dataset);
    for (int c = 0; c < windows->n_columns && rc >= 0; c++)
        rc = add_column(layout, dataset, c);
    if (rc < 0)
        return weir_err_set(err, rc, "a batch would exceed the address space; use a smaller --batch-size");
    layout->packed_bytes = layout->slot_bytes - layout->offsets[layout->qpos];
    layout->slot_bytes = rounded_up(layout->slot_bytes, ALIGNMENT);
    return 0;
}

void weir_batch_layout_add_sources(struct weir_batch_layout *layout, size_t bytes_each)
{
    size_t images = weir_layout_numbers(layout);
    size_t packed_at = layout->offsets[layout->qpos];
    layout->sources_at = packed_at + layout->packed_bytes;
    layout->packed_bytes = rounded_up(layout->packed_bytes + images * bytes_each, SMALL_ALIGNMENT);
    layout->slot_bytes = rounded_up(packed_at + layout->packed_bytes, ALIGNMENT);
}

void *weir_layout_row(const struct weir_batch_layout *layout, uint8_t *slot, int tensor, int sample)
{
    return slot + layout->offsets[tensor] + (size_t)sample * layout->tensors[tensor].sample_bytes;
}

void *weir_layout_image(const struct weir_batch_layout *layout, uint8_t *slot, int sample, int camera, int at)
{
    uint8_t *row = weir_layout_row(layout, slot, layout->tensor[camera], sample);
    size_t before = (size_t)layout->index[camera] * (size_t)weir_layout_frames(layout, camera) + (size_t)at;
    return row + before * layout->image_bytes[camera];
}

int weir_layout_number(const struct weir_batch_layout *layout, int sample, int camera, int at)
{
    return (sample * layout->n_cameras + camera) * layout->windows->images_max + at;
}

size_t weir_layout_numbers(const struct weir_batch_layout *layout)
{
    return (size_t)layout->batch_size * (size_t)layout->n_cameras * (size_t)layout->windows->images_max;
}

int weir_layout_cameras(const struct weir_batch_layout *layout, int tensor, int cameras[WEIR_CAMERAS_MAX])
{
    int n = 0;
    for (int c = 0; c < layout->n_cameras; c++)
        if (layout->tensor[c] == tensor) {
            cameras[layout->index[c]] = c;
            n++;
        }
    return n;
}

void weir_checksum_line(FILE *out, const struct weir_batch *batch)
{
    fprintf(out, "epoch %d %s %d samples ", batch->plan.epoch + 1,
            batch->plan.split == WEIR_SPLIT_TRAIN ? "train" : "val", batch->plan.index);
    for (int i = 0; i < batch->n; i++)
        fprintf(out, "%s%d:%d", i ? "," : "", batch->samples[i].episode, batch->samples[i].t);
    if (batch->n == 0)
        fputc('-', out);
    for (int i = 0; i < batch->n_tensors; i++) {
        const struct weir_tensor *tensor = &batch->tensors[i];
        size_t bytes = tensor->sample_bytes * (size_t)batch->n;
        fprintf(out, " %s %016" PRIx64, tensor->name, weir_hash64(tensor->data, bytes));
    }
    fputc('\n', out);
}
