/* libFuzzer: walks a hostile LMDB file from both of its meta pages, collects its episodes, and reads all their frames
 * and numbers. */
#include "datasets/lmdb/lmdb_store.h"
#include "tests/fuzz/fuzz_bytes.h"

static void read_numbers(const struct weir_lmdb_store *store, const char *path)
{
    enum weir_number_type type;
    struct weir_array_shape shape;
    struct weir_err err = WEIR_ERR_NONE;
    void *values;
    int rc = weir_store_lmdb.read_numbers((struct weir_store *)&store->store, path, &type, &values, &shape, &err);
    require(rc == 0 || (rc < 0 && err.text[0]));
    if (rc == 0)
        require(shape.dims[0] * shape.dims[1] * weir_number_bytes(type) <= store->file->size_bytes);
    free(values);
}

static void read_frames(const struct weir_lmdb_store *store, const char *camera)
{
    struct weir_frame_map map = {0};
    struct weir_array_shape shape = {0};
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_store_lmdb.rows((struct weir_store *)&store->store, camera, &map, &shape, &err);
    require(rc == 0 || (rc < 0 && err.text[0]));
    for (uint64_t t = 0; rc == 0 && t < shape.dims[0]; t++) {
        uint8_t *frame = malloc((size_t)map.extents[t].length + 1);
        fuzz_read_inside(store->file->user, map.extents[t].offset, frame, (size_t)map.extents[t].length);
        free(frame);
    }
    free(map.extents);
}

static void read_all(const struct weir_lmdb_state *state, const struct weir_raw_file *file)
{
    struct weir_lmdb_episodes found;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_lmdb_episodes_find(&found, state, file, &err);
    require(rc == 0 || (rc < 0 && err.text[0]));
    for (int i = 0; rc == 0 && i < found.n; i++) {
        struct weir_lmdb_store store = {{&weir_store_lmdb, false}, &found.schema, &found.episodes[i], file};
        struct weir_err why = WEIR_ERR_NONE;
        int checked = weir_lmdb_episode_check(&store, &why);
        require(checked == 0 || (checked < 0 && why.text[0]));
        read_numbers(&store, "/qpos");
        read_numbers(&store, "/action");
        for (int c = 0; c < found.schema.copy.n_cameras; c++)
            read_frames(&store, found.schema.copy.cameras[c].name);
    }
    weir_lmdb_episodes_free(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    struct weir_raw_file file = {fuzz_read_inside, &bytes, 0, size};
    struct weir_lmdb_state states[2];
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_lmdb_states(states, &file, &err);
    require(rc == 0 || (rc < 0 && err.text[0]));
    for (int i = 0; i < 2 && rc == 0; i++)
        read_all(&states[i], &file);
    return 0;
}
