#include "cli/tune/tune_session.h"

#include "analyze/trials/copies.h"
#include "analyze/trials/measured_run.h"
#include "base/ranks.h"
#include "base/resources.h"
#include "cli/outputs.h"
#include "io/io.h"
#include "pipeline/gpu/gpu.h"
#include "weir/base.h"
#include "weir/decoder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

enum { BATCHES = 10, PREFETCH_MAX = 16, PATIENCE_S = 120 };
static const double SECONDS_MAX = 10;       /* of a turn, however few its batches */
static const double WORKER_BYTES = 4 << 20; /* a thread's stacks and buffers, beside its frame */

/* ---- one turn ---- */

static int number_of(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return i;
    return WEIR_TUNE_AUTO;
}

static void fill(struct weir_tune_figures *figures, const struct weir_tune_space *space,
                 const struct weir_measured_run *run)
{
    const struct weir_report_setup *setup = &weir_measured_report(run)->setup;
    double frame = weir_setup_image_bytes(setup);
    figures->turn = run->turn;
    weir_demands_make(&figures->demands, weir_measured_report(run));
    figures->engine = number_of(space->engines, space->n_engines, run->turn.used.io);
    figures->decoder = number_of(space->decoders, space->n_decoders, run->turn.used.decoder);
    figures->slot_bytes = frame * setup->batch_size * setup->images_per_sample;
    figures->worker_bytes = WORKER_BYTES + 3.0 * setup->width * setup->height;
    figures->frames_bytes = (double)setup->frames_bytes;
    figures->epoch_images = frame > 0 ? (double)setup->frames_bytes / frame : 0;
}

static void log_turn(const struct tune_session *s, const struct weir_tune_setting *setting,
                     const struct weir_turn *turn, const char *why)
{
    struct weir_json json;
    char text[192];
    if (!s->log)
        return;
    weir_tune_describe(&s->tune.space, setting, text, sizeof text);
    weir_json_open(&json, s->log, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "turn");
    weir_json_text(&json, "setting", text);
    weir_json_int(&json, "num_workers", setting->workers);
    weir_json_int(&json, "prefetch", setting->prefetch);
    weir_json_text(&json, "io", turn->used.io);
    weir_json_int(&json, "round", s->tune.rounds);
    weir_json_double(&json, "seconds", turn->measured.seconds);
    weir_json_double(&json, "images_per_s", turn->measured.images_per_s);
    weir_json_double(&json, "cpu_s", turn->cpu_s);
    weir_json_double(&json, "peak_rss_bytes", turn->measured.peak_bytes);
    weir_json_text(&json, "error", why);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fflush(s->log);
}

/* A turn with few batches says little: those that follow are longer. */
static void lengthen(struct tune_session *s, const struct weir_loader_report *report)
{
    double batches = (double)(report->steps.train_batches + report->steps.val_batches);
    if (s->tune.turns > 0 || batches >= BATCHES || batches <= 0)
        return;
    s->seconds = fmin(fmax(s->seconds, report->wall_s) * BATCHES / batches, fmax(SECONDS_MAX, s->seconds));
    fprintf(s->out, "turns take %.1f s: %.0f batches were all in the first\n", s->seconds, batches);
}

static int measure(void *user, const struct weir_tune_setting *setting, struct weir_tune_figures *figures,
                   struct weir_err *err)
{
    struct tune_session *s = user;
    static struct weir_measured_run run; /* large */
    static struct tune_pairs pairs;      /* args point into it */
    static char names[TUNE_PAIRS][48];
    const char *args[2 * TUNE_PAIRS + 2];
    int n = 0;
    if (weir_clock_monotonic_ns() >= s->end_ns)
        return -ETIME;
    tune_pairs_make(&pairs, s->options, &s->tune.space, setting);
    args[n++] = s->data;
    for (int i = 0; i < pairs.n; i++) {
        snprintf(names[i], sizeof names[i], "--%s", pairs.pairs[i].name);
        args[n++] = names[i];
        if (pairs.pairs[i].value)
            args[n++] = pairs.pairs[i].value;
    }
    args[n] = NULL;
    const struct weir_measured_run_config config = {
        .args = args, .seconds = s->seconds, .patience_s = PATIENCE_S + 20 * s->seconds, .interrupted = s->interrupted};
    int rc = weir_measured_run(&run, &config, err);
    if (*s->interrupted)
        rc = -EINTR;
    if (rc == 0) {
        fill(figures, &s->tune.space, &run);
        lengthen(s, weir_measured_report(&run));
    }
    if (rc != -EINTR)
        log_turn(s, setting, &run.turn, rc < 0 ? err->text : NULL);
    weir_measured_run_clear(&run);
    return rc;
}

static void say(void *user, const char *line)
{
    struct tune_session *s = user;
    fprintf(s->out, "%3d  %s\n", s->n_lines + 1, line);
    fflush(s->out);
    if (s->n_lines < TUNE_LINES && (s->lines[s->n_lines] = strdup(line)))
        s->n_lines++;
}

/* ---- what may be tried ---- */

static void list_engines(struct weir_tune_space *space, bool direct)
{
    const char *name, *summary, *why_not;
    for (int i = 0; weir_io_row(i, &name, &summary, &why_not) && space->n_engines < WEIR_TUNE_NAMES; i++) {
        if (why_not || weir_io_from_memory(name) || (direct && weir_io_check_direct(name, NULL) < 0))
            continue;
        space->maps[space->n_engines] = weir_io_maps(name);
        space->deep[space->n_engines] = weir_io_has_depth(name);
        space->engines[space->n_engines++] = name;
    }
}

/* On the CPU there is nothing to choose. */
static void list_decoders(struct weir_tune_space *space)
{
    static const enum weir_decode_where places[] = {WEIR_DECODE_ON_CPU, WEIR_DECODE_ON_GPU, WEIR_DECODE_ON_BOTH};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *name = weir_decoder_at(places[i]);
        if (weir_decoder_check_device(name, true, NULL) == 0)
            space->decoders[space->n_decoders++] = name;
    }
}

static int usable_cores(const struct tune_options *o, struct weir_err *err)
{
    struct weir_ranks ranks;
    struct weir_cores cores;
    int rc = weir_ranks_find(&ranks, o->run.loader.rank, o->run.loader.world_size, err);
    weir_cores_read(&cores, "");
    return rc < 0 ? rc : weir_cores_part(&cores, ranks.local_size, ranks.local_cores);
}

static int look_at_files(struct tune_session *s, const struct weir_command *command, struct weir_err *err)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = s->data};
    struct weir_dataset *dataset;
    struct weir_path_list files = {0};
    uint64_t bytes = 0;
    weir_loader_options_dataset(&s->options->run.loader, &config);
    int rc = weir_dataset_open(&dataset, &config, err);
    if (rc == 0)
        rc = weir_copy_source_files(dataset, &files, &bytes, err);
    s->tune.space.file_bytes = (double)bytes;
    s->cached = -1;
    if (rc == 0)
        rc = weir_outputs_spare(command, s->options, dataset, err);
    if (rc == 0 && !s->options->run.loader.direct)
        rc = weir_copy_warm(&files, &s->cached, err);
    weir_path_list_free(&files);
    weir_dataset_close(&dataset);
    return rc;
}

int tune_session_open(struct tune_session *s, const struct weir_command *command, struct weir_err *err)
{
    const struct tune_options *o = s->options;
    struct weir_tune_space *space = &s->tune.space;
    int device, rc = weir_device_parse(o->run.loader.device, &device, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device");
        return rc;
    }
    s->cores = usable_cores(o, err);
    if (s->cores < 0)
        return s->cores;
    rc = look_at_files(s, command, err);
    if (rc < 0)
        return rc;
    int most = MIN(s->cores + (s->cores + 1) / 2, 512);
    space->cores = o->max_cpu > 0 ? MIN(s->cores, o->max_cpu) : s->cores;
    space->workers_max = o->max_cpu > 0 ? MIN(most, o->max_cpu) : most;
    space->prefetch_max = PREFETCH_MAX;
    space->memory_max = (double)o->max_memory;
    space->cpu_max = o->max_cpu;
    space->cache_max =
        o->max_cache == WEIR_OPT_BYTES_AUTO ? 0.5 * (double)weir_memory_available_bytes() : (double)o->max_cache;
    list_engines(space, o->run.loader.direct);
    if (device >= 0)
        list_decoders(space);
    s->seconds = o->min_seconds;
    s->tune.measure = measure;
    s->tune.say = say;
    s->tune.user = s;
    return 0;
}

void tune_session_close(struct tune_session *s)
{
    weir_tune_free(&s->tune);
    for (int i = 0; i < s->n_lines; i++)
        free(s->lines[i]);
    s->n_lines = 0;
}
