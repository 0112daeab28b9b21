/* Prints the GPU's figures. */
#include "base/text.h"
#include "pipeline/report/report_parts_priv.h"

#include <stdlib.h>
#include <string.h>

void weir_report_gpu_add(struct weir_report_gpu *gpu, int stage, const struct weir_stage_stats *stats)
{
    const struct weir_stage_info *info = weir_stage_info(stage);
    int i = 0;
    if (!info || stats->count == 0)
        return;
    while (i < gpu->n_rows && strcmp(gpu->rows[i].name, info->name) != 0)
        i++;
    if (i == WEIR_REPORT_GPU_ROWS)
        return;
    gpu->n_rows = i == gpu->n_rows ? i + 1 : gpu->n_rows;
    struct weir_report_row *row = &gpu->rows[i];
    weir_report_row_fill(row, info, stats);
    row->side = WEIR_SIDE_GPU;
}

static void print_name(FILE *out, const struct weir_report_gpu *gpu)
{
    char name[sizeof gpu->name];
    snprintf(name, sizeof name, "%s", gpu->name);
    weir_text_printable(name);
    fprintf(out, "GPU %d (%s)", gpu->number, name);
}

static const double IDENTICAL_DB = 99;

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_decode(FILE *out, const struct weir_report_decode *d)
{
    if (d->n_engines == 0)
        return;
    for (int i = 0; i < d->n_engines; i++) {
        fprintf(out, "%s%llu frame%s by %s in %llu group%s, busy %.1f %%", i == 0 ? "decoded: " : "; ",
                (unsigned long long)d->engines[i].frames, plural(d->engines[i].frames), d->engines[i].by,
                (unsigned long long)d->engines[i].groups, plural(d->engines[i].groups), 100 * d->engines[i].busy);
    }
    fprintf(out, "; %llu by the CPU", (unsigned long long)d->cpu_frames);
    if (d->cpu_busy >= 0)
        fprintf(out, ", %.1f %% of its workers' time", 100 * d->cpu_busy);
    if (d->sent_back)
        fprintf(out, "; %llu not accepted by the GPU (%s)", (unsigned long long)d->sent_back, d->reasons);
    if (d->compared && d->least_db >= IDENTICAL_DB)
        fprintf(out, "; %llu compared with CPU decoding: identical", (unsigned long long)d->compared);
    else if (d->compared)
        fprintf(out, "; %llu compared with CPU decoding: lowest PSNR %.1f dB, %llu below %.0f dB",
                (unsigned long long)d->compared, d->least_db, (unsigned long long)d->below, d->gate_db);
    fputc('\n', out);
}

void weir_report_gpu_print(FILE *out, const struct weir_report_gpu *gpu)
{
    if (!gpu->used)
        return;
    print_name(out, gpu);
    fprintf(out, ": busy %.1f %%", 100 * gpu->busy);
    if (gpu->copy_bytes_per_s >= 0)
        fprintf(out, ", copies at %.2f GB/s", gpu->copy_bytes_per_s / 1e9);
    if (gpu->overlap >= 0)
        fprintf(out, ", %.1f %% of their time alongside steps", 100 * gpu->overlap);
    fprintf(out, ", the step's stream waited %.3f s for batches%s\n", gpu->stall_s,
            gpu->sync_steps ? "; the program waited for each step before the next (--sync-steps)" : "");
    fputs("  gpu- rows are the times between two events, including queueing on the GPU; CUDA total in a profile's "
          "averages "
          "is the work alone\n",
          out);
    print_decode(out, &gpu->decode);
}
