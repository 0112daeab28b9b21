/* Goes through a folder of episodes once and prints every batch, its tensors' shapes, and the stage table at the end.
 *
 *     cc print_batches.c $(pkg-config --cflags --libs weir) -o print_batches && ./print_batches DATA */
#include <pipeline/loader.h>
#include <prof/report/report.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void print_batch(const struct weir_batch *batch)
{
    printf("%s %d:", batch->plan.split == WEIR_SPLIT_TRAIN ? "train" : "val", batch->plan.index);
    for (int i = 0; i < batch->n_tensors; i++) {
        const struct weir_tensor *tensor = &batch->tensors[i];
        printf(" %s %s", tensor->name, tensor->dtype == WEIR_DTYPE_U8 ? "u8" : "f32");
        for (int d = 0; d < tensor->ndim; d++)
            printf("%c%lld", d ? 'x' : ' ', (long long)tensor->shape[d]);
    }
    putchar('\n');
}

/* The fields that the profiler does not know. */
static void fill_report(struct weir_report *report, struct weir_loader *loader, uint64_t started_ns)
{
    struct weir_loader_counts counts;
    weir_loader_counts(loader, &counts, true);
    report->epoch_first = report->epoch_last = report->epoch_count = 1;
    report->final = report->timing = true;
    report->wall_s = (double)(weir_clock_monotonic_ns() - started_ns) / 1e9;
    report->reads = counts.reads;
    report->read_bytes = counts.read_bytes;
    report->fallbacks.frames = counts.fallback_reads;
    if (counts.fallback_reads > 0) {
        report->fallbacks.busy = (double)counts.helper.busy_ns / 1e9 / report->wall_s;
        report->fallbacks.each_s = (double)counts.helper.busy_ns / 1e9 / (double)counts.fallback_reads;
        report->fallbacks.waiting = (double)counts.helper.wait_ns / 1e9 / report->wall_s;
    }
    report->chunks = counts.chunks;
}

static int print_table(struct weir_loader *loader, uint64_t started_ns)
{
    struct weir_report *report = calloc(1, sizeof *report);
    struct weir_snapshot *snapshot = NULL;
    weir_loader_finish(loader); /* the workers' figures are final now */
    int rc = report ? weir_snapshot_take(weir_loader_recorder(loader), &snapshot) : -ENOMEM;
    if (rc == 0)
        rc = weir_report_from_snapshot(report, snapshot);
    if (rc == 0) {
        fill_report(report, loader, started_ns);
        weir_report_print_en(stdout, report);
        weir_report_free(report);
    }
    weir_snapshot_free(&snapshot);
    free(report);
    return rc;
}

int main(int argc, char **argv)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    if (argc != 2) {
        fprintf(stderr, "Usage: %s DATA\n", argv[0]);
        return 2;
    }
    weir_loader_config_default(&config);
    config.data = argv[1];
    config.batch_size = 4;
    uint64_t started_ns = weir_clock_monotonic_ns();
    int rc = weir_loader_open(&loader, &config, &err);
    while (rc >= 0 && (rc = weir_loader_next(loader, &batch, &err)) > 0) {
        WEIR_ZONE(batch->plan.split == WEIR_SPLIT_TRAIN ? WEIR_STAGE_TRAIN_FORWARD : WEIR_STAGE_VAL_FORWARD);
        print_batch(batch); /* a model's step would stand here; the table has a line for it */
        weir_loader_release(loader, batch);
    }
    if (rc == 0)
        rc = print_table(loader, started_ns);
    weir_loader_close(&loader);
    if (rc < 0)
        fprintf(stderr, "%s: %s\n", argv[0], err.text[0] ? err.text : "out of memory");
    return rc < 0 ? 1 : 0;
}
