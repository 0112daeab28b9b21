/* Placement of colour and depth images in a batch: names, types and shapes of the tensors, and a separate place for
 * every image in the right tensor. */
#include "datasets/index.h"
#include "pipeline/samples/batch_layout.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, QPOS_DIM = 5, ACTION_DIM = 4, CHUNK = 7 };

struct camera {
    const char *name; /* NULL ends the list */
    enum weir_frame_kind kind;
    int width, height;
};

struct setup {
    struct weir_episode episode;
    struct weir_dataset dataset;
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    struct weir_loader_config config;
    struct weir_windows windows;
    struct weir_batch_layout layout;
};

static void add_camera(struct setup *s, const struct camera *camera)
{
    int c = s->dataset.n_cameras++;
    snprintf(s->dataset.cameras[c].name, sizeof s->dataset.cameras[c].name, "%s", camera->name);
    s->probes[c] = (struct weir_camera_probe){.kind = camera->kind, .width = camera->width, .height = camera->height};
}

/* given: the user chose all windows. */
static int lay_out_windows(struct setup *s, bool given)
{
    struct weir_view views[WEIR_CAMERAS_MAX];
    if (weir_views_init(views, &s->config, &s->dataset, s->probes, NULL) < 0 ||
        weir_windows_init(&s->windows, &s->config, &s->dataset, NULL) < 0)
        return -EINVAL;
    for (int c = 0; c < WEIR_CAMERAS_MAX; c++)
        s->windows.cameras[c].is_given = given;
    for (int c = 0; c < WEIR_COLUMNS_MAX; c++)
        s->windows.columns[c].is_given = given;
    s->windows.qpos.is_given = given;
    return weir_batch_layout_init(&s->layout, &s->windows, &s->config, &s->dataset, s->probes, views, NULL);
}

static int lay_out(struct setup *s, const struct camera *cameras, int history, struct weir_pixel_format format)
{
    memset(s, 0, sizeof *s);
    s->episode = (struct weir_episode){.qpos_dim = QPOS_DIM, .action_dim = ACTION_DIM};
    s->dataset.n_episodes = 1;
    s->dataset.episodes = &s->episode;
    for (; cameras->name; cameras++)
        add_camera(s, cameras);
    weir_loader_config_default(&s->config);
    s->config.batch_size = BATCH;
    s->config.obs_history = history;
    s->config.chunk_size = CHUNK;
    s->config.format = format;
    return lay_out_windows(s, false);
}

static size_t bytes_of(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_I64 ? 8 : dtype == WEIR_DTYPE_F32 ? 4 : dtype == WEIR_DTYPE_U16 ? 2 : 1;
}

/* Compares tensor i with a description such as "images u8 3 2 8 16 3" (name, type, shape). */
static void expect(const struct weir_batch_layout *layout, int i, const char *want)
{
    static const char *const dtypes[] = {[WEIR_DTYPE_U8] = "u8",
                                         [WEIR_DTYPE_F32] = "f32",
                                         [WEIR_DTYPE_U16] = "u16",
                                         [WEIR_DTYPE_I64] = "i64",
                                         [WEIR_DTYPE_BOOL] = "bool"};
    const struct weir_tensor *tensor = &layout->tensors[i];
    size_t bytes = bytes_of(tensor->dtype);
    char text[160];
    int n = snprintf(text, sizeof text, "%s %s", tensor->name, dtypes[tensor->dtype]);
    for (int d = 0; d < tensor->ndim; d++) {
        n += snprintf(text + n, sizeof text - (size_t)n, " %d", (int)tensor->shape[d]);
        bytes *= d > 0 ? (size_t)tensor->shape[d] : 1;
    }
    cr_assert_lt(i, layout->n_tensors);
    cr_assert_str_eq(text, want);
    cr_assert_eq(tensor->sample_bytes, bytes, "%s", text);
}

/* Images must be ordered by sample, then camera, then history, and cover every byte of the tensor exactly once. */
static void expect_places(const struct weir_batch_layout *layout)
{
    uint8_t *slot = malloc(layout->slot_bytes);
    memset(slot, 0, layout->slot_bytes);
    size_t painted = 0, of_tensors = 0;
    for (int sample = 0; sample < BATCH; sample++)
        for (int c = 0; c < layout->n_cameras; c++)
            for (int h = 0; h < weir_layout_frames(layout, c); h++) {
                uint8_t *image = weir_layout_image(layout, slot, sample, c, h);
                const uint8_t *row = weir_layout_row(layout, slot, layout->tensor[c], sample);
                const struct weir_tensor *tensor = &layout->tensors[layout->tensor[c]];
                cr_assert_geq(image, row);
                cr_assert_leq(image + layout->image_bytes[c], row + tensor->sample_bytes);
                if (h > 0)
                    cr_assert_eq(image - layout->image_bytes[c], weir_layout_image(layout, slot, sample, c, h - 1));
                for (size_t i = 0; i < layout->image_bytes[c]; i++)
                    cr_assert_eq(image[i]++, 0, "two images share a byte");
                painted += layout->image_bytes[c];
            }
    for (int i = 0; i < layout->qpos; i++)
        of_tensors += layout->tensors[i].sample_bytes * BATCH;
    cr_assert_eq(painted, of_tensors);
    for (size_t i = layout->offsets[layout->qpos]; i < layout->slot_bytes; i++)
        cr_assert_eq(slot[i], 0, "an image overlaps the state");
    free(slot);
}

static void expect_rest(const struct weir_batch_layout *layout, int history)
{
    char qpos[64];
    snprintf(qpos, sizeof qpos, "qpos f32 3 %d %d", history, QPOS_DIM);
    expect(layout, layout->qpos, history > 1 ? qpos : "qpos f32 3 5");
    expect(layout, layout->actions, "actions f32 3 7 4");
    expect(layout, layout->is_pad, "is_pad u8 3 7");
    cr_assert_eq(layout->n_tensors, layout->is_pad + 1);
}

static const struct weir_pixel_format u8_nhwc = {0};
static const struct weir_pixel_format f32_nchw = {
    .color = WEIR_COLOR_BGR, .dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};

Test(batch_layout, colour_alone_is_as_ever)
{
    struct setup s;
    static const struct camera same[] = {{"a", WEIR_FRAME_IMAGE, 16, 8}, {"b", WEIR_FRAME_RAW, 16, 8}, {0}};
    static const struct camera differ[] = {{"a", WEIR_FRAME_IMAGE, 16, 8}, {"b", WEIR_FRAME_RAW, 8, 16}, {0}};
    cr_assert_eq(lay_out(&s, same, 1, u8_nhwc), 0);
    expect(&s.layout, 0, "images u8 3 2 8 16 3");
    cr_assert_eq(s.layout.qpos, 1);
    expect_rest(&s.layout, 1);
    expect_places(&s.layout);
    cr_assert_eq(lay_out(&s, differ, 2, f32_nchw), 0);
    expect(&s.layout, 0, "images/a f32 3 2 3 8 16");
    expect(&s.layout, 1, "images/b f32 3 2 3 16 8");
    cr_assert_eq(s.layout.qpos, 2);
    expect_rest(&s.layout, 2);
    expect_places(&s.layout);
}

/* Depth with a scale is a float image of one channel, which is not in a tensor with other depth. */
Test(batch_layout, depth_in_millimetres)
{
    struct setup s;
    static const float values[1];
    static const struct camera cameras[] = {{"depth_a", WEIR_FRAME_VIDEO16, 12, 10},
                                            {"rgb_a", WEIR_FRAME_VIDEO, 12, 10},
                                            {"depth_b", WEIR_FRAME_PNG16, 12, 10},
                                            {0}};
    cr_assert_eq(lay_out(&s, cameras, 2, u8_nhwc), 0);
    s.dataset.cameras[0].depth_values = values;
    cr_assert_eq(lay_out_windows(&s, false), 0);
    expect(&s.layout, 0, "images u8 3 1 2 10 12 3");
    expect(&s.layout, 1, "depth/depth_a f32 3 2 1 10 12");
    expect(&s.layout, 2, "depth/depth_b u16 3 2 10 12");
    expect_places(&s.layout);
    s.dataset.cameras[2].depth_values = values;
    cr_assert_eq(lay_out_windows(&s, false), 0);
    expect(&s.layout, 1, "depth f32 3 2 2 1 10 12");
    expect_places(&s.layout);
}

/* For any order of the cameras, and for any kind of stored depth. */
Test(batch_layout, depth_has_a_tensor_of_its_own)
{
    struct setup s;
    static const struct camera cameras[] = {{"depth_a", WEIR_FRAME_PNG16, 12, 10}, {"rgb_a", WEIR_FRAME_IMAGE, 16, 8},
                                            {"depth_b", WEIR_FRAME_RAW16, 12, 10}, {"rgb_b", WEIR_FRAME_IMAGE, 16, 8},
                                            {"rgb_c", WEIR_FRAME_RAW, 16, 8},      {0}};
    cr_assert_eq(lay_out(&s, cameras, 1, u8_nhwc), 0);
    expect(&s.layout, 0, "images u8 3 3 8 16 3");
    expect(&s.layout, 1, "depth u16 3 2 10 12");
    expect_rest(&s.layout, 1);
    expect_places(&s.layout);
    cr_assert_eq(s.layout.image_bytes[0], 12 * 10 * 2);
    cr_assert_eq(s.layout.image_bytes[1], 16 * 8 * 3);
    uint8_t *slot = malloc(s.layout.slot_bytes), *images = slot + s.layout.offsets[0],
            *depth = slot + s.layout.offsets[1];
    cr_assert_eq(weir_layout_image(&s.layout, slot, 0, 0, 0), depth);
    cr_assert_eq(weir_layout_image(&s.layout, slot, 0, 2, 0), depth + 240);
    cr_assert_eq(weir_layout_image(&s.layout, slot, 2, 2, 0), depth + 5 * 240);
    cr_assert_eq(weir_layout_image(&s.layout, slot, 0, 1, 0), images);
    cr_assert_eq(weir_layout_image(&s.layout, slot, 0, 3, 0), images + 384);
    cr_assert_eq(weir_layout_image(&s.layout, slot, 1, 4, 0), images + 5 * 384);
    free(slot);
}

/* The output format applies to colour only. */
Test(batch_layout, depth_has_history_and_no_format)
{
    struct setup s;
    static const struct camera cameras[] = {{"rgb_a", WEIR_FRAME_IMAGE, 16, 8},
                                            {"depth_a", WEIR_FRAME_PNG16, 16, 8},
                                            {"depth_b", WEIR_FRAME_PNG16, 16, 8},
                                            {0}};
    cr_assert_eq(lay_out(&s, cameras, 4, f32_nchw), 0);
    expect(&s.layout, 0, "images f32 3 1 4 3 8 16");
    expect(&s.layout, 1, "depth u16 3 2 4 8 16");
    expect_rest(&s.layout, 4);
    expect_places(&s.layout);
}

Test(batch_layout, sizes_that_differ_part_one_kind_only)
{
    struct setup s;
    static const struct camera depth[] = {{"depth_a", WEIR_FRAME_PNG16, 12, 10}, {"rgb_a", WEIR_FRAME_IMAGE, 16, 8},
                                          {"rgb_b", WEIR_FRAME_IMAGE, 16, 8},    {"depth_b", WEIR_FRAME_PNG16, 10, 12},
                                          {"depth_c", WEIR_FRAME_RAW16, 12, 10}, {0}};
    static const struct camera color[] = {{"depth_a", WEIR_FRAME_PNG16, 12, 10},
                                          {"rgb_a", WEIR_FRAME_IMAGE, 16, 8},
                                          {"rgb_b", WEIR_FRAME_IMAGE, 16, 9},
                                          {"depth_b", WEIR_FRAME_PNG16, 12, 10},
                                          {0}};
    cr_assert_eq(lay_out(&s, depth, 2, u8_nhwc), 0);
    expect(&s.layout, 0, "images u8 3 2 2 8 16 3");
    expect(&s.layout, 1, "depth/depth_a u16 3 2 10 12");
    expect(&s.layout, 2, "depth/depth_b u16 3 2 12 10");
    expect(&s.layout, 3, "depth/depth_c u16 3 2 10 12");
    expect_rest(&s.layout, 2);
    expect_places(&s.layout);
    cr_assert_eq(lay_out(&s, color, 1, u8_nhwc), 0);
    expect(&s.layout, 0, "images/rgb_a u8 3 8 16 3");
    expect(&s.layout, 1, "images/rgb_b u8 3 9 16 3");
    expect(&s.layout, 2, "depth u16 3 2 10 12");
    expect_rest(&s.layout, 1);
    expect_places(&s.layout);
}

Test(batch_layout, depth_alone)
{
    struct setup s;
    static const struct camera cameras[] = {{"depth_a", WEIR_FRAME_RAW16, 3, 1}, {0}};
    cr_assert_eq(lay_out(&s, cameras, 1, f32_nchw), 0);
    expect(&s.layout, 0, "depth u16 3 1 1 3");
    cr_assert_eq(s.layout.qpos, 1);
    expect_rest(&s.layout, 1);
    expect_places(&s.layout);
}

/* The maximum number of cameras and columns. Cameras have different sizes, every third one is depth, and all windows
 * have masks. */
Test(batch_layout, as_many_tensors_as_there_may_be)
{
    static char names[WEIR_CAMERAS_MAX][16];
    static struct camera cameras[WEIR_CAMERAS_MAX + 1];
    struct setup s;
    for (int c = 0; c < WEIR_CAMERAS_MAX; c++) {
        snprintf(names[c], sizeof names[c], "c%d", c);
        cameras[c] = (struct camera){names[c], c % 3 ? WEIR_FRAME_IMAGE : WEIR_FRAME_PNG16, 1 + c, 40 - c};
    }
    cr_assert_eq(lay_out(&s, cameras, 3, u8_nhwc), 0);
    expect_rest(&s.layout, 3);
    static struct weir_column columns[WEIR_COLUMNS_MAX];
    for (int c = 0; c < WEIR_COLUMNS_MAX; c++)
        columns[c] = (struct weir_column){
            .name = {'k', (char)('0' + c)}, .shape = {(enum weir_column_type)(c % 3), c % 2, {2}}, .width = 1 + c % 2};
    s.episode.columns = columns;
    s.episode.n_columns = WEIR_COLUMNS_MAX;
    cr_assert_eq(lay_out_windows(&s, true), 0);
    cr_assert_eq(s.layout.n_tensors, WEIR_TENSORS_MAX);
    expect(&s.layout, s.layout.columns[0], "column/k0 f32 3 1");
    expect(&s.layout, s.layout.columns[1], "column/k1 i64 3 1 2");
    expect(&s.layout, s.layout.columns[2], "column/k2 bool 3 1");
    expect(&s.layout, s.layout.column_pads[63], "is_pad/ko u8 3 1");
    expect(&s.layout, s.layout.tensor[1], "images/c1 u8 3 3 39 2 3");
    expect(&s.layout, s.layout.tensor[30], "depth/c30 u16 3 3 10 31");
    expect(&s.layout, s.layout.qpos_pad, "is_pad/qpos u8 3 3");
    expect(&s.layout, s.layout.image_pads[30], "is_pad/c30 u8 3 3");
    expect_places(&s.layout);
}

/* State, actions, masks and the GPU's image descriptions are contiguous, at the end of the slot. */
Test(batch_layout, what_is_small_lies_side_by_side)
{
    struct setup s;
    static const struct camera cameras[] = {{"a", WEIR_FRAME_IMAGE, 160, 80}, {"b", WEIR_FRAME_RAW16, 160, 80}, {0}};
    cr_assert_eq(lay_out(&s, cameras, 2, f32_nchw), 0);
    const struct weir_batch_layout *layout = &s.layout;
    size_t packed_at = layout->offsets[layout->qpos], end = packed_at + layout->packed_bytes;
    for (int i = layout->qpos; i < layout->n_tensors; i++) {
        cr_assert_eq(layout->offsets[i] % 256, 0);
        cr_assert_leq(layout->offsets[i] + layout->tensors[i].sample_bytes * BATCH, end);
    }
    cr_assert_leq(layout->packed_bytes, (size_t)4 * 256, "qpos, actions and is_pad of 120, 336 and 21 bytes");
    weir_batch_layout_add_sources(&s.layout, 40);
    cr_assert_eq(layout->sources_at, end);
    cr_assert_geq(packed_at + layout->packed_bytes, end + (size_t)40 * BATCH * 2 * 2);
    cr_assert_leq(packed_at + layout->packed_bytes, layout->slot_bytes);
    cr_assert_eq(layout->slot_bytes % 4096, 0);
}

Test(batch_layout, depth_larger_than_any_memory)
{
    struct setup s;
    static const struct camera cameras[] = {{"depth", WEIR_FRAME_RAW16, 1 << 20, 1 << 20}, {0}};
    cr_assert_eq(lay_out(&s, cameras, 1, u8_nhwc), -EOVERFLOW);
}
