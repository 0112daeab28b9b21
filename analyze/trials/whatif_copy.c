/* Makes copies of a sample of DATA in other formats, in a temporary folder. */
#include "analyze/trials/child.h"
#include "analyze/trials/whatif_priv.h"
#include "base/text.h"
#include "pipeline/loader_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Max size of a copy's decoded frames, and time limit for making it. */
static const double SAMPLE_BYTES = 256 << 20, PATIENCE_S = 15;
static const double DISK_PART = 0.9; /* fraction of the free disk space; the rest is for tables and other programs */

static int make_folder(struct whatif *w, char *why, size_t size)
{
    struct weir_err err = WEIR_ERR_NONE;
    int rc = w->folder ? 0 : weir_copy_folder_make(&w->folder, "whatif", w->config->interrupted, &err);
    if (rc < 0)
        snprintf(why, size, "%s", err.text);
    return rc;
}

static void say_copy(const struct whatif *w, const struct weir_copy_spec *spec)
{
    char text[4352];
    snprintf(text, sizeof text, "copying a sample to %s:%s in %s%s, removed at the end", spec->format, spec->codec,
             w->folder, weir_copy_in_memory(w->folder) ? " (in memory)" : "");
    if (w->config->progress)
        w->config->progress(whatif_seconds(w), text);
}

/* Returns a number of episodes that makes a small copy but is enough for a measurement; 0 = all. */
static int sample_of(const struct whatif *w)
{
    double episodes = w->config->source.episodes, raw = (double)w->config->source.raw_bytes;
    return raw > SAMPLE_BYTES ? (int)fmax(floor(episodes * SAMPLE_BYTES / raw), 1) : 0;
}

static int convert(struct whatif *w, const char *path, const struct weir_copy_spec *spec, struct weir_err *err)
{
    char sample[16];
    const char *const begin[] = {
        "weir",  "convert",    w->config->data, path,
        "--to",  spec->format, "--codec",       weir_copy_codec_option(spec, w->config->source.codec),
        "--json"};
    struct weir_loader_config data = w->config->run.loader;
    struct weir_words words = {0};
    data.index = NULL;
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
        weir_words_add(&words, begin[i]);
    weir_words_add_options(&words, weir_loader_opts, WEIR_FOR_DATA, &data);
    snprintf(sample, sizeof sample, "%d", sample_of(w));
    if (sample_of(w) > 0)
        weir_words_add_option(&words, "sample", sample);
    if (words.failed)
        return weir_err_set(err, -ENOMEM, "out of memory");
    struct weir_child child = {0};
    const struct weir_child_config config = {.program = w->config->program,
                                             .argv = words.argv,
                                             .seconds = fmin(PATIENCE_S, fmax(whatif_seconds_left(w) / 4, 1)),
                                             .interrupted = w->config->interrupted};
    int rc = weir_child_run(&child, &config, err);
    weir_child_free(&child);
    weir_words_free(&words);
    return rc;
}

/* Returns false, with the reason in why, if the disk may have too little space for the copy. */
static bool is_room_for(const struct whatif *w, const struct weir_copy_spec *spec, char *why, size_t size)
{
    double free_bytes = (double)weir_copy_free_bytes(w->folder),
           bytes = (double)weir_copy_bytes(&w->config->source, spec, sample_of(w));
    if (free_bytes <= 0 || bytes <= DISK_PART * free_bytes)
        return true;
    snprintf(why, size, "a copy takes up to %s, but %s has only %s free; set TMPDIR to another folder",
             weir_size(bytes).text, w->folder, weir_size(free_bytes).text);
    return false;
}

int whatif_copy(struct whatif *w, const struct weir_copy_spec *spec, const char *suffix, const char **path, char *why,
                size_t size)
{
    struct weir_err err = WEIR_ERR_NONE;
    char *to = NULL;
    *path = NULL;
    if (w->n_copies == WHATIF_COPIES || make_folder(w, why, size) < 0 || !is_room_for(w, spec, why, size))
        return 0;
    if (asprintf(&to, "%s/%s-%s%s", w->folder, spec->format, spec->codec, suffix) < 0) {
        snprintf(why, size, "out of memory");
        return 0;
    }
    say_copy(w, spec);
    int rc = convert(w, to, spec, &err);
    if (rc < 0) {
        snprintf(why, size, "a copy could not be made: %s", whatif_error_of(err.text));
        free(to);
        return rc == -EINTR ? rc : 0;
    }
    *path = w->copies[w->n_copies++] = to;
    return 0;
}

void whatif_remove_copies(struct whatif *w)
{
    weir_copy_folder_remove(&w->folder, w->config->interrupted);
    while (w->n_copies > 0)
        free(w->copies[--w->n_copies]);
}
