/* Prints every batch of one epoch with the shapes of its tensors, then the report of weir run. Compiles as C and C++.
 *
 *     cc print_batches.c $(pkg-config --cflags --libs weir) -o print_batches && ./print_batches DATA */
#include <weir/loader.h>
#include <weir/report.h>

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

/* Prints the final report of weir run: the stage table, threads, queue, reads, cameras, files and errors. */
static int print_report(struct weir_loader_reports *reports, struct weir_loader *loader)
{
    struct weir_loader_report_options options;
    weir_loader_report_options_default(&options);
    options.final = true;
    options.epochs_done = 1;
    weir_loader_finish(loader); /* stops the workers, so that their figures are final */
    return weir_loader_report(reports, &options, stdout);
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
    struct weir_loader_reports *reports = NULL;
    int rc = weir_loader_open(&loader, &config, &err);
    struct weir_loader_reports_config reported;
    weir_loader_reports_config_default(&reported);
    reported.epochs = 1;
    reported.folder = argv[1];
    if (rc >= 0)
        rc = weir_loader_reports_begin(&reports, loader, &reported);
    while (rc >= 0 && (rc = weir_loader_next(loader, &batch, &err)) > 0) {
        WEIR_ZONE(batch->plan.split == WEIR_SPLIT_TRAIN ? WEIR_STAGE_TRAIN_FORWARD : WEIR_STAGE_VAL_FORWARD);
        print_batch(batch); /* stands for a model's step; the table has a row for it */
        weir_loader_release(loader, batch);
    }
    if (rc == 0)
        rc = print_report(reports, loader);
    weir_loader_reports_end(&reports);
    weir_loader_close(&loader);
    if (rc < 0)
        fprintf(stderr, "%s: %s\n", argv[0], err.text[0] ? err.text : "out of memory");
    return rc < 0 ? 1 : 0;
}
