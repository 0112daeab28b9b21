#include "pipeline/config.h"
#include "io/ahead.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/read_ahead.h"

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

int weir_loader_config_check(const struct weir_loader_config *c, struct weir_err *err)
{
    if (!c->data || !c->io || !c->decoder)
        return weir_err_set(err, -EINVAL, "data, io and decoder must be given");
    if (c->num_workers < WEIR_WORKERS_AUTO || c->num_workers > WEIR_WORKERS_MAX)
        return weir_err_set(err, -EINVAL, "num_workers is auto or 0..%d", WEIR_WORKERS_MAX);
    if (c->prefetch < 0 || c->prefetch > PREFETCH_MAX)
        return weir_err_set(err, -EINVAL, "prefetch is auto or 1..%d", PREFETCH_MAX);
    if (c->batch_size < 1 || c->batch_size > 65536)
        return weir_err_set(err, -EINVAL, "batch_size is 1..65536");
    if (c->obs_history < 1 || c->obs_history > 1024 || c->chunk_size < 1 || c->chunk_size > 65536)
        return weir_err_set(err, -EINVAL, "obs_history is 1..1024, chunk_size 1..65536");
    if (c->local_rank < 0 || c->local_size < 0 || c->local_rank >= (c->local_size ? c->local_size : 1))
        return weir_err_set(err, -EINVAL, "local_rank is 0..local_size - 1");
    if (c->image_width < 0 || c->image_width > WEIR_IMAGE_SIDE_MAX || c->image_height < 0 ||
        c->image_height > WEIR_IMAGE_SIDE_MAX || !c->image_width != !c->image_height)
        return weir_err_set(err, -EINVAL, "image_width and image_height are 1..%d, or both 0", WEIR_IMAGE_SIDE_MAX);
    if (c->io_depth < 0 || c->io_depth > WEIR_IO_DEPTH_MAX)
        return weir_err_set(err, -EINVAL, "io_depth is auto or 1..%d", WEIR_IO_DEPTH_MAX);
    int number, rc = weir_device_parse(c->device, &number, err);
    if (rc == 0 && number < 0 && (c->format.dtype == WEIR_DTYPE_F16 || c->format.dtype == WEIR_DTYPE_BF16))
        rc = weir_err_set(err, -EINVAL, "f16 and bf16 images are made on a GPU; add --device cuda, or take f32");
    if (rc == 0)
        rc = weir_reading_check(c->io, c->direct, err);
    return rc < 0 ? rc : weir_decoder_check_device(c->decoder, number >= 0, err);
}
