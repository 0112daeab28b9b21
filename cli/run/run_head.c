#include "analyze/ranks/rank_record.h"
#include "base/field_rows.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/run/run_session.h"
#include "cli/sysinfo.h"
#include "datasets/hdf5/h5_read.h"
#include "io/io.h"
#include "prof/report/machine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Prints why --device cuda chose this GPU, if there are several local ranks. */
static void print_why(FILE *out, const struct weir_loader_facts *facts, const struct weir_ranks *ranks)
{
    if (facts->gpus == 1)
        fprintf(out, " (the only GPU visible to local rank %d)", ranks->local_rank);
    else if (facts->gpus > 0 && facts->gpus < ranks->local_size)
        fprintf(out, " (for local rank %d; %d local ranks share %d GPUs)", ranks->local_rank, ranks->local_size,
                facts->gpus);
    else if (facts->gpus > 0)
        fprintf(out, " (local rank %d of %d)", ranks->local_rank, ranks->local_size);
}

static void print_device(FILE *out, const struct weir_loader_facts *facts, const struct weir_ranks *ranks,
                         bool sync_steps)
{
    fprintf(out, "device: GPU %d", facts->device);
    print_why(out, facts, ranks);
    fprintf(out, ", %s; %s of GPU memory, %s of pinned host memory%s\n", facts->gpu,
            weir_size((double)facts->gpu_bytes).text, weir_size((double)facts->slots * (double)facts->slot_bytes).text,
            sync_steps ? "; each step finishes before the next" : "");
}

/* Names the files of this rank, which are not called as the options say. */
static void print_files(FILE *out, const struct run_options *o)
{
    const char *const paths[] = {o->log && strcmp(o->log, "-") != 0 ? o->log : NULL, o->checksums, o->state};
    const char *before = "; its files: ";
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char shown[PATH_MAX];
        if (!paths[i])
            continue;
        snprintf(shown, sizeof shown, "%s", paths[i]);
        weir_text_printable(shown);
        fprintf(out, "%s%s", before, shown);
        before = ", ";
    }
}

static void print_place(FILE *out, const struct weir_loader_facts *facts, const struct weir_ranks *ranks,
                        const struct run_options *o)
{
    if (facts->device >= 0)
        print_device(out, facts, ranks, o->sync_steps);
    if (ranks->world_size > 1 || ranks->source) {
        fprintf(out, "rank %d of %d%s%s", ranks->rank, ranks->world_size, ranks->source ? ", from " : "",
                ranks->source ? ranks->source : "");
        if (ranks->world_size > 1)
            print_files(out, o);
        fputc('\n', out);
    }
    if (ranks->local_size > 1)
        fprintf(out, "local rank %d of %d, with %d core%s\n", ranks->local_rank, ranks->local_size, facts->cores,
                facts->cores == 1 ? "" : "s");
}

void weir_run_head_machine(struct weir_report_machine *machine, const struct weir_loader *loader)
{
    struct weir_loader_facts facts;
    weir_loader_facts(loader, &facts);
    machine->part = facts.cores;
    weir_report_machine_print(stderr, machine);
}

static void print_camera(FILE *out, const char *name, const struct weir_loader_facts *facts, int c)
{
    const struct weir_view *view = &facts->views[c];
    fprintf(out, "%s %s %dx%d", c ? "," : "", name, view->out_width, view->out_height);
    if (!facts->whole[c])
        fprintf(out, " (of %dx%d+%d+%d)", view->width, view->height, view->x, view->y);
}

static void print_reading(FILE *out, const struct weir_loader_facts *facts, const struct run_options *o)
{
    fprintf(out, "reads: %s%s", facts->io_used, o->loader.direct ? ", direct" : "");
    if (strcmp(facts->io_requested, facts->io_used) != 0)
        fprintf(out, " (%s: %s)", facts->io_requested, facts->io_why);
    bool is_measured = weir_io_is_remote(facts->io_used) && o->loader.io_depth == 0;
    if (facts->io_depth > 0 && is_measured)
        fprintf(out, "; requests in flight chosen by measurement, at most %d", facts->io_depth);
    else if (facts->io_depth > 0)
        fprintf(out, "; up to %d reads ahead of the workers", facts->io_depth);
    if (facts->io_pool_bytes > 0 && !is_measured)
        fprintf(out, " in %s", weir_size((double)facts->io_pool_bytes).text);
    if (*facts->io_features)
        fprintf(out, ", %s", facts->io_features);
    if (facts->io_cached >= 0 && !o->loader.direct)
        fprintf(out, "; %.0f %% in the page cache", 100 * facts->io_cached);
    fputc('\n', out);
    if (o->loader.cold)
        fprintf(out, "cold: %s dropped from the page cache, %.1f %% remains cached\n",
                weir_size((double)facts->cold_bytes).text, 100 * facts->cold_stayed);
}

static void print_decoding(FILE *out, const struct weir_loader_facts *facts)
{
    if (facts->device < 0)
        return;
    bool chosen = strcmp(facts->decoder_requested, "auto") == 0;
    if (*facts->decoder_why)
        fprintf(out, "decodes: %s (%s%s)\n", facts->decoder_used, chosen ? "auto: " : "", facts->decoder_why);
    else
        fprintf(out, "decodes: %s\n", facts->decoder_used);
}

void weir_run_head_print(const struct weir_run_head *head, const struct weir_loader *loader)
{
    const struct run_options *o = head->options;
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    const struct weir_sampler *sampler = weir_loader_sampler(loader);
    struct weir_loader_facts facts;
    struct weir_wrap wrap;
    FILE *out = weir_wrap_open(&wrap, stderr, WEIR_WRAP_COLUMN, NULL);
    int n_train, n_val;
    weir_loader_facts(loader, &facts);
    weir_sampler_episodes(sampler, WEIR_SPLIT_TRAIN, &n_train);
    weir_sampler_episodes(sampler, WEIR_SPLIT_VAL, &n_val);
    char shown[4096];
    snprintf(shown, sizeof shown, "%s", head->data);
    weir_text_printable(shown);
    fprintf(out, "%s: %s, %d episodes (%d for training, %d for validation)\n", shown, weir_dataset_layout(dataset, 0),
            weir_dataset_episodes(dataset), n_train, n_val);
    fprintf(out, weir_dataset_cameras(dataset) > 0 ? "cameras:" : "cameras: none");
    for (int c = 0; c < weir_dataset_cameras(dataset); c++)
        print_camera(out, weir_dataset_camera(dataset, c)->name, &facts, c);
    fprintf(out, "; %d training and %d validation batches", weir_sampler_batches(sampler, WEIR_SPLIT_TRAIN),
            weir_sampler_batches(sampler, WEIR_SPLIT_VAL));
    if (o->seconds <= 0)
        fprintf(out, " x %d epoch%s", o->loader.num_epochs, o->loader.num_epochs == 1 ? "" : "s");
    fprintf(out, "; %d worker%s, prefetch %d%s\n", facts.workers, facts.workers == 1 ? "" : "s", facts.prefetch,
            head->consumer || o->step_ms > 0 ? "" : "; no training step (--step-ms), so data wait is near 100 %");
    if (weir_dataset_cameras(dataset) > 0)
        print_reading(out, &facts, o);
    print_decoding(out, &facts);
    print_place(out, &facts, head->ranks, o);
    if (facts.cache_budget_bytes > 0 && facts.cache_mapped_bytes == 0)
        fprintf(out,
                "--decode-cache: disabled, because it is too small for its table and one frame; "
                "all frames need %s\n",
                weir_size((double)facts.cache_bytes_all).text);
    if (weir_loader_position(loader) > 0)
        fprintf(out, "resuming at batch %llu of %llu\n", (unsigned long long)weir_loader_position(loader),
                (unsigned long long)weir_sampler_total(sampler));
    if (n_val == 0)
        fprintf(out, "the validation split is empty: all %d episodes are used for training\n", n_train);
    weir_wrap_close(&wrap);
    char line[1024];
    for (int i = 0; weir_dataset_left_out(dataset, i, line, sizeof line); i++)
        fprintf(stderr, "note: %s\n", line);
    if (weir_dataset_drift(dataset, line, sizeof line))
        fprintf(stderr, "note: %s\n", line);
    if (weir_loader_unturned(loader, line, sizeof line))
        fprintf(stderr, "note: %s\n", line);
    int bad = weir_dataset_bad_episodes(dataset);
    if (bad > 0)
        fprintf(stderr, "%d episode%s cannot be opened and %s skipped; the first is %s\n", bad, bad == 1 ? "" : "s",
                bad == 1 ? "is" : "are", weir_dataset_bad_episode(dataset, 0));
    if (head->consumer)
        head->consumer->head(head->consumer->user);
}

static void add_versions(struct weir_document *document)
{
    char text[256];
    weir_document_begin(document, "versions", '{');
    weir_h5_library(text, sizeof text);
    weir_document_fact(document, "hdf5", text);
    weir_decoder_library(text, sizeof text);
    weir_document_fact(document, "jpeg", text);
    weir_document_fact(document, "compiler", weir_compiler());
    weir_dataset_inflate(text, sizeof text);
    weir_document_fact(document, "inflate", text);
    weir_libc(text, sizeof text);
    weir_document_fact(document, "libc", text);
    weir_document_end(document, '}');
}

/* The resolved values of automatic settings, and where the run is. */
struct used {
    struct weir_loader_facts facts;
    struct weir_ranks ranks;
    struct weir_rank_status here;
    int episodes;
};

#define S struct used
static const struct weir_field gpu[] = {
    PLAIN("number", facts.device),
    PLAIN("name", facts.gpu),
    PLAIN("memory_bytes", facts.gpu_bytes),
};
static WEIR_FIELDS(gpu_fields, gpu);
static const struct weir_field io[] = {
    PLAIN("requested", facts.io_requested),
    PLAIN("used", facts.io_used),
    OPTIONAL("why", facts.io_why),
    PLAIN("depth", facts.io_depth),
    PLAIN("pool_bytes", facts.io_pool_bytes),
    OPTIONAL("features", facts.io_features),
    KNOWN("page_cache_fraction", facts.io_cached),
    KNOWN("cold_stayed_fraction", facts.cold_stayed),
};
static WEIR_FIELDS(io_fields, io);
static const struct weir_field used[] = {
    PLAIN("num_workers", facts.workers),
    PLAIN("prefetch", facts.prefetch),
    PLAIN("slots", facts.slots),
    PLAIN("slot_bytes", facts.slot_bytes),
    PLAIN("decode_cache_bytes", facts.cache_mapped_bytes),
    PLAIN("index_bytes", facts.index_bytes),
    PLAIN("largest_extent_bytes", facts.extent_max),
    PLAIN("episodes", episodes),
    PLAIN("images_per_sample", facts.images_per_sample),
    PLAIN("host", here.host),
    PLAIN("pid", here.pid),
    PLAIN("rank", ranks.rank),
    PLAIN("world_size", ranks.world_size),
    PLAIN("local_rank", ranks.local_rank),
    PLAIN("local_world_size", ranks.local_size),
    PLAIN("cores", facts.cores),
    OMIT("local_cores", ranks.local_cores),
    OBJECT_IF("gpu", gpu_fields, facts.gpu),
    PLAIN("decoder", facts.decoder_used),
    PLAIN("decoder_why", facts.decoder_why),
    OBJECT("io", io_fields),
};
static WEIR_FIELDS(used_fields, used);
#undef S

static void add_used(struct weir_document *document, const struct weir_run_head *head, const struct weir_loader *loader)
{
    struct used values = {.ranks = *head->ranks, .episodes = weir_dataset_episodes(weir_loader_dataset(loader))};
    weir_loader_facts(loader, &values.facts);
    weir_rank_status_here(&values.here, values.ranks.rank, values.ranks.world_size);
    if (!head->options->loader.cold)
        values.facts.cold_stayed = -1;
    weir_document_begin(document, "used", '{');
    weir_document_members(document, &used_fields, &values);
    if (head->consumer)
        head->consumer->json(head->consumer->user, document->json);
    weir_document_end(document, '}');
}

void weir_run_head_log(FILE *out, const struct weir_run_head *head, const struct weir_loader *loader,
                       double load_average)
{
    struct weir_document document;
    struct weir_sysinfo machine;
    char text[256];
    weir_sysinfo_read(&machine);
    weir_document_open(&document, &weir_line_writer, out);
    weir_document_fact(&document, "type", "run");
    weir_document_fact(&document, "weir", weir_version());
    weir_document_fact(&document, "git", weir_git_describe());
    weir_document_begin(&document, "machine", '{');
    weir_document_members(&document, &weir_sysinfo_fields, &machine);
    if (load_average >= 0)
        weir_document_fact(&document, "load_average", load_average);
    weir_filesystem_of(head->data, text, sizeof text);
    weir_document_fact(&document, "data_filesystem", text);
    weir_document_end(&document, '}');
    add_versions(&document);
    weir_options_document(&document, "config", head->data, head->command, head->values);
    add_used(&document, head, loader);
    weir_document_close(&document);
}
