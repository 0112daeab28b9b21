/* views.h: crop and size of each camera's images in a batch. */
#ifndef WEIR_PIPELINE_SAMPLES_VIEWS_H
#define WEIR_PIPELINE_SAMPLES_VIEWS_H

#include "pipeline/samples/probe.h"
#include "weir/loader.h"

/* Fills in one view per camera from config's crop and image size. Without them, a view is the whole image. Returns
 * -EINVAL, with err naming the crop and the camera, if a crop does not fit. */
int weir_views_init(struct weir_view *views, const struct weir_loader_config *config,
                    const struct weir_dataset *dataset, const struct weir_camera_probe *probes, struct weir_err *err);

/* Returns 0 if every item of crop is well-formed, or -EINVAL. */
int weir_crop_check(const char *crop, struct weir_err *err);

/* Returns whether the view is the whole image at its own size. */
bool weir_view_is_whole(const struct weir_view *view, const struct weir_camera_probe *probe);

#endif
