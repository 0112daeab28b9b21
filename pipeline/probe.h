/* probe.h: what the frames of a camera look like, from its first readable frame. */
#ifndef WEIR_PIPELINE_PROBE_H
#define WEIR_PIPELINE_PROBE_H

#include "weir/dataset.h"
#include "weir/decoder.h"

struct weir_camera_probe {
    int width, height;
    enum weir_frame_kind kind;
    struct weir_image_info image; /* of cameras that are not raw */
    int episode, t;               /* the frame looked at */
};

/* Returns the kind by the header of the frame looked at (WEIR_FRAME_PNG for depth, too); without one, the camera's. */
enum weir_frame_kind weir_probe_kind(const struct weir_camera_probe *probe);

/* Looks at every camera: probes (one per camera) are filled. tolerant: bad frames at the start are passed over, up to
 * 256 per camera. */
int weir_probe_cameras(struct weir_dataset *dataset, bool tolerant, struct weir_camera_probe *probes,
                       struct weir_err *err);

/* The same for one camera, always tolerant. When no frame can be read its width is 0, and 0 is returned; negative: the
 * machine lacks something (base/shortage.h), or there is no decoder for its frames. */
int weir_probe_camera(struct weir_dataset *dataset, int camera, struct weir_camera_probe *probe, struct weir_err *err);

/* 1 when a camera's images have other sizes in some files than in others, by the first frame of each that can be read;
 * 0 when not; negative when the machine lacks something (base/shortage.h). */
int weir_probe_sizes_differ(struct weir_dataset *dataset, struct weir_err *err);

/* Puts in front of an error about memory whose frame it is that all others have the size of, when that is one of more
 * than 4096 x 4096 pixels. */
void weir_probe_blame(const struct weir_dataset *dataset, const struct weir_camera_probe *probes, struct weir_err *err);

/* Seconds that one thread takes to fetch a frame of the camera: the median over n frames spread over the dataset, each
 * alone. 0 when none can be had. Returns 0, or negative with err when the machine lacks something (base/shortage.h). */
int weir_probe_fetch_s(struct weir_dataset *dataset, int camera, int n, double *fetch_s, struct weir_err *err);

#endif
