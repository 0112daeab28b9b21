#include "analyze/ranks/rank_record.h"
#include "base/fields.h"
#include "base/text.h"
#include "prof/processes/process_files.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- from a report ---- */

/* Adds up the time of the loading threads, and of those and the loop outside their waits. */
static void fill_threads(struct weir_rank_record *record, const struct weir_report *prof)
{
    double busy_s = 0, core_wait_s = 0, throttled_s = 0, work_s = 0, compute_s = 0;
    for (int i = 0; i <= prof->n_workers; i++) {
        const struct weir_report_worker *thread = i < prof->n_workers ? &prof->workers[i] : &prof->consumer;
        busy_s += fmax(thread->wall_s - thread->wait_s, 0);
        core_wait_s += fmax(thread->core_wait_s, 0);
        throttled_s += fmax(thread->throttled_s, 0);
        work_s += i < prof->n_workers ? thread->work_s : 0;
        compute_s += fmax(thread->cpu_s - fmax(thread->wait_cpu_s, 0), 0);
    }
    record->work_s = work_s / (double)record->steps;
    record->compute_s = compute_s > 0 ? compute_s / (double)record->steps : -1;
    record->stalled_s = (core_wait_s + throttled_s) / (double)record->steps;
    record->core_wait = busy_s > 0 ? fmin(core_wait_s / busy_s, 1) : -1;
    record->throttled = busy_s > 0 ? fmin(throttled_s / busy_s, 1) : -1;
}

/* The loop's thread, outside its waits for data. Its waits for a core belong to its own time: it could have run. */
static void fill_loop(struct weir_rank_record *record, const struct weir_report_worker *loop)
{
    double per_step = 1 / (double)record->steps;
    record->own_s = record->core_wait_s = record->throttled_s = -1;
    if (!loop->name[0] || loop->wall_s <= 0 || loop->cpu_s < 0)
        return;
    double outside_s = fmax(loop->wall_s - loop->wait_s, 0);
    double cpu_s = loop->cpu_s - fmax(loop->wait_cpu_s, 0);
    double ready_s = fmax(loop->core_wait_s, 0) + fmax(loop->throttled_s, 0);
    record->own_s = fmin(fmax(cpu_s, 0) + ready_s, outside_s) * per_step;
    record->core_wait_s = fmin(fmax(loop->core_wait_s, 0), outside_s) * per_step;
    record->throttled_s = fmin(fmax(loop->throttled_s, 0), outside_s) * per_step;
}

static void add_stage(struct weir_rank_record *record, const struct weir_report_row *row)
{
    struct weir_rank_stage *at = &record->stages[record->n_stages];
    if (record->n_stages == WEIR_RANK_STAGES) { /* replaces the shortest one */
        at = record->stages;
        for (int i = 1; i < WEIR_RANK_STAGES; i++)
            at = record->stages[i].s < at->s ? &record->stages[i] : at;
        if (at->s >= row->self_s / (double)record->steps)
            return;
    } else {
        record->n_stages++;
    }
    snprintf(at->name, sizeof at->name, "%.*s", (int)weir_text_fitting(row->name, sizeof at->name - 1), row->name);
    snprintf(at->side, sizeof at->side, "%s", weir_report_side_name(row->side));
    weir_text_printable(at->name);
    at->s = row->self_s / (double)record->steps;
}

static void fill_stages(struct weir_rank_record *record, const struct weir_report *prof)
{
    for (int i = 0; i < prof->n_rows; i++) {
        const struct weir_report_row *row = &prof->rows[i];
        /* Idle workers and helpers; the loop's wait for data is data_s. */
        bool is_slack = row->kind == WEIR_KIND_WAIT &&
                        (row->side != WEIR_SIDE_CONSUMER || strcmp(row->name, "08_wait_for_data") == 0);
        if (row->self_s <= 0 || row->kind == WEIR_KIND_SPAN || is_slack)
            continue;
        add_stage(record, row);
        if (row->kind == WEIR_KIND_WORK && strstr(row->name, "_read") && row->side != WEIR_SIDE_GPU)
            record->read_s += row->self_s / (double)record->steps;
    }
}

bool weir_rank_record_fill(struct weir_rank_record *record, const struct weir_loader_report *report)
{
    const struct weir_report_steps *steps = &report->steps;
    const struct weir_report_machine *machine = &report->prof.machine;
    *record = (struct weir_rank_record){.epoch_first = report->epoch_first,
                                        .epoch_last = report->epoch_last,
                                        .steps = steps->train_batches + steps->val_batches,
                                        .cores = machine->part > 0 ? machine->part : machine->cores,
                                        .quota_cores = machine->quota_cores,
                                        .machine_cores = machine->cores,
                                        .others_cores = machine->used ? machine->others_cores : -1,
                                        .device_bytes_per_s = -1,
                                        .gpu = report->gpu.used};
    double train_s = steps->train_s + (steps->validation ? 0 : steps->val_s);
    double wait_s = steps->train_wait_s + (steps->validation ? 0 : steps->val_wait_s);
    if (record->steps == 0 || train_s <= 0)
        return false;
    double first_s = fmin(steps->first_wait_s, wait_s); /* the pipeline fills only once */
    record->step_s = fmax(train_s - first_s, 0) / (double)record->steps;
    record->data_s = fmin(fmax(wait_s - first_s, 0) / (double)record->steps, record->step_s);
    if (report->storage.device_bytes >= 0 && report->wall_s > 0)
        record->device_bytes_per_s = report->storage.device_bytes / report->wall_s;
    fill_threads(record, &report->prof);
    fill_loop(record, &report->prof.consumer);
    fill_stages(record, &report->prof);
    const struct weir_report_late *late = &report->late;
    if (late->file_wait_s > late->wait_s / 2)
        snprintf(record->slow_file, sizeof record->slow_file, "%.*s",
                 (int)weir_text_fitting(late->file, sizeof record->slow_file - 1), late->file);
    if (late->worker_wait_s > late->wait_s / 2)
        snprintf(record->slow_worker, sizeof record->slow_worker, "%.15s", late->worker);
    return true;
}

double weir_rank_record_stage_s(const struct weir_rank_record *record, const struct weir_rank_stage *stage)
{
    for (int i = 0; i < record->n_stages; i++)
        if (strcmp(record->stages[i].name, stage->name) == 0 && strcmp(record->stages[i].side, stage->side) == 0)
            return record->stages[i].s;
    return 0;
}

/* ---- fields ---- */

#define F(member, how) WEIR_FIELD(struct weir_rank_record, #member, member, how)
static const struct weir_field record_fields[] = {
    F(table, 0),
    F(epoch_first, 0),
    F(epoch_last, 0),
    F(steps, 0),
    F(step_s, 0),
    F(data_s, 0),
    F(own_s, WEIR_FIELD_KNOWN),
    F(core_wait_s, WEIR_FIELD_KNOWN),
    F(throttled_s, WEIR_FIELD_KNOWN),
    F(work_s, 0),
    F(read_s, 0),
    F(stalled_s, 0),
    F(compute_s, WEIR_FIELD_KNOWN),
    F(core_wait, WEIR_FIELD_KNOWN),
    F(throttled, WEIR_FIELD_KNOWN),
    F(cores, 0),
    F(quota_cores, 0),
    F(machine_cores, 0),
    F(others_cores, WEIR_FIELD_KNOWN),
    F(device_bytes_per_s, WEIR_FIELD_KNOWN),
    F(gpu, 0),
    {.key = "slow_file",
     .type = WEIR_FIELD_TEXT,
     .flags = WEIR_FIELD_OPTIONAL | WEIR_FIELD_SHOWN,
     WEIR_FIELD_AT(struct weir_rank_record, slow_file)},
    {.key = "slow_worker",
     .type = WEIR_FIELD_TEXT,
     .flags = WEIR_FIELD_OPTIONAL | WEIR_FIELD_SHOWN,
     WEIR_FIELD_AT(struct weir_rank_record, slow_worker)},
};
static WEIR_FIELDS(record_table, record_fields);

void weir_rank_record_json(struct weir_json *json, const struct weir_rank_record *record)
{
    weir_fields_json(json, &record_table, record);
    weir_json_array(json, "stages");
    for (int i = 0; i < record->n_stages; i++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "name", record->stages[i].name);
        weir_json_text(json, "side", record->stages[i].side);
        weir_json_double(json, "s", record->stages[i].s);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

/* ---- the process ---- */

static void read_place(char *place, size_t size)
{
    char boot[40] = "";
    struct stat st;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool known = f && fscanf(f, "%36s", boot) == 1 && stat("/proc/self/ns/pid", &st) == 0;
    if (f)
        fclose(f);
    *place = '\0';
    if (known)
        snprintf(place, size, "%.13s.%llu", boot, (unsigned long long)st.st_ino);
}

void weir_rank_status_here(struct weir_rank_status *status, int rank, int world_size)
{
    struct weir_task_stat stat;
    *status = (struct weir_rank_status){.rank = rank, .world_size = world_size, .pid = getpid()};
    if (gethostname(status->host, sizeof status->host - 1) < 0)
        snprintf(status->host, sizeof status->host, "unknown");
    weir_text_printable(status->host);
    read_place(status->place, sizeof status->place);
    if (weir_task_stat_read(&stat, "", status->pid, 0))
        status->start = stat.start_ticks;
}

void weir_rank_status_add(struct weir_rank_status *status, const struct weir_rank_record *record)
{
    if (status->n_records == WEIR_RANK_RECORDS)
        memmove(status->records, status->records + 1, --status->n_records * sizeof *record);
    status->records[status->n_records++] = *record;
}

bool weir_rank_status_dead(const struct weir_rank_status *status)
{
    struct weir_task_stat stat;
    char place[sizeof status->place];
    read_place(place, sizeof place);
    if (!place[0] || strcmp(place, status->place) != 0 || status->pid <= 0 || status->start == 0)
        return false;
    if (!weir_task_stat_read(&stat, "", status->pid, 0))
        return kill(status->pid, 0) < 0 && errno == ESRCH;
    return stat.state == 'Z' || stat.state == 'X' || stat.start_ticks != status->start;
}

/* ---- as text: lines of a key and a value. Fractional numbers are integers in units of 1e-8, for any locale ---- */

static const double UNIT = 1e8;
static const char head[] = "weir-rank 1\n";

static int64_t to_units(double value)
{
    double units = value * UNIT;
    return units >= 9e18 ? INT64_MAX : units <= -9e18 || isnan(units) ? INT64_MIN : (int64_t)llround(units);
}

static void write_field(FILE *out, const struct weir_field *field, const struct weir_rank_record *record)
{
    const char *at = (const char *)record + field->offset;
    if (field->type == WEIR_FIELD_DOUBLE)
        fprintf(out, "%s %" PRId64 "\n", field->key, to_units(*(const double *)at));
    else if (field->type == WEIR_FIELD_COUNT)
        fprintf(out, "%s %" PRIu64 "\n", field->key, *(const uint64_t *)at);
    else if (field->type == WEIR_FIELD_INT)
        fprintf(out, "%s %d\n", field->key, *(const int *)at);
    else if (field->type == WEIR_FIELD_BOOL)
        fprintf(out, "%s %d\n", field->key, *(const bool *)at);
    else if (*at)
        fprintf(out, "%s %s\n", field->key, at);
}

/* Writes at most n_stages of each record. */
static void write_status(FILE *out, const struct weir_rank_status *status, int n_stages)
{
    fprintf(out, "%srank %d\nworld_size %d\npid %d\nstart %" PRIu64 "\nended %d\nhost %s\nplace %s\n", head,
            status->rank, status->world_size, status->pid, status->start, status->ended, status->host, status->place);
    for (int r = 0; r < status->n_records; r++) {
        const struct weir_rank_record *record = &status->records[r];
        fputs("record\n", out);
        for (int i = 0; i < record_table.n; i++)
            write_field(out, &record_table.fields[i], record);
        for (int i = 0; i < record->n_stages && i < n_stages; i++)
            fprintf(out, "stage %s %" PRId64 " %s\n", record->stages[i].side, to_units(record->stages[i].s),
                    record->stages[i].name);
    }
    fputs("end\n", out);
}

void weir_rank_status_write(const struct weir_rank_status *status, char *text, size_t size)
{
    *text = '\0';
    for (int n_stages = WEIR_RANK_STAGES; n_stages >= 0; n_stages -= 4) {
        char *written = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&written, &n);
        if (!out)
            return;
        write_status(out, status, n_stages);
        bool fits = fclose(out) == 0 && n < size;
        if (fits)
            memcpy(text, written, n + 1);
        free(written);
        if (fits)
            return;
    }
}

static double from_units(const char *text)
{
    return (double)strtoll(text, NULL, 10) / UNIT;
}

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%.*s", (int)weir_text_fitting(text, (int)size - 1), text);
    weir_text_printable(to);
}

static void read_field(const struct weir_field *field, struct weir_rank_record *record, const char *value)
{
    char *at = (char *)record + field->offset;
    if (field->type == WEIR_FIELD_DOUBLE)
        *(double *)at = from_units(value);
    else if (field->type == WEIR_FIELD_COUNT)
        *(uint64_t *)at = strtoull(value, NULL, 10);
    else if (field->type == WEIR_FIELD_INT)
        *(int *)at = (int)fmax(fmin((double)strtoll(value, NULL, 10), WEIR_FIELD_SMALL_MAX), 0);
    else if (field->type == WEIR_FIELD_BOOL)
        *(bool *)at = strcmp(value, "1") == 0;
    else
        copy_text(at, field->size, value);
}

static void read_stage(struct weir_rank_record *record, const char *value)
{
    struct weir_rank_stage *stage = &record->stages[record->n_stages];
    long long units;
    int name = 0;
    if (record->n_stages == WEIR_RANK_STAGES || sscanf(value, "%15s %lld %n", stage->side, &units, &name) != 2 || !name)
        return;
    copy_text(stage->name, sizeof stage->name, value + name);
    weir_text_printable(stage->side);
    stage->s = (double)units / UNIT;
    record->n_stages += stage->name[0] != '\0' && stage->s >= 0;
}

static void read_member(struct weir_rank_status *status, struct weir_rank_record *record, const char *key,
                        const char *value)
{
    const struct {
        const char *key;
        int *number;
    } numbers[] = {{"rank", &status->rank}, {"world_size", &status->world_size}, {"pid", &status->pid}};
    if (record && strcmp(key, "stage") == 0)
        read_stage(record, value);
    for (int i = 0; record && i < record_table.n; i++)
        if (strcmp(key, record_table.fields[i].key) == 0)
            read_field(&record_table.fields[i], record, value);
    if (record)
        return;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(key, numbers[i].key) == 0)
            *numbers[i].number = (int)strtol(value, NULL, 10);
    if (strcmp(key, "start") == 0)
        status->start = strtoull(value, NULL, 10);
    else if (strcmp(key, "ended") == 0)
        status->ended = strcmp(value, "1") == 0;
    else if (strcmp(key, "host") == 0)
        copy_text(status->host, sizeof status->host, value);
    else if (strcmp(key, "place") == 0)
        copy_text(status->place, sizeof status->place, value);
}

/* Returns whether the figures can be used: a damaged or hostile text must not reach the arithmetic of the verdict. */
static bool is_sound(const struct weir_rank_record *record)
{
    return record->steps > 0 && record->step_s > 0 && record->data_s >= 0 && record->data_s <= record->step_s &&
           record->own_s <= record->step_s * 1.01 && record->work_s >= 0 && record->read_s >= 0 && record->cores >= 0 &&
           record->stalled_s >= 0;
}

int weir_rank_status_read(struct weir_rank_status *status, const char *text)
{
    struct weir_rank_record record, *open = NULL;
    bool complete = false;
    *status = (struct weir_rank_status){.rank = -1};
    if (strncmp(text, head, sizeof head - 1) != 0)
        return -EBADMSG;
    for (const char *line = text; *line && !complete;) {
        char key[32], value[256];
        int length = (int)strcspn(line, "\n"), key_length = (int)strcspn(line, " \n");
        snprintf(key, sizeof key, "%.*s", key_length, line);
        snprintf(value, sizeof value, "%.*s", length > key_length ? length - key_length - 1 : 0,
                 line + key_length + (length > key_length));
        complete = strcmp(key, "end") == 0 && line[length] == '\n';
        bool begins = strcmp(key, "record") == 0;
        if ((begins || complete) && open && is_sound(open))
            weir_rank_status_add(status, open);
        if (begins) {
            open = &record;
            *open = (struct weir_rank_record){.own_s = -1, .core_wait = -1, .throttled = -1, .others_cores = -1};
        } else if (!complete) {
            read_member(status, open, key, value);
        }
        line += length;
        line += *line == '\n';
    }
    return complete && status->rank >= 0 ? 0 : -EBADMSG;
}
