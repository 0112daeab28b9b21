#include "pipeline/samples/batch_layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One item of crop: "WxH+X+Y", optionally preceded by "CAMERA=". camera is NULL for all cameras. */
struct crop {
    const char *camera;
    size_t camera_length;
    int width, height, x, y;
};

static int usage(struct weir_err *err, const char *text, size_t length)
{
    return weir_err_set(err, -EINVAL,
                        "--crop: \"%.*s\" is not a region; use WxH+X+Y for all cameras, or CAMERA=WxH+X+Y, as in "
                        "320x240+160+120",
                        (int)(length < 100 ? length : 100), text);
}

static int parse(const char *item, size_t length, struct crop *crop, struct weir_err *err)
{
    char text[64];
    int end = 0;
    const char *equals = memchr(item, '=', length), *region = equals ? equals + 1 : item;
    size_t region_length = length - (size_t)(region - item);
    if (region_length >= sizeof text)
        return usage(err, item, length);
    memcpy(text, region, region_length);
    text[region_length] = '\0';
    *crop = (struct crop){.camera = equals ? item : NULL, .camera_length = equals ? (size_t)(equals - item) : 0};
    int n = sscanf(text, "%6dx%6d+%6d+%6d%n", &crop->width, &crop->height, &crop->x, &crop->y, &end);
    bool signs = strspn(text, "0123456789x+") != region_length || strstr(text, "++");
    if (n != 4 || end != (int)region_length || signs || crop->width < 1 || crop->height < 1)
        return usage(err, item, length);
    return 0;
}

/* Parses the item at *at and moves *at to the next one. Returns 1, 0 at the end, or -EINVAL. */
static int next_item(const char **at, struct crop *crop, struct weir_err *err)
{
    if (!*at)
        return 0;
    const char *item = *at;
    size_t length = strcspn(item, ",");
    *at = item[length] ? item + length + 1 : NULL;
    int rc = parse(item, length, crop, err);
    return rc < 0 ? rc : 1;
}

static bool is_for(const struct crop *crop, const char *camera)
{
    return !crop->camera ||
           (strlen(camera) == crop->camera_length && strncmp(crop->camera, camera, crop->camera_length) == 0);
}

static int apply(const struct crop *crop, const char *camera, const struct weir_camera_probe *probe,
                 struct weir_view *view, struct weir_err *err)
{
    if (crop->x + crop->width > probe->width || crop->y + crop->height > probe->height)
        return weir_err_set(err, -EINVAL,
                            "--crop: %dx%d+%d+%d does not fit in the %dx%d images of camera %s; use a smaller region",
                            crop->width, crop->height, crop->x, crop->y, probe->width, probe->height, camera);
    *view = (struct weir_view){crop->x, crop->y, crop->width, crop->height, 0, 0};
    return 0;
}

/* Later items take precedence: with "320x240+0+0,wrist=64x64+0+0", one camera differs from the others. */
static int apply_to_all(const struct crop *crop, struct weir_view *views, const struct weir_dataset *dataset,
                        const struct weir_camera_probe *probes, struct weir_err *err)
{
    int rc = 0, found = 0;
    for (int c = 0; c < weir_dataset_cameras(dataset) && rc == 0; c++) {
        const char *name = weir_dataset_camera(dataset, c)->name;
        if (!is_for(crop, name))
            continue;
        found++;
        rc = apply(crop, name, &probes[c], &views[c], err);
    }
    if (rc == 0 && found == 0)
        return weir_err_set(err, -EINVAL, "--crop: no camera is named \"%.*s\"; the first camera is \"%s\"",
                            (int)crop->camera_length, crop->camera, weir_dataset_camera(dataset, 0)->name);
    return rc;
}

int weir_crop_check(const char *crop, struct weir_err *err)
{
    struct crop ignored;
    int rc;
    while ((rc = next_item(&crop, &ignored, err)) > 0)
        continue;
    return rc;
}

int weir_views_init(struct weir_view *views, const struct weir_loader_config *config,
                    const struct weir_dataset *dataset, const struct weir_camera_probe *probes, struct weir_err *err)
{
    int cameras = weir_dataset_cameras(dataset), rc;
    const char *at = config->crop;
    struct crop crop;
    for (int c = 0; c < cameras; c++)
        views[c] = (struct weir_view){0, 0, probes[c].width, probes[c].height, 0, 0};
    while ((rc = next_item(&at, &crop, err)) > 0) {
        rc = apply_to_all(&crop, views, dataset, probes, err);
        if (rc < 0)
            return rc;
    }
    for (int c = 0; c < cameras; c++) {
        views[c].out_width = config->image_width ? config->image_width : views[c].width;
        views[c].out_height = config->image_height ? config->image_height : views[c].height;
    }
    return rc;
}

bool weir_view_is_whole(const struct weir_view *view, const struct weir_camera_probe *probe)
{
    return view->width == probe->width && view->height == probe->height && view->out_width == probe->width &&
           view->out_height == probe->height;
}
