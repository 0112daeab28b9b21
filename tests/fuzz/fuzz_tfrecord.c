/* libFuzzer: reads a hostile TFRecord file and a hostile features.json, from the framing of records to the
 * resulting episodes. The checksums of record lengths are corrected, so that the fuzzer reaches the records. */
#include "base/hash.h"
#include "datasets/builder.h"
#include "datasets/tfrecord/example.h"
#include "datasets/tfrecord/features.h"
#include "tests/fuzz/fuzz_bytes.h"

static void mend_lengths(uint8_t *bytes, size_t n)
{
    for (size_t at = 0; n - at >= WEIR_RECORD_HEADER;) {
        uint64_t length;
        uint32_t crc = weir_crc32c_masked(bytes + at, sizeof length);
        memcpy(&length, bytes + at, sizeof length);
        memcpy(bytes + at + sizeof length, &crc, sizeof crc);
        if (length > n - at - WEIR_RECORD_HEADER || n - at - WEIR_RECORD_HEADER - length < WEIR_RECORD_FOOTER)
            return;
        at += WEIR_RECORD_HEADER + length + WEIR_RECORD_FOOTER;
    }
}

static void check_episode(const struct weir_episode *e, uint64_t file_bytes)
{
    size_t at = 0;
    for (int i = 0; i < 2 * e->n_texts; i++)
        at += strlen(e->texts + at) + 1;
    require(at == e->texts_bytes);
    for (int c = 0; c < e->n_maps; c++) {
        const struct weir_frame_map *map = &e->maps[c];
        for (int t = 0; t < e->steps; t++)
            require(map->extents[t].offset <= file_bytes &&
                    map->extents[t].length <= file_bytes - map->extents[t].offset);
    }
    require(e->steps > 0 && e->qpos && e->actions);
}

static void open_record(const struct weir_records *records, int i, const struct weir_raw_file *source,
                        const struct weir_stated_features *stated, uint64_t file_bytes)
{
    struct weir_rlds_store store = {.store = {&weir_store_rlds, false}, .source = source, .stated = stated};
    struct weir_dataset_config config = {.size = sizeof config, .depth = true};
    struct weir_episode episode = {.layout = &weir_layout_rlds, .root = strdup("record")};
    struct weir_err err = WEIR_ERR_NONE;
    const char *reason = NULL;
    uint64_t at = records->at[i];
    if (weir_example_walk(&store.example, source, at, at + records->bytes[i], &reason) == 0) {
        store.steps = weir_rlds_steps(&store.example);
        int rc = store.steps ? weir_episode_describe(&store.store, &episode, &config, &err) : -EBADMSG;
        require(rc == 0 || rc == -EBADMSG || err.text[0]);
        if (rc == 0)
            check_episode(&episode, file_bytes);
    }
    weir_example_free(&store.example);
    weir_episode_close(&episode);
}

static void open_file(const uint8_t *file, size_t n, const struct weir_stated_features *stated)
{
    static uint8_t buffer[WEIR_RECORD_BUFFER];
    struct fuzz_bytes bytes = {file, n};
    struct weir_raw_file source = {.read = fuzz_read, .user = &bytes};
    struct weir_records records = {0};
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_records_find(&records, &source, n, &err);
    require(rc == 0 || err.text[0]);
    for (int i = 0; i < records.n; i++) {
        require(weir_record_is_whole(&records, i, &source, buffer) >= 0);
        open_record(&records, i, &source, stated, n);
    }
    weir_records_free(&records);
}

/* The first two bytes are the length of features.json, which follows them. The remaining bytes are the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t json = (size_t)(data[0] | data[1] << 8), n = size - 2;
    json = json < n ? json : n;
    struct weir_stated_features stated;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_stated_parse(&stated, (const char *)data + 2, json, &err);
    require(rc == 0 || (rc == -EBADMSG && err.text[0] && !stated.features));
    n -= json;
    uint8_t *file = malloc(n + 1);
    memcpy(file, data + 2 + json, n);
    mend_lengths(file, n);
    open_file(file, n, &stated);
    free(file);
    weir_stated_free(&stated);
    return 0;
}
