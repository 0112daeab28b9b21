/* Inputs that are refused before any frame is read, and inputs that must not be refused: unselected cameras, unusual
 * first episodes, values that are not numbers, and unreadable folders. */
#include "tests/fixtures/bad_input.h"
#include "tests/fixtures/loader_fixture.h"

#include "weir/loader.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

TestSuite(refusals, .init = fixture_open, .fini = fixture_close);

enum { STEPS = 6 };

static const struct h5fx_episode act = {.steps = STEPS, .cameras = {{.name = "top"}, {.name = "wrist"}}};
Test(refusals, numbers_that_are_none)
{
    const double odd[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        double values[STEPS * 4] = {0};
        values[2 * 4 + 1] = odd[i];
        const char *path = bad_input_episodes(&act), *bad = bad_input_episode(1);
        h5fx_put(bad, "/observations/qpos", "f32", 2, (uint64_t[]){STEPS, 4}, values);
        bad_input_try("state", path, bad_leaves_out_one(-EBADMSG, bad, "/observations/qpos[2][1]: is ", "repair it"));
    }
    double values[STEPS * 3] = {[STEPS * 3 - 1] = NAN};
    const char *path = bad_input_episodes(&act), *bad = bad_input_episode(2);
    h5fx_put(bad, "/action", "f64", 2, (uint64_t[]){STEPS, 3}, values);
    bad_input_try("actions", path, bad_leaves_out_one(-EBADMSG, bad, "/action[5][2]: is ", NULL));
}

Test(refusals, an_odd_first_episode_does_not_win)
{
    struct h5fx_episode odd = act;
    odd.qpos_dim = 5;
    const char *path = bad_input_episodes(&act);
    h5fx_write(bad_input_episode(0), &odd);
    bad_input_try("two of three differ from the first", path,
                  bad_stops(-EBADMSG, "state and actions have 4 and 3 dimensions", bad_input_episode(0)));
}

static int open_with(const char *path, const char *cameras, struct weir_err *err)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .cameras = cameras};
    int rc = weir_dataset_open(&dataset, &config, err);
    int n = rc == 0 ? weir_dataset_cameras(dataset) : 0;
    weir_dataset_close(&dataset);
    return rc < 0 ? rc : n;
}

Test(refusals, cameras_nobody_asked_for_are_not_looked_at)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = bad_input_episodes(&act);
    for (int i = 0; i < 3; i++)
        h5fx_put(bad_input_episode(i), "/observations/images/odd", "f32", 1, (uint64_t[]){3}, (double[]){1, 2, 3});
    cr_assert_eq(open_with(path, "top", &err), 1, "%s", err.text);
    cr_assert_eq(open_with(path, "wrist,top", &err), 2, "%s", err.text);
    cr_assert_eq(open_with(path, NULL, &err), -EBADMSG);
    cr_assert(strstr(err.text, "/observations/images/odd"), "%s", err.text);
    err = WEIR_ERR_NONE;
    cr_assert_eq(open_with(path, "none", &err), -EINVAL);
    cr_assert(strstr(err.text, "no camera \"none\"; it has odd, top, wrist"), "%s", err.text);
    err = WEIR_ERR_NONE;
    cr_assert_eq(open_with(path, "top,", &err), -EINVAL);
    cr_assert(strstr(err.text, "empty name"), "%s", err.text);
}

/* robomimic's obs group contains arrays of any kind. Arrays that have the shape of images, but cannot be read, are
 * reported. */
Test(refusals, cameras_of_robomimic_that_cannot_be_read)
{
    static const struct {
        const char *type, *said;
        int rank;
        uint64_t dims[4];
    } odd[] = {{"u8", "uint8 (steps, 3, 9, 8)", 4, {STEPS, 3, 9, 8}},
               {"u8", "uint8 (steps, 9, 8, 4)", 4, {STEPS, 9, 8, 4}},
               {"u8", "uint8 (steps, 9, 8)", 3, {STEPS, 9, 8}},
               {"i16", "int16 (steps, 9, 8, 3)", 4, {STEPS, 9, 8, 3}},
               {"f32", "float32 (steps, 9, 8, 3)", 4, {STEPS, 9, 8, 3}}};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_dataset *dataset;
        char name[32], line[1024], file[600];
        snprintf(name, sizeof name, "demos%zu", i);
        const char *path = fixture_synth(name, "robomimic", 1, STEPS, 24, 16, "top");
        snprintf(file, sizeof file, "%s/demos.hdf5", path);
        double *values = calloc(STEPS * 9 * 8 * 4, sizeof *values);
        h5fx_put(file, "/data/demo_0/obs/wrist", odd[i].type, odd[i].rank, odd[i].dims, values);
        free(values);
        struct weir_dataset_config config = {.size = sizeof config, .path = path};
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
        cr_assert_eq(weir_dataset_cameras(dataset), 1);
        cr_assert(weir_dataset_left_out(dataset, 0, line, sizeof line), "%s", odd[i].said);
        cr_assert(strstr(line, "camera wrist is left out: ") && strstr(line, odd[i].said), "%s", line);
        weir_dataset_close(&dataset);
        cr_assert_eq(open_with(path, "top_image", &err), 1, "%s", err.text);
        cr_assert_eq(open_with(path, "wrist", &err), -ENOTSUP);
        cr_assert(strstr(err.text, "camera wrist cannot be read: ") && strstr(err.text, odd[i].said), "%s", err.text);
    }
}

Test(refusals, depth_beside_raw_images_is_passed_over)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = bad_input_episodes(&act);
    double depth[STEPS * 2 * 2] = {0};
    for (int i = 0; i < 3; i++)
        h5fx_put(bad_input_episode(i), "/observations/images/top_depth", "i16", 3, (uint64_t[]){STEPS, 2, 2}, depth);
    cr_assert_eq(open_with(path, NULL, &err), 2, "%s", err.text);
}

Test(refusals, names_too_long_to_keep)
{
    struct weir_err err = WEIR_ERR_NONE;
    char key[128] = "/observations/images/";
    memset(key + strlen(key), 'x', 64);
    const char *path = bad_input_episodes(&act);
    h5fx_put(bad_input_episode(0), key, "u8", 1, (uint64_t[]){1}, (double[]){1});
    cr_assert_eq(open_with(path, NULL, &err), -ENAMETOOLONG);
    cr_assert(strstr(err.text, "/observations/images") && strstr(err.text, "63 bytes"), "%s", err.text);
}

Test(refusals, the_index_is_counted)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.size = sizeof config, .path = bad_input_episodes(&act)};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    size_t state = 3 * STEPS * (4 + 3) * sizeof(float), names = 3 * 2 * WEIR_NAME_MAX;
    cr_assert_gt(weir_dataset_index_bytes(dataset), state + names);
    weir_dataset_close(&dataset);
}

/* ---- folder search ---- */

/* The library is linked statically, so it calls the functions below. */
static int entries_left = -1, entries_code, open_code;

struct dirent *readdir(DIR *folder)
{
    static struct dirent *(*real)(DIR *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    if (entries_left == 0) {
        errno = entries_code;
        return NULL;
    }
    entries_left -= entries_left > 0;
    return real(folder);
}

DIR *fdopendir(int fd)
{
    static DIR *(*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdopendir");
    if (open_code) {
        errno = open_code;
        return NULL;
    }
    return real(fd);
}

static struct weir_dataset *open_tolerant(const char *path, int episodes, int left_out)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .tolerant = true};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_dataset_episodes(dataset), episodes);
    cr_assert_eq(weir_dataset_bad_episodes(dataset), left_out);
    return dataset;
}

Test(refusals, what_may_lead_to_episodes_is_not_passed_over)
{
    static const char *const about[] = {"a dangling link", "a link to itself", "a FIFO", "a socket", "a device"};
    static const char *const names[] = {"d/scene_3", "d/loop", "d/x.hdf5", "d/y.h5", "d/z.hdf5"};
    static const char *const parts[] = {"cannot be followed", "Too many levels", "is a FIFO", "is a socket", "device"};
    const char *path = bad_input_episodes(&act);
    for (int i = 0; i < 5; i++) {
        const char *name = fixture_path(names[i]);
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
        int rc = i == 0   ? symlink("/nowhere/at/all", name)
                 : i == 1 ? symlink("loop", name)
                 : i == 2 ? mkfifo(name, 0666)
                 : i == 3 ? bind(fd, (struct sockaddr *)&address, sizeof address)
                          : mknod(name, S_IFCHR | 0666, 0x103);
        close(fd);
        if (rc == 0)
            bad_input_try(about[i], path, bad_leaves_out_one(-ENOENT, name, parts[i], "--on-error skip"));
        cr_assert(rc == 0 || i == 4, "%s: %s", about[i], strerror(errno)); /* only root can create devices */
        unlink(name);
    }
}

Test(refusals, what_is_no_episode_is_passed_over)
{
    static const char *const names[] = {"d/.hidden.hdf5", "d/episode_9.hdf5.part", "d/notes.txt"};
    bad_input_episodes(&act);
    for (int i = 0; i < 3; i++)
        fclose(fopen(fixture_path(names[i]), "w"));
    cr_assert_eq(mkfifo(fixture_path("d/pipe"), 0666), 0);
    cr_assert_eq(mkdir(fixture_path("d/folder.hdf5"), 0777), 0);
    cr_assert_eq(symlink("..", fixture_path("d/folder.hdf5/back")), 0);
    /* This link leads back to d, which must not be searched twice. */
    cr_assert_eq(symlink("../..", fixture_path("d/folder.hdf5/further")), 0);
    h5fx_write(fixture_path("d/folder.hdf5/episode_7.h5"), &act);
    struct weir_dataset *dataset = open_tolerant(fixture_path("d"), 4, 0);
    weir_dataset_close(&dataset);
}

Test(refusals, folders_that_cannot_be_read)
{
    const char *path = bad_input_episodes(&act);
    chmod(fixture_path("."), 0755);
    mkdir(fixture_path("d/locked"), 0);
    bool root = geteuid() == 0;
    cr_assert(!root || seteuid(65534) == 0);
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset *dataset = open_tolerant(path, 3, 1);
    cr_assert(strstr(weir_dataset_bad_episode(dataset, 0), "/d/locked: folder cannot be read: Permission denied"));
    weir_dataset_close(&dataset);
    cr_assert_eq(open_with(path, NULL, &err), -ENOENT);
    cr_assert(!root || seteuid(0) == 0);
    cr_assert(strstr(err.text, "/d/locked: folder cannot be read: Permission denied"), "%s", err.text);
    rmdir(fixture_path("d/locked"));
    char deep[256] = "d";
    for (int i = 0; i < 18; i++) {
        strcat(deep, "/s");
        mkdir(fixture_path(deep), 0777);
    }
    dataset = open_tolerant(fixture_path("d"), 3, 1);
    cr_assert(strstr(weir_dataset_bad_episode(dataset, 0), "/s: lies more than 16 folders deep"));
    weir_dataset_close(&dataset);
}

/* glibc's fts_read ignores the error and returns fewer entries. */
Test(refusals, a_folder_whose_entries_end_in_an_error)
{
    const char *path = bad_input_episodes(&act);
    struct weir_err err = WEIR_ERR_NONE;
    entries_left = 4; /* "." and "..", if listed first, and two episodes of three */
    entries_code = EIO;
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .tolerant = true};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_lt(weir_dataset_episodes(dataset), 3);
    cr_assert_eq(weir_dataset_bad_episodes(dataset), 1);
    cr_assert(strstr(weir_dataset_bad_episode(dataset, 0), "/d: folder cannot be read to its end: Input/output error"));
    weir_dataset_close(&dataset);
    entries_left = 4;
    cr_assert_eq(open_with(path, NULL, &err), -ENOENT);
    cr_assert(strstr(err.text, "cannot be read to its end: Input/output error"), "%s", err.text);
    const int codes[] = {ENOMEM, EMFILE};
    for (int i = 0; i < 4; i++) { /* the dataset is not at fault, so even a tolerant open fails */
        err = WEIR_ERR_NONE;
        entries_left = i < 2 ? 4 : -1;
        entries_code = codes[i % 2];
        open_code = i < 2 ? 0 : codes[i % 2];
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), -codes[i % 2]);
        cr_assert(strstr(err.text, "/d: folder cannot be read"), "%s", err.text);
    }
    entries_left = -1;
    open_code = 0;
}
