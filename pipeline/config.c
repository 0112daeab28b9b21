#include "io/ahead.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/read_ahead.h"
#include "weir/loader.h"

#include <errno.h>

enum { PREFETCH_MAX = 4096 };

void weir_loader_config_default(struct weir_loader_config *config)
{
    *config = (struct weir_loader_config){
        .batch_size = 8,
        .num_workers = WEIR_WORKERS_AUTO,
        .num_epochs = 1,
        .obs_history = 1,
        .chunk_size = 20,
        .train_split = 0.9,
        .io = "auto",
        .decoder = "auto",
    };
}

static int check_ranges(const struct weir_loader_config *c, struct weir_err *err)
{
    const struct {
        const char *name;
        int value, min, max;
        const char *meaning; /* of min */
    } ranges[] = {
        {"num_workers", c->num_workers, WEIR_WORKERS_AUTO, WEIR_WORKERS_MAX, " (auto)"},
        {"prefetch", c->prefetch, 0, PREFETCH_MAX, " (auto)"},
        {"batch_size", c->batch_size, 1, 65536, ""},
        {"obs_history", c->obs_history, 1, 1024, ""},
        {"chunk_size", c->chunk_size, 1, 65536, ""},
        {"local_size", c->local_size, 0, INT32_MAX, ""},
        {"local_rank", c->local_rank, 0, c->local_size ? c->local_size - 1 : 0, ""},
        {"image_width", c->image_width, 0, WEIR_IMAGE_SIDE_MAX, " (as stored)"},
        {"image_height", c->image_height, 0, WEIR_IMAGE_SIDE_MAX, " (as stored)"},
        {"io_depth", c->io_depth, 0, WEIR_IO_DEPTH_MAX, " (auto)"},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max)
            return weir_err_set(err, -EINVAL, "%s must be %d%s..%d, not %d", ranges[i].name, ranges[i].min,
                                ranges[i].meaning, ranges[i].max, ranges[i].value);
    return 0;
}

int weir_loader_config_check(const struct weir_loader_config *c, struct weir_err *err)
{
    if (!c->data || !c->io || !c->decoder)
        return weir_err_set(err, -EINVAL, "data, io and decoder must be given");
    int rc = check_ranges(c, err);
    if (rc < 0)
        return rc;
    if (!c->image_width != !c->image_height)
        return weir_err_set(err, -EINVAL, "image_width and image_height must both be given, or neither");
    int number;
    rc = weir_device_parse(c->device, &number, err);
    if (rc == 0 && number < 0 && (c->format.dtype == WEIR_DTYPE_F16 || c->format.dtype == WEIR_DTYPE_BF16))
        rc = weir_err_set(err, -EINVAL, "f16 and bf16 images are made on a GPU; add --device cuda, or take f32");
    if (rc == 0)
        rc = weir_reading_check(c->io, c->direct, err);
    return rc < 0 ? rc : weir_decoder_check_device(c->decoder, number >= 0, err);
}
