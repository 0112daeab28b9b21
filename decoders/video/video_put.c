/* What happens to each decoded picture. */
#include "decoders/video/video_ops.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>

static int check_size(struct weir_video_job *job, const struct weir_picture *picture, char *reason)
{
    if (job->pictures == 0) {
        job->width = picture->width;
        job->height = picture->height;
    }
    if (picture->width == job->width && picture->height == job->height)
        return 0;
    snprintf(reason, WEIR_REASON_MAX, "the size of the video's pictures changes from %dx%d to %dx%d", job->width,
             job->height, picture->width, picture->height);
    return -EBADMSG;
}

int weir_video_put(struct weir_video_job *job, int64_t pts, const struct weir_picture *picture, char *reason)
{
    int rc = check_size(job, picture, reason);
    if (rc < 0)
        return rc;
    if (job->pictures++ < job->skip)
        return 0;
    weir_zone_end();
    /* Each packet contains at most one visible picture. */
    job->is_over = job->fn(job->user, pts, picture) != 0 || job->pictures == job->n;
    if (!job->is_over)
        weir_zone_begin(WEIR_STAGE_VIDEO_DECODE);
    return job->is_over;
}
