/* Describes the videos of a camera: their codec, pixels, rate and groups of pictures. */
#include "base/text.h"
#include "datasets/index.h"
#include "datasets/open_dataset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GROUPS_MAX = 4096 }; /* longer groups count as this long in the median */

/* ---- pixel formats ---- */

static void pixels_text(int chroma, int bits, char text[16])
{
    static const char *const names[] = {"gray", "yuv420p", "yuv422p", "yuv444p"};
    text[0] = '\0';
    if (chroma < 0 || chroma > 3 || bits < 8 || bits > 16)
        return;
    if (bits == 8)
        snprintf(text, 16, "%s", names[chroma]);
    else
        snprintf(text, 16, "%s%dle", names[chroma], bits);
}

/* av1C: its third byte has flags (AV1 Codec ISO Media File Format Binding, 2.3.3). */
static void av1_pixels(const struct weir_video_stream *stream, char text[16])
{
    uint8_t flags = stream->config[2];
    int bits = flags & 0x40 ? (flags & 0x20 ? 12 : 10) : 8;
    bool is_gray = flags & 0x10, half_x = flags & 0x08, half_y = flags & 0x04;
    pixels_text(is_gray ? 0 : !half_x ? 3 : half_y ? 1 : 2, bits, text);
}

/* avcC: profiles before High have 4:2:0 of 8 bits; later ones record the format after the parameter sets (ISO/IEC
 * 14496-15, 5.3.3.1). */
static void h264_pixels(const struct weir_video_stream *stream, char text[16])
{
    const uint8_t *config = stream->config;
    size_t n = stream->config_bytes, at = 5;
    if (config[1] == 66 || config[1] == 77 || config[1] == 88) {
        pixels_text(1, 8, text);
        return;
    }
    for (int kind = 0; kind < 2 && at < n; kind++) { /* sequence, then picture parameter sets */
        int sets = kind ? config[at] : config[at] & 0x1f;
        at++;
        for (int i = 0; i < sets && at + 2 <= n; i++)
            at += 2 + (size_t)(config[at] << 8 | config[at + 1]);
    }
    if (at + 2 <= n)
        pixels_text(config[at] & 3, 8 + (config[at + 1] & 7), text);
    else if (config[1] == 100)
        pixels_text(1, 8, text);
}

/* hvcC: fixed positions (ISO/IEC 14496-15, 8.3.3.1). */
static void hevc_pixels(const struct weir_video_stream *stream, char text[16])
{
    if (stream->config_bytes > 17)
        pixels_text(stream->config[16] & 3, 8 + (stream->config[17] & 7), text);
}

static void find_pixels(const struct weir_video_stream *stream, char text[16])
{
    static void (*const find[])(const struct weir_video_stream *, char *) = {
        [WEIR_VIDEO_AV1] = av1_pixels, [WEIR_VIDEO_H264] = h264_pixels, [WEIR_VIDEO_HEVC] = hevc_pixels};
    text[0] = '\0';
    if (stream->config_bytes >= 4)
        find[stream->codec](stream, text);
}

static const char *codec_title(enum weir_video_codec codec)
{
    static const char *const titles[] = {
        [WEIR_VIDEO_AV1] = "AV1", [WEIR_VIDEO_H264] = "H.264", [WEIR_VIDEO_HEVC] = "HEVC"};
    return titles[codec];
}

/* ---- rate and groups ---- */

static double rate_of(const struct weir_video_track *track)
{
    uint32_t n = weir_video_track_frames(track);
    int64_t time = weir_video_track_time(track, n - 1) - weir_video_track_time(track, 0);
    return n > 1 && time > 0 ? (double)(n - 1) * weir_video_track_timescale(track) / (double)time : 0;
}

static void count_groups(const struct weir_video_track *track, uint64_t counts[GROUPS_MAX + 1])
{
    uint32_t n = weir_video_track_blocks(track);
    for (uint32_t block = 0; block < n; block++) {
        uint32_t next = weir_video_track_block_first(track, block + 1);
        uint32_t length = next - weir_video_track_block_first(track, block);
        counts[length < GROUPS_MAX ? length : GROUPS_MAX]++;
    }
}

/* Returns the number of pictures to decode for each picture of the video on its own, in total. */
static uint64_t count_decoded(const struct weir_video_track *track)
{
    uint32_t n = weir_video_track_blocks(track);
    uint64_t decoded = 0;
    for (uint32_t block = 0; block < n; block++) {
        uint32_t next = weir_video_track_block_first(track, block + 1);
        uint32_t sync = weir_video_track_block_sync(track, block);
        for (uint32_t rank = weir_video_track_block_first(track, block); rank < next; rank++) {
            uint32_t sample = weir_video_track_at_rank(track, rank);
            decoded += sample < sync ? 1 : sample - sync + 1;
        }
    }
    return decoded;
}

static uint32_t median(const uint64_t counts[GROUPS_MAX + 1])
{
    uint64_t all = 0, before = 0;
    uint32_t length = 0;
    for (int i = 0; i <= GROUPS_MAX; i++)
        all += counts[i];
    while (length < GROUPS_MAX && (before += counts[length]) * 2 < all)
        length++;
    return length;
}

bool weir_dataset_video_facts(const struct weir_dataset *dataset, int camera, struct weir_video_facts *facts)
{
    uint64_t counts[GROUPS_MAX + 1] = {0};
    const struct weir_video_track *last = NULL;
    uint64_t pictures = 0, decoded = 0;
    *facts = (struct weir_video_facts){0};
    for (int e = 0; e < weir_dataset_episodes(dataset); e++) {
        int file;
        const struct weir_video_track *track = weir_dataset_video(dataset, e, camera, &file);
        if (!track || track == last)
            continue;
        if (!last) {
            facts->stream = weir_video_track_stream(track);
            facts->codec = codec_title(facts->stream->codec);
            facts->fps = rate_of(track);
            find_pixels(facts->stream, facts->pixels);
        }
        uint32_t most = weir_video_track_block_max(track);
        facts->group_max = most > facts->group_max ? most : facts->group_max;
        facts->videos++;
        count_groups(track, counts);
        pictures += weir_video_track_frames(track);
        decoded += count_decoded(track);
        last = track;
    }
    facts->group_median = median(counts);
    facts->random_pictures = pictures > 0 ? (double)decoded / (double)pictures : 0;
    return last != NULL;
}

/* Writes what is wrong in n episodes, of which `rows` rows are. */
static void drift_text(char *text, size_t size, int n, int rows, float frames, bool overlap)
{
    const char *many = n == 1 ? "" : "s";
    if (rows > 0)
        snprintf(text, size,
                 "%d row%s of %d episode%s drift from their pictures by up to %.2g frames, more than LeRobot's "
                 "tolerance, so they can get those of other rows",
                 rows, rows == 1 ? "" : "s", n, many, (double)frames);
    else if (overlap)
        snprintf(text, size,
                 "%d episode%s begin%s in a video before another episode ends there, so rows get pictures "
                 "of other episodes",
                 n, many, n == 1 ? "s" : "");
    else
        snprintf(text, size, "the rows of %d episode%s are not one frame apart by the dataset's fps", n, many);
}

bool weir_dataset_drift(const struct weir_dataset *dataset, char *text, size_t size)
{
    enum { DRIFT, RATE, OVERLAP, KINDS };
    int n[KINDS] = {0}, first[KINDS] = {0}, rows = 0, kind = 0;
    float most = 0;
    for (int e = dataset->n_episodes - 1; e >= 0; e--) {
        const struct weir_episode *episode = &dataset->episodes[e];
        const bool is[KINDS] = {episode->drift_rows > 0, episode->is_rate_wrong, episode->is_overlapping};
        for (int k = 0; k < KINDS; k++) {
            n[k] += is[k];
            first[k] = is[k] ? e : first[k];
        }
        rows += episode->drift_rows;
        most = fmaxf(most, episode->drift_frames);
    }
    while (kind < KINDS && n[kind] == 0)
        kind++;
    if (kind == KINDS)
        return false;
    drift_text(text, size, n[kind], rows, most, kind == OVERLAP);
    size_t used = strlen(text);
    snprintf(text + used, size - used, "; the first is %s: %s; `weir verify` names the rows",
             weir_dataset_episode_path(dataset, first[kind]), weir_dataset_episode_group(dataset, first[kind]));
    weir_text_printable(text);
    return true;
}
