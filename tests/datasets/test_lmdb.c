/* LMDB files: reading files written by liblmdb, errors for invalid files, and writing copies. */
#include "datasets/writer.h"
#include "tests/fixtures/jpeg_encode.h"
#include "tests/fixtures/lmdb_fixture.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 9, SIDE = 64, ROOM = 20000, EPISODES = 3 };

/* A JPEG followed by zeros. Frames contain different numbers of these zeros, so that they are stored in a leaf, in one
 * overflow page, or in several. */
static uint8_t *image;
static size_t jpeg_bytes, lengths[3];
static struct lmfx_images images;

static void open_all(void)
{
    fixture_open();
    uint8_t *jpeg = jpeg_encode(&(struct jpeg_encode){.width = SIDE, .height = SIDE, .quality = 30}, &jpeg_bytes);
    image = calloc(1, ROOM);
    memcpy(image, jpeg, jpeg_bytes);
    free(jpeg);
    lengths[0] = jpeg_bytes;
    lengths[1] = 4000;
    lengths[2] = ROOM - 1;
    images = (struct lmfx_images){image, lengths, 3};
}

static void close_all(void)
{
    free(image);
    fixture_close();
}

TestSuite(lmdb, .init = open_all, .fini = close_all);

static const char *new_folder(void)
{
    static int folders;
    char name[16];
    snprintf(name, sizeof name, "data%d", folders++);
    const char *path = fixture_path(name);
    mkdir(path, 0777);
    return path;
}

static void write_episodes(struct lmfx *to, int n, float shift)
{
    lmfx_put(to, "dataset", lmfx_dataset, strlen(lmfx_dataset));
    for (int e = 0; e < n; e++)
        lmfx_episode(to, e, STEPS + e, &images, shift);
    lmfx_commit(to);
}

static int open_it(struct weir_dataset **dataset, const char *path, bool tolerant, struct weir_err *err)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .tolerant = tolerant};
    *err = WEIR_ERR_NONE;
    return weir_dataset_open(dataset, &config, err);
}

/* Reads frame t of the only camera as a worker does, and compares it with the image. */
static void check_frame(const struct weir_dataset *dataset, int fd, int episode, int t)
{
    struct weir_location location;
    static uint8_t bytes[ROOM];
    cr_assert_eq(weir_locate(dataset, episode, 0, t, &location), WEIR_HOW_EXTENT);
    cr_assert_eq(location.length, lengths[t % 3], "episode %d, frame %d", episode, t);
    cr_assert_eq(pread(fd, bytes, location.length, (off_t)location.offset), (ssize_t)location.length);
    cr_assert_eq(memcmp(bytes, image, location.length), 0, "episode %d, frame %d", episode, t);
}

static void check_dataset(const struct weir_dataset *dataset, int episodes)
{
    struct weir_dataset_file file;
    weir_dataset_file(dataset, 0, &file);
    int fd = open(file.path, O_RDONLY);
    cr_assert_eq(weir_dataset_episodes(dataset), episodes);
    cr_assert_eq(weir_dataset_cameras(dataset), 1);
    cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "top");
    cr_assert_str_eq(weir_dataset_layout(dataset, 0), "weir");
    for (int e = 0; e < episodes; e++) {
        cr_assert_eq(weir_dataset_steps(dataset, e), STEPS + e);
        for (int i = 0; i < (STEPS + e) * LMFX_DIM; i++)
            cr_assert(weir_dataset_qpos(dataset, e)[i] == (float)i / 8 &&
                      weir_dataset_actions(dataset, e)[i] == (float)i / 8);
        for (int t = 0; t < STEPS + e; t++)
            check_frame(dataset, fd, e, t);
    }
    close(fd);
}

Test(lmdb, a_folder)
{
    struct weir_dataset *dataset;
    struct weir_err err;
    const char *path = new_folder();
    struct lmfx *to = lmfx_open(path, false, 0);
    write_episodes(to, EPISODES, 0);
    lmfx_close(to);
    cr_assert_eq(open_it(&dataset, path, false, &err), 0, "%s", err.text);
    check_dataset(dataset, EPISODES);
    weir_dataset_close(&dataset);
}

Test(lmdb, frames_of_a_camera_that_is_not_listed)
{
    struct weir_dataset *dataset;
    struct weir_err err;
    char note[1024];
    const char *path = new_folder();
    struct lmfx *to = lmfx_open(path, false, 0);
    lmfx_put(to, "e00000001/00000000/wrist", image, lengths[0]);
    write_episodes(to, EPISODES, 0);
    lmfx_close(to);
    cr_assert_eq(open_it(&dataset, path, false, &err), 0, "%s", err.text);
    check_dataset(dataset, EPISODES);
    cr_assert(weir_dataset_left_out(dataset, 0, note, sizeof note));
    cr_assert_not_null(strstr(note, "camera wrist is left out: key \"dataset\" does not list it"), "%s", note);
    cr_assert_not_null(strstr(note, "e00000001"), "%s", note);
    cr_assert(!weir_dataset_left_out(dataset, 1, note, sizeof note));
    weir_dataset_close(&dataset);
}

/* Enough keys for branch pages. One transaction per episode and some rewritten keys put the pages out of order. */
Test(lmdb, many_transactions_in_one_file)
{
    enum { MANY = 40 };
    struct weir_dataset *dataset;
    struct weir_err err;
    char path[512];
    snprintf(path, sizeof path, "%s/a.lmdb", new_folder());
    struct lmfx *to = lmfx_open(path, true, 0);
    write_episodes(to, 0, 0);
    for (int e = MANY - 1; e >= 0; e--) {
        lmfx_episode(to, e, STEPS + e, &images, 1);
        lmfx_commit(to);
        lmfx_episode(to, e, STEPS + e, &images, 0);
        lmfx_commit(to);
    }
    lmfx_close(to);
    cr_assert_eq(open_it(&dataset, path, false, &err), 0, "%s", err.text);
    check_dataset(dataset, MANY);
    weir_dataset_close(&dataset);
}

Test(lmdb, frames_are_decoded)
{
    struct weir_loader_config config;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    weir_loader_config_default(&config);
    config.data = new_folder();
    struct lmfx *to = lmfx_open(config.data, false, 0);
    write_episodes(to, EPISODES, 0);
    lmfx_close(to);
    config.num_epochs = 1;
    config.train_split = 1;
    config.batch_size = 2;
    char *sums = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_assert(strlen(sums) > 0);
    free(sums);
}

/* ---- refused files ---- */

static void refused(const char *path, int code, const char *what)
{
    struct weir_dataset *dataset = NULL;
    struct weir_err err;
    cr_assert_eq(open_it(&dataset, path, false, &err), code, "%s", err.text);
    cr_assert_not_null(strstr(err.text, what), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "data.mdb: "), "%s", err.text);
    cr_assert_null(strchr(err.text, '\n'));
}

static void refused_key(const char *key, const void *value, size_t n, int code, const char *what)
{
    const char *path = new_folder();
    struct lmfx *to = lmfx_open(path, false, 0);
    lmfx_put(to, key, value, n);
    lmfx_close(to);
    refused(path, code, what);
}

Test(lmdb, other_keys)
{
    static const char pickle[] = "\x80\x04\x95\x03\x00\x00\x00\x00\x00\x00\x00]\x94.";
    refused_key("0000000001", "abc", 3, -EBADMSG, "has no key \"dataset\" (its first key is \"0000000001\")");
    refused_key("0000000001", pickle, sizeof pickle - 1, -ENOTSUP, "pickled values are refused");
    refused_key("dataset", pickle, sizeof pickle - 1, -ENOTSUP, "pickled values are refused");
    refused_key("dataset", "{", 1, -EBADMSG, "key \"dataset\": not a JSON object");
    refused_key("dataset", "[1]", 3, -EBADMSG, "key \"dataset\": not a JSON object");
    refused_key("dataset", "{\"version\": 2}", 14, -EBADMSG, "version is not 1");
    refused_key("dataset", lmfx_dataset, strlen(lmfx_dataset), -EBADMSG, "has no episodes");
}

Test(lmdb, other_databases)
{
    const char *path = new_folder();
    struct lmfx *to = lmfx_open(path, false, 0);
    lmfx_put_database(to, "train");
    lmfx_close(to);
    refused(path, -ENOTSUP, "\"train\" is a named database within the file");
    path = new_folder();
    to = lmfx_open(path, false, MDB_DUPSORT);
    lmfx_put(to, "dataset", "a", 1);
    lmfx_put(to, "dataset", "b", 1);
    lmfx_close(to);
    refused(path, -ENOTSUP, "MDB_DUPSORT");
    path = new_folder();
    to = lmfx_open(path, false, MDB_INTEGERKEY);
    lmfx_put(to, "keys", "a", 1);
    lmfx_close(to);
    refused(path, -ENOTSUP, "keys are integers");
    path = new_folder();
    to = lmfx_open(path, false, 0);
    lmfx_close(to);
    refused(path, -EBADMSG, "has no keys");
}

/* Writes one invalid value to episode 0. The file must be refused, or in tolerant mode only that episode skipped. */
static void wrong_episode(const char *key, const void *value, size_t n, const char *what)
{
    struct weir_dataset *dataset;
    struct weir_err err;
    const char *path = new_folder();
    struct lmfx *to = lmfx_open(path, false, 0);
    write_episodes(to, 2, 0);
    lmfx_put(to, key, value, n);
    lmfx_close(to);
    refused(path, -EBADMSG, what);
    cr_assert_eq(open_it(&dataset, path, true, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), 1);
    cr_assert_eq(weir_dataset_bad_episodes(dataset), 1);
    cr_assert_not_null(strstr(weir_dataset_bad_episode(dataset, 0), what));
    weir_dataset_close(&dataset);
}

Test(lmdb, wrong_episodes)
{
    wrong_episode("e00000000/qpos", "1234567", 7,
                  "e00000000/qpos: its 7 bytes do not divide into rows of 3 numbers of float32");
    wrong_episode("e00000000/00000011/top", "x", 1, "top does not have frame 9, but has frame 11");
    wrong_episode("e00000000/00000009/top", "x", 1, "has 10 frames");
    wrong_episode("e00000000/episode", "{\"steps\": 4}", 12, "declares 4 steps, but \"qpos\" has 9 rows");
}

Test(lmdb, not_all_episodes)
{
    static const char json[] =
        "{\"version\": 1, \"episodes\": 3, \"cameras\": [{\"name\": \"top\", \"codec\": \"jpeg\"}], "
        "\"qpos\": {\"dtype\": \"float32\", \"dim\": 3}, \"action\": {\"dtype\": \"float32\", \"dim\": 3}}";
    const char *path = new_folder();
    struct lmfx *to = lmfx_open(path, false, 0);
    write_episodes(to, 2, 0);
    lmfx_put(to, "dataset", json, strlen(json));
    lmfx_close(to);
    refused(path, -EBADMSG, "has 2 of the 3 episodes");
}

/* ---- concurrent writers ---- */

static int count_reader(const char *line, void *user)
{
    *(int *)user += strstr(line, "pid") == NULL && strchr(line, ' ') != NULL && line[0] != '(';
    return 0;
}

static int readers_of(const char *path)
{
    MDB_env *env;
    int n = 0;
    mdb_env_create(&env);
    cr_assert_eq(mdb_env_open(env, path, MDB_RDONLY, 0666), 0);
    mdb_reader_list(env, count_reader, &n);
    mdb_env_close(env);
    return n;
}

/* Rewritten values are stored in new pages. The old pages become free for reuse in the transaction after next. */
Test(lmdb, frames_stay_while_all_of_them_are_written_again)
{
    struct weir_dataset *dataset, *newer;
    struct weir_err err;
    struct lmfx_images others = images;
    uint8_t *noise = malloc(ROOM);
    memset(noise, 0x55, ROOM);
    others.jpeg = noise;
    const char *path = new_folder();
    struct lmfx *to = lmfx_open(path, false, 0);
    write_episodes(to, EPISODES, 0);
    lmfx_close(to);
    cr_assert_eq(open_it(&dataset, path, false, &err), 0, "%s", err.text);
    char note[1024];
    cr_assert(!weir_dataset_note(dataset, 0, note, sizeof note), "%s", note);
    cr_assert_eq(readers_of(path), 1);
    to = lmfx_open(path, false, 0);
    for (int round = 0; round < 6; round++)
        for (int e = 0; e < EPISODES; e++) {
            lmfx_episode(to, e, STEPS + e, &others, 1);
            lmfx_commit(to);
        }
    lmfx_close(to);
    check_dataset(dataset, EPISODES);
    cr_assert_eq(open_it(&newer, path, false, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_qpos(newer, 0)[0], 1.0f);
    cr_assert_eq(readers_of(path), 2);
    weir_dataset_close(&newer);
    weir_dataset_close(&dataset);
    cr_assert_eq(readers_of(path), 0);
    free(noise);
}

static char *sums_of(const char *path)
{
    struct weir_loader_config config;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    weir_loader_config_default(&config);
    config.data = path;
    config.num_epochs = 3;
    config.train_split = 1;
    config.batch_size = 2;
    char *sums = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    return sums;
}

/* Writes the two versions alternately, each in one transaction, until killed. */
static void write_without_end(const char *path, const struct lmfx_images versions[2], int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends this process if a failed assertion ends the test */
    struct lmfx *to = lmfx_open(path, false, 0);
    for (int round = 0;; round++) {
        for (int e = 0; e < EPISODES; e++)
            lmfx_episode(to, e, STEPS + e, &versions[round % 2], (float)(round % 2));
        lmfx_commit(to);
        if (round == 3 && write(ready, "", 1) != 1)
            _exit(1);
    }
}

/* Every run reads a single version, even if the file changes while it is opened. */
Test(lmdb, runs_beside_a_writer)
{
    uint8_t *other = calloc(1, ROOM);
    size_t n;
    uint8_t *jpeg = jpeg_encode(
        &(struct jpeg_encode){.width = SIDE, .height = SIDE, .quality = 30, .picture = JPEG_ENCODE_FLAT}, &n);
    memcpy(other, jpeg, n);
    cr_assert_leq(n, jpeg_bytes);
    const struct lmfx_images versions[2] = {images, {other, lengths, 3}};
    const char *path = NULL;
    char *sums[2];
    for (int v = 0; v < 2; v++) {
        path = new_folder();
        struct lmfx *to = lmfx_open(path, false, 0);
        write_episodes(to, 0, 0);
        for (int e = 0; e < EPISODES; e++)
            lmfx_episode(to, e, STEPS + e, &versions[v], (float)v);
        lmfx_close(to);
        sums[v] = sums_of(path);
    }
    cr_assert_str_neq(sums[0], sums[1]);
    int ready[2], status;
    char byte;
    cr_assert_eq(pipe(ready), 0);
    pid_t writer = fork();
    if (writer == 0)
        write_without_end(path, versions, ready[1]);
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    for (int i = 0; i < 8; i++) {
        char *now = sums_of(path);
        cr_assert(strcmp(now, sums[0]) == 0 || strcmp(now, sums[1]) == 0, "run %d", i);
        free(now);
    }
    kill(writer, SIGKILL);
    waitpid(writer, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the writer ended early");
    free(sums[0]);
    free(sums[1]);
    free(jpeg);
    free(other);
}

Test(lmdb, no_transaction_can_be_held)
{
    struct weir_dataset *dataset;
    struct weir_err err;
    char note[1024], lock[600];
    const char *path = new_folder();
    struct lmfx *to = lmfx_open(path, false, 0);
    write_episodes(to, EPISODES, 0);
    lmfx_close(to);
    snprintf(lock, sizeof lock, "%s/lock.mdb", path);
    unlink(lock);
    mkdir(lock, 0777);
    cr_assert_eq(open_it(&dataset, path, false, &err), 0, "%s", err.text);
    check_dataset(dataset, EPISODES);
    cr_assert(weir_dataset_note(dataset, 0, note, sizeof note));
    cr_assert_not_null(strstr(note, "data.mdb: no read transaction is held"), "%s", note);
    cr_assert(!weir_dataset_note(dataset, 1, note, sizeof note));
    weir_dataset_close(&dataset);
}

/* ---- the writer ---- */

/* RAW_STEPS frames do not fit in one transaction. */
enum { WIDTH = 1024, HEIGHT = 512, RAW_BYTES = WIDTH * HEIGHT * 3, RAW_STEPS = 30 };

static const struct weir_copy raw_copy = {
    .n_episodes = EPISODES,
    .n_cameras = 2,
    .cameras = {{"wrist", WEIR_FRAME_RAW, WIDTH, HEIGHT}, {"top", WEIR_FRAME_IMAGE, SIDE, SIDE}},
    .qpos_type = WEIR_F64,
    .action_type = WEIR_F32,
    .qpos_dim = 2,
    .action_dim = 1,
    .is_bgr = true};

/* Begins an episode and writes frames until a call fails. */
static int write_frames(struct weir_writer *writer, int number, int steps, struct weir_err *err)
{
    static uint8_t pixels[RAW_BYTES];
    static double qpos[RAW_STEPS * 2];
    static float actions[RAW_STEPS];
    const struct weir_copy_text text = {"instruction", "pick \"it\" up"};
    struct weir_copy_episode episode = {number, "a.hdf5", RAW_STEPS, qpos, actions, &text, 1};
    int rc = weir_writer_begin(writer, &episode, err);
    for (int t = 0; t < steps && rc == 0; t++) {
        memset(pixels, number * RAW_STEPS + t, sizeof pixels);
        rc = weir_writer_lmdb.frame(writer, 0, t, pixels, sizeof pixels, err);
        if (rc == 0)
            rc = weir_writer_lmdb.frame(writer, 1, t, image, jpeg_bytes, err);
    }
    for (int i = 0; i < RAW_STEPS; i++) {
        actions[i] = (float)i;
        qpos[2 * i] = 1e-300 * i;
    }
    return rc;
}

static void check_raw_copy(const char *path)
{
    struct weir_dataset *dataset;
    struct weir_dataset_file file;
    struct weir_err err;
    struct weir_location location;
    static uint8_t pixels[RAW_BYTES];
    cr_assert_eq(open_it(&dataset, path, false, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), EPISODES);
    cr_assert_str_eq(weir_dataset_camera(dataset, 0)->name, "wrist", "cameras must be in the source's order");
    weir_dataset_file(dataset, 0, &file);
    int fd = open(file.path, O_RDONLY);
    for (int i = 0; i < EPISODES * RAW_STEPS; i++) {
        cr_assert_eq(weir_locate(dataset, i / RAW_STEPS, 0, i % RAW_STEPS, &location), WEIR_HOW_EXTENT);
        cr_assert_eq(location.length, sizeof pixels);
        cr_assert_eq(pread(fd, pixels, sizeof pixels, (off_t)location.offset), (ssize_t)sizeof pixels);
        cr_assert(pixels[0] == (uint8_t)i && memcmp(pixels, pixels + 1, sizeof pixels - 1) == 0, "frame %d", i);
        cr_assert_eq(weir_dataset_actions(dataset, i / RAW_STEPS)[i % RAW_STEPS], (float)(i % RAW_STEPS));
    }
    close(fd);
    weir_dataset_close(&dataset);
}

/* Interrupted twice: after the first transaction of the third episode, and by a limit on the file size. */
Test(lmdb, a_copy_goes_on_where_it_was_interrupted)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = fixture_path("copy");
    struct weir_writer *writer;
    int complete = -1;
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_lmdb, &raw_copy, path, &complete, &err), 0, "%s", err.text);
    cr_assert_eq(complete, 0);
    for (int e = 0; e < 2; e++) {
        cr_assert_eq(write_frames(writer, e, RAW_STEPS, &err), 0, "%s", err.text);
        cr_assert_eq(weir_writer_lmdb.end(writer, &err), 0, "%s", err.text);
    }
    cr_assert_eq(write_frames(writer, 2, RAW_STEPS - 1, &err), 0, "%s", err.text);
    weir_writer_close(&writer);
    cr_assert_null(writer);
    struct weir_dataset *dataset;
    cr_assert_lt(open_it(&dataset, path, false, &err), 0, "half a copy was read");
    cr_assert_not_null(strstr(err.text, "e00000002: no such key: /qpos"), "%s", err.text);

    struct rlimit limit, small = {0};
    struct stat st;
    stat(fixture_path("copy/data.mdb"), &st);
    getrlimit(RLIMIT_FSIZE, &limit);
    small.rlim_max = limit.rlim_max;
    small.rlim_cur = (rlim_t)st.st_size + (1 << 20);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_lmdb, &raw_copy, path, &complete, &err), 0, "%s", err.text);
    cr_assert_eq(complete, 2);
    int rc = write_frames(writer, 2, RAW_STEPS, &err);
    rc = rc < 0 ? rc : weir_writer_lmdb.end(writer, &err);
    cr_assert(rc < 0 && strstr(err.text, "copy: episode 2: cannot be written: "), "%s", err.text);
    weir_writer_close(&writer);
    setrlimit(RLIMIT_FSIZE, &limit);

    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_lmdb, &raw_copy, path, &complete, &err), 0, "%s", err.text);
    cr_assert_eq(complete, 2);
    cr_assert_eq(write_frames(writer, 2, RAW_STEPS, &err), 0, "%s", err.text);
    cr_assert_eq(weir_writer_lmdb.end(writer, &err), 0, "%s", err.text);
    cr_assert_eq(weir_writer_finish(&writer, &err), 0, "%s", err.text);
    check_raw_copy(path);
}

/* Remains of a different or damaged copy are discarded, and the copy starts again. */
Test(lmdb, what_is_left_of_another_copy)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_copy other = raw_copy;
    other.n_episodes = EPISODES + 1;
    const char *path = fixture_path("copy");
    struct weir_writer *writer;
    int complete = -1;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(weir_writer_open(&writer, &weir_writer_lmdb, i == 1 ? &other : &raw_copy, path, &complete, &err),
                     0, "%s", err.text);
        cr_assert_eq(complete, 0);
        cr_assert_eq(write_frames(writer, 0, RAW_STEPS, &err), 0, "%s", err.text);
        cr_assert_eq(weir_writer_lmdb.end(writer, &err), 0, "%s", err.text);
        weir_writer_close(&writer);
        if (i == 1)
            cr_assert_eq(truncate(fixture_path("copy/data.mdb"), 20000), 0);
    }
    struct weir_copy unfit = raw_copy;
    strcpy(unfit.cameras[1].name, "a/b");
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_lmdb, &unfit, path, &complete, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "camera \"a/b\""), "%s", err.text);
}
