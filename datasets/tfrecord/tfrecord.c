/* TFRecord files of tf.train.Example, with one episode per record. Opening a file verifies the checksums of record
 * lengths; `weir verify` verifies the checksums of the data. */
#include "base/shortage.h"
#include "datasets/dataset_ops.h"
#include "datasets/format_ops.h"
#include "datasets/open_dataset.h"
#include "datasets/tfrecord/example.h"
#include "datasets/tfrecord/features.h"
#include "origin/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- episodes ---- */

/* State for reading the records of one file. */
struct reading {
    struct weir_records records;
    struct weir_raw_file source;
    struct weir_stated_features stated;
};

static int describe(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                    struct weir_err *err)
{
    const struct reading *reading = user;
    *episode = (struct weir_episode){.layout = &weir_layout_rlds, .bytes = sizeof *episode};
    if (asprintf(&episode->root, "record %d", i) < 0)
        return weir_no_memory(err);
    struct weir_rlds_store store = {
        .store = {&weir_store_rlds, i == 0}, .source = &reading->source, .stated = &reading->stated};
    uint64_t at = reading->records.at[i];
    const char *reason = NULL;
    int rc = weir_example_walk(&store.example, store.source, at, at + reading->records.bytes[i], &reason);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s", episode->root, reason ? reason : strerror(-rc));
    store.steps = weir_rlds_steps(&store.example);
    if (store.steps == 0)
        rc = weir_err_set(err, -EBADMSG,
                          "%s: not an RLDS episode: it has neither steps/is_first nor an image in "
                          "steps/observation",
                          episode->root);
    if (rc == 0)
        rc = weir_episode_describe(&store.store, episode, config, err);
    weir_example_free(&store.example);
    return rc;
}

/* tensorflow_datasets stores a dataset in a folder named after its version:
 * kuka/0.1.0/kuka-train.tfrecord-00000-of-00001. Versions of one dataset contain the same episodes. Different datasets
 * may be loaded together. */
static int set_traits(char **traits, const char *path, struct weir_err *err)
{
    char name[128], version[32] = "";
    unsigned numbers[3];
    int n = 0;
    const char *file = strrchr(path, '/'), *folder = file;
    while (folder && folder > path && folder[-1] != '/')
        folder--;
    size_t length = file ? (size_t)(file - folder) : 0;
    if (length > 0 && length < sizeof version)
        memcpy(version, folder, length + 1);
    version[length < sizeof version ? length : 0] = '\0';
    if (sscanf(version, "%3u.%3u.%3u%n", &numbers[0], &numbers[1], &numbers[2], &n) != 3 || version[n] != '\0')
        return 0;
    snprintf(name, sizeof name, "version of %.*s", (int)strcspn(file + 1, "-."), file + 1);
    return weir_traits_add(traits, name, version, true, err);
}

static int open_tfrecord(struct weir_file_result *result, const char *path, struct weir_opening *opening)
{
    struct weir_source *source;
    int rc = weir_file_source(&source, opening->origin, &result->file.file, &result->err);
    if (rc < 0)
        return rc;
    struct reading reading = {.source = {weir_source_read, source, 0, result->file.file.size_bytes}};
    rc = weir_records_find(&reading.records, &reading.source, result->file.file.size_bytes, &result->err);
    if (rc == 0 && reading.records.n == 0)
        rc = weir_err_set(
            &result->err, -EBADMSG,
            "has no records (0 bytes); copy it again, or use --on-error skip if the original is empty too");
    if (rc == 0)
        rc = weir_stated_read(&reading.stated, opening->origin, path, &result->err);
    if (rc == 0)
        rc = set_traits(&result->file.traits, path, &result->err);
    if (rc == 0)
        rc = weir_file_describe_episodes(result, reading.records.n, opening->config, describe, &reading);
    weir_stated_free(&reading.stated);
    weir_records_free(&reading.records);
    weir_source_close(&source);
    return rc;
}

/* ---- checksums of data ---- */

static int check_records(const struct weir_records *records, const struct weir_raw_file *source, uint8_t *buffer,
                         weir_damaged_fn *damaged, void *user, struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < records->n && rc == 0; i++) {
        char part[32];
        snprintf(part, sizeof part, "record %d", i);
        int whole = weir_record_is_whole(records, i, source, buffer);
        if (weir_is_shortage(whole))
            return weir_err_set(err, whole, "%s: %s; %s", part, strerror(-whole), weir_machine_advice(whole));
        if (whole < 0)
            rc = damaged(user, part, strerror(-whole));
        else if (whole == 0)
            rc = damaged(user, part,
                         "the checksum of its data is wrong; copy the file again, or leave this episode out");
    }
    return rc;
}

static int check(struct weir_origin *origin, const struct weir_dataset_file *file, weir_damaged_fn *damaged, void *user,
                 struct weir_err *err)
{
    struct weir_source *opened = NULL;
    struct weir_records records = {0};
    uint8_t *buffer = malloc(WEIR_RECORD_BUFFER);
    int rc = buffer ? weir_file_source(&opened, origin, file, err) : weir_no_memory(err);
    const struct weir_raw_file source = {weir_source_read, opened, 0, file->size_bytes};
    if (rc == 0)
        rc = weir_records_find(&records, &source, file->size_bytes, err);
    if (rc == 0)
        rc = check_records(&records, &source, buffer, damaged, user, err);
    weir_source_close(&opened);
    weir_records_free(&records);
    free(buffer);
    return rc;
}

/* Accepts "NAME.tfrecord", and shards such as "NAME-train.tfrecord-00000-of-00001". */
static bool is_tfrecord(const char *name)
{
    const char *at = strstr(name, ".tfrecord");
    return at && (at[9] == '\0' || at[9] == '-' || strcmp(at + 9, ".gz") == 0);
}

/* Returns the split in the name of a shard, which tensorflow_datasets calls NAME-SPLIT.tfrecord-00000-of-00001. */
static const char *split_of(const char *name, size_t *length)
{
    const char *end = strstr(name, ".tfrecord"), *dash = NULL;
    for (const char *at = name; at < end; at++)
        dash = *at == '-' ? at : dash;
    *length = dash ? (size_t)(end - dash - 1) : 0;
    return *length ? dash + 1 : NULL;
}

/* ---- shards ---- */

struct shard {
    size_t stem; /* length of the path before the number */
    unsigned long number, count;
};

/* Parses NAME-SPLIT.tfrecord-00000-of-00003. */
static bool parse_shard(const char *path, struct shard *shard)
{
    static const char extension[] = ".tfrecord-", of[] = "-of-", digits[] = "0123456789";
    const char *slash = strrchr(path, '/'), *at = strstr(slash ? slash : path, extension);
    const char *number = at ? at + strlen(extension) : "", *count = number + strspn(number, digits);
    if (count == number || strncmp(count, of, strlen(of)) != 0)
        return false;
    count += strlen(of);
    *shard = (struct shard){(size_t)(number - path), strtoul(number, NULL, 10), strtoul(count, NULL, 10)};
    return *count && count[strspn(count, digits)] == '\0';
}

static bool same_shards(const char *path, const char *first_path, const struct shard *first)
{
    struct shard shard;
    return parse_shard(path, &shard) && shard.stem == first->stem && shard.count == first->count &&
           memcmp(path, first_path, first->stem) == 0;
}

/* Reports the first missing number among n shards in the order of their numbers. */
static int report_missing(char *const *paths, int n, const struct shard *first, struct weir_path_list *left_out)
{
    char *text;
    struct shard shard;
    int missing = 0;
    while (missing < n && parse_shard(paths[missing], &shard) && shard.number == (unsigned long)missing)
        missing++;
    int bytes =
        asprintf(&text, "%.*s%05d-of-%05lu: the shard is missing (%d of %lu are present); copy the dataset completely",
                 (int)first->stem, paths[0], missing, first->count, n, first->count);
    return weir_path_list_add(left_out, bytes < 0 ? NULL : text);
}

static int find_missing(const struct weir_path_list *files, struct weir_path_list *left_out)
{
    int rc = 0;
    for (int i = 0, n; i < files->n && rc == 0; i += n) {
        char *const *paths = files->paths + i;
        struct shard first;
        n = 1;
        if (!parse_shard(paths[0], &first))
            continue;
        while (i + n < files->n && same_shards(paths[n], paths[0], &first))
            n++;
        if ((unsigned long)n < first.count)
            rc = report_missing(paths, n, &first, left_out);
    }
    return rc;
}

const struct weir_format_ops weir_format_tfrecord = {
    .name = "tfrecord",
    .summary = "TFRecord of tf.train.Example, as RLDS stores it: one episode per record",
    .names = is_tfrecord,
    .split = split_of,
    .missing = find_missing,
    .open = open_tfrecord,
    .check = check,
    .reads_origins = true,
    .beside = "features.json",
};
