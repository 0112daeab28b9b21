/* views.h: which part of each camera's images goes into a batch, and in what size. */
#ifndef WEIR_PIPELINE_VIEWS_H
#define WEIR_PIPELINE_VIEWS_H

#include "pipeline/probe.h"
#include "weir/loader.h"

/* Fills a view for each camera from config's crop and image size; a camera that is wanted as it is has the whole image.
 * -EINVAL: what cannot be cropped so, by name. */
int weir_views_init(struct weir_view *views, const struct weir_loader_config *config,
                    const struct weir_dataset *dataset, const struct weir_camera_probe *probes, struct weir_err *err);

/* 0 when every item of crop can be read; -EINVAL. */
int weir_crop_check(const char *crop, struct weir_err *err);

/* True when the view is all of the image as it is. */
bool weir_view_is_whole(const struct weir_view *view, const struct weir_camera_probe *probe);

#endif
