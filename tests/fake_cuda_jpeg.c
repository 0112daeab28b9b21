/* The stand-in's JPEG engines: libjpeg's samples before upsampling, on the stream's thread. As nvJPEG they refuse a
 * group as a whole for a header they do not take, and say nothing of damage behind it. WEIR_FAKE_JPEG, words with
 * commas between them, says what they are like:
 *
 *   engines=N        7
 *   decoders=N       as many can be opened, in the whole process; 1000
 *   working=N        as many of them, the first ones, find memory for a group; 1000
 *   frame_ns=N       what decoding a frame takes at least, 0
 *   noise=N          every sample of Y is N levels off, up and down in turns
 *   refuse_width=N   JPEGs of this width are refused, whatever they are
 *   fail=io:K        group K (from 1, over all decoders) faults
 *   fail=memory:K    group K finds no memory */
#include "decoders/gpu_jpeg_ops.h"
#include "tests/fake_cuda.h"
#include "tests/jpeg_planes.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    uint64_t engines, decoders, working, frame_ns, noise, refuse_width, io_at, memory_at;
} settings = {.engines = 7, .decoders = 1000, .working = 1000};

static _Atomic uint64_t groups, decoders;

static void take_word(const char *word)
{
    static const struct {
        const char *name;
        uint64_t *value;
    } words[] = {{"engines=", &settings.engines}, {"decoders=", &settings.decoders},
                 {"working=", &settings.working}, {"frame_ns=", &settings.frame_ns},
                 {"noise=", &settings.noise},     {"refuse_width=", &settings.refuse_width},
                 {"fail=io:", &settings.io_at},   {"fail=memory:", &settings.memory_at}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].name);
        if (strncmp(word, words[i].name, length) == 0) {
            *words[i].value = strtoull(word + length, NULL, 10);
            return;
        }
    }
    fake_die("WEIR_FAKE_JPEG: '%s' is not known", word);
}

static void read_settings(void)
{
    const char *given = getenv("WEIR_FAKE_JPEG");
    char text[256], *rest = text;
    snprintf(text, sizeof text, "%s", given ? given : "");
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        take_word(word);
}

static int check_gpu(int gpu, struct weir_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_settings);
    if (gpu < 0 || gpu >= fake_config()->gpus)
        return weir_err_set(err, -ENODEV, "GPU %d: there are %d (stand-in)", gpu, fake_config()->gpus);
    return fake_check_lost(err);
}

static int engines(int gpu, struct weir_err *err)
{
    int rc = check_gpu(gpu, err);
    return rc < 0 ? rc : (int)settings.engines;
}

/* ---- a decoder ---- */

struct decoder {
    struct weir_gpu gpu;
    enum weir_gpu_jpeg_engine engine;
    int group_max;
    uint64_t number; /* of all that were opened, from 0 */
    void *done;
};

static int open_decoder(void **out, int gpu, enum weir_gpu_jpeg_engine engine, int group_max, struct weir_err *err)
{
    *out = NULL;
    int n = engines(gpu, err);
    if (n < 0)
        return n;
    if (n == 0 && engine == WEIR_GPU_JPEG_HARDWARE)
        return weir_err_set(err, -ENODEV, "GPU %d has no JPEG engines (stand-in)", gpu);
    uint64_t number = atomic_fetch_add(&decoders, 1);
    if (number >= settings.decoders)
        return weir_err_set(err, -ENOMEM, "GPU %d: no memory for a decoder: as WEIR_FAKE_JPEG says", gpu);
    struct decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return weir_err_set(err, -ENOMEM, "out of memory");
    *decoder = (struct decoder){.gpu = {gpu}, .engine = engine, .group_max = group_max, .number = number};
    int rc = fake_event_new(&decoder->gpu, false, &decoder->done, err);
    if (rc < 0) {
        free(decoder);
        return rc;
    }
    *out = decoder;
    return 0;
}

static void close_decoder(void *self)
{
    struct decoder *decoder = self;
    if (fake_wait(&decoder->gpu, decoder->done, NULL) < 0)
        fake_drain(&decoder->gpu);
    fake_event_free(&decoder->gpu, decoder->done);
    free(decoder);
}

/* ---- a frame, on the stream's thread ---- */

static void add_noise(uint8_t *row, int width, int y)
{
    int noise = (int)settings.noise;
    for (int x = 0; x < width; x++) {
        int value = row[x] + ((x + y) % 2 ? noise : -noise);
        row[x] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

static void put_plane(const struct weir_gpu_jpeg_frame *frame, const struct jpeg_planes *planes,
                      const struct weir_jpeg_header *header, int c)
{
    int width, height;
    weir_gpu_jpeg_plane(header, c, &width, &height);
    if (frame->pitch[c] < (size_t)width)
        fake_die("decode: rows of %d samples have a pitch of %zu", width, frame->pitch[c]);
    size_t bytes = frame->pitch[c] * (size_t)(height - 1) + (size_t)width;
    uint8_t *to = fake_memory(frame->plane[c], bytes, "decode's plane");
    for (int y = 0; y < height; y++) {
        uint8_t *row = to + (size_t)y * frame->pitch[c];
        if (planes->plane[c])
            memcpy(row, planes->plane[c] + (size_t)y * (size_t)planes->plane_width[c], (size_t)width);
        else
            memset(row, 128, (size_t)width); /* damage: grey, and nothing is said */
        if (c == 0 && settings.noise)
            add_noise(row, width, y);
    }
}

static void run_frame(void *user)
{
    const struct weir_gpu_jpeg_frame *frame = user;
    int64_t start_ns = fake_now_ns();
    struct weir_jpeg_header header;
    struct jpeg_planes planes;
    if (weir_jpeg_header_read(&header, frame->bytes, frame->length) != WEIR_JPEG_TAKEN)
        fake_die("decode: a JPEG changed between decode and decoding");
    jpeg_planes_read(&planes, frame->bytes, frame->length);
    for (int c = 0; c < weir_gpu_jpeg_planes(&header); c++)
        put_plane(frame, &planes, &header, c);
    jpeg_planes_free(&planes);
    if (settings.frame_ns)
        fake_sleep_until(start_ns + (int64_t)settings.frame_ns);
}

/* ---- a group ---- */

static bool takes(const struct decoder *decoder, const struct weir_gpu_jpeg_frame *frame)
{
    struct weir_jpeg_header header;
    if (weir_jpeg_header_read(&header, frame->bytes, frame->length) != WEIR_JPEG_TAKEN)
        return false;
    if ((header.process == WEIR_JPEG_PROGRESSIVE) != frame->progressive)
        return false; /* batched decoding does not take progressive ones, and they must be told */
    return weir_gpu_jpeg_takes(&header, decoder->engine) == WEIR_JPEG_TAKEN &&
           (uint64_t)header.width != settings.refuse_width;
}

static int queue_frame(const struct weir_gpu_jpeg_frame *frame, void *stream, struct weir_err *err)
{
    struct weir_gpu_jpeg_frame *copy = malloc(sizeof *copy);
    if (!copy)
        fake_die("the host has no memory left");
    *copy = *frame;
    struct fake_operation operation = {"decode", run_frame, copy, frame->bytes, frame->length};
    int rc = fake_queue(stream, &operation, err);
    if (rc < 0)
        free(copy);
    return rc;
}

static int decode(void *self, const struct weir_gpu_jpeg_frame *frames, int n, void *stream, struct weir_err *err)
{
    struct decoder *decoder = self;
    if (n < 1 || n > decoder->group_max)
        fake_die("decode: a group of %d, the decoder was opened for %d", n, decoder->group_max);
    int rc = fake_wait(&decoder->gpu, decoder->done, err);
    if (rc < 0)
        return rc;
    uint64_t group = atomic_fetch_add(&groups, 1) + 1;
    if (group == settings.io_at)
        return weir_err_set(err, -EIO, "GPU %d: decoding faulted: as WEIR_FAKE_JPEG says", decoder->gpu.number);
    if (group == settings.memory_at || decoder->number >= settings.working)
        return weir_err_set(err, -ENOMEM, "GPU %d: no memory for decoding: as WEIR_FAKE_JPEG says",
                            decoder->gpu.number);
    for (int i = 0; i < n; i++)
        if (!takes(decoder, &frames[i]))
            return -EBADMSG;
    for (int i = 0; i < n && rc == 0; i++)
        rc = queue_frame(&frames[i], stream, err);
    return rc < 0 ? rc : fake_record(&decoder->gpu, decoder->done, stream, err);
}

static void library(char *text, size_t size)
{
    snprintf(text, size, "libjpeg as a stand-in");
}

const struct weir_gpu_jpeg_ops weir_gpu_jpeg_fake = {
    .engines = engines,
    .open = open_decoder,
    .close = close_decoder,
    .decode = decode,
    .library = library,
};
