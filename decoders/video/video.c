/* The table of video codecs, and what they have in common: timing, the limit on pictures, their size. */
#include "decoders/video/video.h"
#include "decoders/video/video_ops.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_video_ops *const rows[] = {
    &weir_video_av1, &weir_video_h264, &weir_video_hevc, &weir_video_h264_nvdec, &weir_video_hevc_nvdec,
};
enum { ROWS = sizeof rows / sizeof rows[0] };

struct weir_video_decoder {
    void *contexts[ROWS]; /* NULL until first used */
    bool refused[ROWS];   /* opening it has failed */
    int gpu;
};

int weir_video_open(struct weir_video_decoder **out, int gpu)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return -ENOMEM;
    (*out)->gpu = gpu;
    return 0;
}

void weir_video_close(struct weir_video_decoder **decoder)
{
    for (int i = 0; i < ROWS && *decoder; i++)
        if ((*decoder)->contexts[i])
            rows[i]->close((*decoder)->contexts[i]);
    free(*decoder);
    *decoder = NULL;
}

static int decode(const struct weir_video_ops *ops, void *context, struct weir_video_job *job, char *reason)
{
    weir_zone_begin(WEIR_STAGE_VIDEO_DECODE);
    int rc = ops->decode(context, job, reason);
    if (!job->is_over)
        weir_zone_end();
    if (rc == 0 && job->pictures == 0) {
        snprintf(reason, WEIR_REASON_MAX, "the %s stream contains no picture", ops->name);
        return -EBADMSG;
    }
    return rc;
}

static int find_row(enum weir_video_codec codec, bool on_gpu)
{
    for (int row = 0; row < ROWS; row++)
        if (rows[row]->codec == codec && rows[row]->on_gpu == on_gpu)
            return row;
    return -1;
}

static int decode_on(struct weir_video_decoder *decoder, int row, struct weir_video_job *job, char *reason)
{
    int rc = 0;
    snprintf(reason, WEIR_REASON_MAX, "out of memory");
    if (!decoder->contexts[row])
        rc = rows[row]->open(rows[row], &decoder->contexts[row], decoder->gpu, reason);
    return rc < 0 ? rc : decode(rows[row], decoder->contexts[row], job, reason);
}

/* Returns -ENOTSUP without a reason if there is no row for the GPU. */
static int try_gpu(struct weir_video_decoder *decoder, struct weir_video_job *job, char *reason)
{
    int row = decoder->gpu >= 0 ? find_row(job->format->codec, true) : -1;
    reason[0] = '\0';
    if (row < 0 || rows[row]->why_not || decoder->refused[row])
        return -ENOTSUP;
    int rc = decode_on(decoder, row, job, reason);
    decoder->refused[row] = !decoder->contexts[row];
    return rc;
}

static int decode_on_cpu(struct weir_video_decoder *decoder, struct weir_video_job *job, char *reason)
{
    int row = find_row(job->format->codec, false);
    const struct weir_video_ops *ops = rows[row];
    if (ops->why_not) {
        snprintf(reason, WEIR_REASON_MAX,
                 "a video with the codec %s, but this weir was %s; install that library and "
                 "rebuild Weir",
                 ops->name, ops->why_not);
        return -ENOTSUP;
    }
    return decode_on(decoder, row, job, reason);
}

/* The CPU decides about what the GPU cannot decode. If the CPU cannot decode the codec, damage is the GPU's finding. */
int weir_video_decode(struct weir_video_decoder *decoder, const struct weir_video_format *format,
                      const struct weir_packet *packets, int n, weir_picture_fn *fn, void *user,
                      char reason[WEIR_REASON_MAX])
{
    struct weir_video_job job = {.format = format, .packets = packets, .n = n, .fn = fn, .user = user};
    char cpu_reason[WEIR_REASON_MAX];
    int gpu_rc = try_gpu(decoder, &job, reason);
    if (gpu_rc == 0)
        return 0;
    struct weir_video_job again = {.format = format, .packets = packets, .n = n, .fn = fn, .user = user};
    again.skip = job.pictures;
    int rc = decode_on_cpu(decoder, &again, cpu_reason);
    if (rc == -ENOTSUP && gpu_rc == -EBADMSG)
        return gpu_rc;
    snprintf(reason, WEIR_REASON_MAX, "%s", cpu_reason);
    return rc;
}

bool weir_video_row(int i, const char **name, const char **summary, const char **why_not)
{
    if (i < 0 || i >= ROWS)
        return false;
    *name = rows[i]->name;
    *summary = rows[i]->summary;
    *why_not = rows[i]->why_not;
    return true;
}

int weir_video_ready(const char *name, struct weir_err *err)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i]->ready ? rows[i]->ready(rows[i], 0, err) : 0;
    return 0;
}
