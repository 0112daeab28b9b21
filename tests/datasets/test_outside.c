/* HDF5 objects that refer to other files: missing virtual sources, and files outside the dataset's folder. A
 * virtual frame without a source is a bad frame, never zeros. */
#include "tests/fixtures/bad_input.h"
#include "tests/fixtures/loader_fixture.h"

#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(outside, .init = fixture_open, .fini = fixture_close, .timeout = 300);

enum { STEPS = 6, H = 4, W = 4, FRAME = H * W * 3 };

static const struct h5fx_episode act = {.steps = STEPS, .cameras = {{.name = "top"}, {.name = "wrist"}}};
static const char *const camera = "/observations/images/top";
static const hsize_t whole[4] = {STEPS, H, W, 3}, none[4] = {0};

static hid_t fine(hid_t id)
{
    cr_assert_geq(id, 0);
    return id;
}

/* Writes `steps` frames. Every byte of frame t is first + t. */
static void put_frames(hid_t file, const char *key, hsize_t steps, int first, hid_t plist)
{
    hsize_t dims[4] = {steps, H, W, 3};
    uint8_t *values = malloc(steps * FRAME);
    for (hsize_t i = 0; i < steps * FRAME; i++)
        values[i] = (uint8_t)((hsize_t)first + i / FRAME);
    hid_t links = fine(H5Pcreate(H5P_LINK_CREATE)), space = fine(H5Screate_simple(4, dims, NULL));
    H5Pset_create_intermediate_group(links, 1);
    hid_t dataset = fine(H5Dcreate2(file, key, H5T_NATIVE_UINT8, space, links, plist, H5P_DEFAULT));
    if (first >= 0)
        cr_assert_geq(H5Dwrite(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(links);
    free(values);
}

/* Creates a file with frames. If `first` is negative, no values are written. */
static const char *source_file(const char *name, const char *key, hsize_t steps, int first)
{
    const char *path = fixture_path(name);
    hid_t file = fine(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    put_frames(file, key, steps, first, H5P_DEFAULT);
    H5Fclose(file);
    return path;
}

static hid_t frames_of(hsize_t steps, hsize_t first, hsize_t n)
{
    hsize_t dims[4] = {steps, H, W, 3}, start[4] = {first}, count[4] = {n, H, W, 3};
    hid_t space = fine(H5Screate_simple(4, dims, NULL));
    cr_assert_geq(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL), 0);
    return space;
}

/* Maps n frames, starting at `first`, to the first n frames of a source. */
static void map(hid_t plist, const char *file, const char *key, hsize_t first, hsize_t n)
{
    hid_t from = frames_of(STEPS, first, n), to = frames_of(n, 0, n);
    cr_assert_geq(H5Pset_virtual(plist, from, file, key, to), 0);
    H5Sclose(from);
    H5Sclose(to);
}

/* Replaces a camera with a dataset that has this property list, and closes the list. */
static void put_camera(const char *path, hid_t plist)
{
    hid_t file = fine(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    hid_t space = fine(H5Screate_simple(4, whole, NULL));
    H5Ldelete(file, camera, H5P_DEFAULT);
    H5Dclose(fine(H5Dcreate2(file, camera, H5T_NATIVE_UINT8, space, H5P_DEFAULT, plist, H5P_DEFAULT)));
    H5Sclose(space);
    H5Pclose(plist);
    H5Fclose(file);
}

static hid_t plist_of(void)
{
    uint8_t fill = 99; /* the library's value for missing data */
    hid_t plist = fine(H5Pcreate(H5P_DATASET_CREATE));
    cr_assert_geq(H5Pset_fill_value(plist, H5T_NATIVE_UINT8, &fill), 0);
    return plist;
}

/* Creates one episode whose camera takes frames 0..2 from d/a.part and frames 3..5 from d/b.part. */
static const char *episode(void)
{
    static char path[512];
    mkdir(fixture_path("d"), 0777);
    snprintf(path, sizeof path, "%s", fixture_path("d/episode_0.hdf5"));
    struct h5fx_episode small = act;
    for (int c = 0; c < 2; c++)
        small.cameras[c].width = W, small.cameras[c].height = H;
    h5fx_write(path, &small);
    source_file("d/a.part", "/x/frames", 3, 0);
    source_file("d/b.part", "/x/frames", 3, 3);
    hid_t plist = plist_of();
    map(plist, "a.part", "/x/frames", 0, 3); /* relative to the episode's folder, not to the current one */
    map(plist, "b.part", "/x/frames", 3, 3);
    put_camera(path, plist);
    return path;
}

static struct weir_dataset *open_it(bool external)
{
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.size = sizeof config, .path = fixture_path("d"), .allow_external = external};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    return dataset;
}

/* Fetches all frames of the camera. Frames whose digit is in `good` ("012345") must be as written, and the others must
 * fail with `reason` in the message. */
static void expect_with(bool external, const char *about, const char *good, const char *reason)
{
    struct weir_dataset *dataset = open_it(external);
    for (int t = 0; t < STEPS; t++) {
        uint8_t frame[FRAME];
        size_t length = 0;
        struct weir_err err = WEIR_ERR_NONE;
        int rc = weir_fetch(dataset, 0, 0, t, frame, sizeof frame, &length, &err);
        if (!strchr(good, '0' + t)) {
            cr_assert_lt(rc, 0, "%s: frame %d was read", about, t);
            cr_assert(strstr(err.text, reason), "%s: frame %d: %s", about, t, err.text);
            continue;
        }
        cr_assert_eq(rc, 0, "%s: frame %d: %s", about, t, err.text);
        cr_assert_eq(length, FRAME);
        for (int i = 0; i < FRAME; i++)
            cr_assert_eq(frame[i], t, "%s: frame %d has %d", about, t, frame[i]);
    }
    weir_dataset_close(&dataset);
}

static void expect(const char *about, const char *good, const char *reason)
{
    expect_with(false, about, good, reason);
}

static void replace_with_text(const char *path)
{
    unlink(path);
    FILE *file = fopen(path, "w");
    fputs("these are no frames, and no HDF5 file\n", file);
    fclose(file);
}

/* Several mappings that leave some frames without a source. */
Test(outside, mappings_that_do_not_cover_every_frame)
{
    const char *path = episode();
    hid_t plist = plist_of();
    map(plist, "a.part", "/x/frames", 0, 3);
    map(plist, "b.part", "/x/frames", 4, 1);
    put_camera(path, plist);
    source_file("d/b.part", "/x/frames", 1, 4);
    expect("frames 3 and 5 are mapped to nothing", "0124",
           "the sources of this virtual dataset do not provide this data");
    plist = plist_of(); /* maps only the left half of frame 0 */
    hsize_t half[4] = {1, H, W / 2, 3}, dims[4] = {3, H, W, 3};
    hid_t from = fine(H5Screate_simple(4, whole, NULL)), to = fine(H5Screate_simple(4, dims, NULL));
    H5Sselect_hyperslab(from, H5S_SELECT_SET, none, NULL, half, NULL);
    H5Sselect_hyperslab(to, H5S_SELECT_SET, none, NULL, half, NULL);
    H5Pset_virtual(plist, from, "a.part", "/x/frames", to);
    put_camera(path, plist);
    expect("half a frame", "", "the sources of this virtual dataset do not provide this data");
    H5Sclose(from);
    H5Sclose(to);
    plist = plist_of(); /* even frames from one file, odd frames from the other */
    for (int i = 0; i < 2; i++) {
        hsize_t start[4] = {(hsize_t)i}, stride[4] = {2, 1, 1, 1}, count[4] = {3, H, W, 3};
        hid_t every = fine(H5Screate_simple(4, whole, NULL)), part = fine(H5Screate_simple(4, dims, NULL));
        H5Sselect_hyperslab(every, H5S_SELECT_SET, start, stride, count, NULL);
        H5Pset_virtual(plist, every, i ? "gone.part" : "even.part", "frames", part);
        H5Sclose(every);
        H5Sclose(part);
    }
    put_camera(path, plist);
    hid_t file = fine(H5Fcreate(fixture_path("d/even.part"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    uint8_t values[3 * FRAME];
    for (int i = 0; i < 3 * FRAME; i++)
        values[i] = (uint8_t)(i / FRAME * 2);
    hid_t space = fine(H5Screate_simple(4, dims, NULL));
    hid_t dataset = fine(H5Dcreate2(file, "frames", H5T_NATIVE_UINT8, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Dwrite(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
    expect("every second frame", "024", "gone.part is missing");
}

Test(outside, names_with_numbers_and_sources_that_are_virtual)
{
    const char *path = episode();
    hsize_t one[4] = {1, H, W, 3}, start[4] = {0}, count[4] = {H5S_UNLIMITED, 1, 1, 1};
    hsize_t most[4] = {H5S_UNLIMITED, H, W, 3}, block[4] = {1, H, W, 3};
    hid_t plist = plist_of(), from = fine(H5Screate_simple(4, whole, most)), to = fine(H5Screate_simple(4, one, NULL));
    cr_assert_geq(H5Sselect_hyperslab(from, H5S_SELECT_SET, start, block, count, block), 0);
    cr_assert_geq(H5Pset_virtual(plist, from, "n_%b.part", "/x/frames", to), 0);
    map(plist, "b.part", "/x/frames", 3, 3); /* extends the dataset to six frames */
    hid_t file = fine(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    H5Ldelete(file, camera, H5P_DEFAULT);
    H5Dclose(fine(H5Dcreate2(file, camera, H5T_NATIVE_UINT8, from, H5P_DEFAULT, plist, H5P_DEFAULT)));
    H5Pclose(plist);
    H5Sclose(from);
    H5Sclose(to);
    H5Fclose(file);
    for (int t = 0; t < STEPS; t++) {
        char name[32];
        snprintf(name, sizeof name, "d/n_%d.part", t);
        source_file(name, "/x/frames", 1, t);
    }
    expect("numbered", "012345", "");
    unlink(fixture_path("d/n_1.part"));
    expect("one of them is missing", "02345", "n_1.part is missing");
    /* The camera is mapped to another virtual dataset, which has a missing source. */
    path = episode();
    file = fine(H5Fcreate(fixture_path("d/all.part"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    plist = plist_of();
    map(plist, "a.part", "/x/frames", 0, 3);
    map(plist, "b.part", "/x/frames", 3, 3);
    hid_t space = fine(H5Screate_simple(4, whole, NULL));
    H5Dclose(fine(H5Dcreate2(file, "all", H5T_NATIVE_UINT8, space, H5P_DEFAULT, plist, H5P_DEFAULT)));
    H5Sclose(space);
    H5Pclose(plist);
    H5Fclose(file);
    plist = plist_of();
    map(plist, "all.part", "all", 0, STEPS);
    put_camera(path, plist);
    expect("nested", "012345", "");
    unlink(fixture_path("d/a.part"));
    expect("nested, one is missing", "345", "a.part is missing");
    plist = plist_of();
    map(plist, ".", camera, 0, STEPS); /* mapped to itself */
    put_camera(path, plist);
    expect("its own source", "", "nested more than 8 levels deep");
}

/* An episode whose state is virtual cannot be opened if the source is missing. */
Test(outside, virtual_state_refuses_the_episode)
{
    const char *path = episode();
    hsize_t dims[2] = {STEPS, 4};
    hid_t file = fine(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT)), plist = plist_of();
    hid_t space = fine(H5Screate_simple(2, dims, NULL));
    H5Pset_virtual(plist, space, "state.part", "/qpos", space);
    H5Ldelete(file, "/observations/qpos", H5P_DEFAULT);
    H5Dclose(fine(H5Dcreate2(file, "/observations/qpos", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT)));
    H5Sclose(space);
    H5Pclose(plist);
    H5Fclose(file);
    bad_input_try("no state", fixture_path("d"),
                  bad_stops(-EBADMSG, "/observations/qpos: its virtual source", "state.part is missing"));
    file = fine(H5Fcreate(fixture_path("d/state.part"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    const double values[STEPS * 4] = {1};
    h5fx_put(fixture_path("d/state.part"), "/qpos", "f32", 2, (uint64_t[]){STEPS, 4}, NULL);
    bad_input_try("never written", fixture_path("d"),
                  bad_stops(-EBADMSG, "/observations/qpos: was never written", NULL));
    h5fx_put(fixture_path("d/state.part"), "/qpos", "f32", 2, (uint64_t[]){STEPS, 4}, values);
    struct weir_dataset *dataset = open_it(false);
    cr_assert_eq(weir_dataset_qpos(dataset, 0)[0], 1);
    weir_dataset_close(&dataset);
}

/* Creates a virtual dataset with an unlimited mapping, one row per block. A numbered source ("%b") provides one row per
 * file; a single source grows. */
static void put_unlimited(hid_t file, const char *key, hid_t type, int rank, const hsize_t *row, const char *source)
{
    bool is_numbered = strchr(source, '%');
    hsize_t dims[4] = {1, row[1], row[2], row[3]}, most[4] = {H5S_UNLIMITED, row[1], row[2], row[3]};
    hsize_t count[4] = {H5S_UNLIMITED, 1, 1, 1};
    hid_t plist = fine(H5Pcreate(H5P_DATASET_CREATE)), from = fine(H5Screate_simple(rank, dims, most));
    hid_t to = fine(H5Screate_simple(rank, dims, most));
    cr_assert_geq(H5Sselect_hyperslab(from, H5S_SELECT_SET, none, dims, count, dims), 0);
    if (is_numbered)
        H5Sselect_all(to);
    else
        cr_assert_geq(H5Sselect_hyperslab(to, H5S_SELECT_SET, none, dims, count, dims), 0);
    cr_assert_geq(H5Pset_virtual(plist, from, source, key, to), 0);
    H5Ldelete(file, key, H5P_DEFAULT);
    H5Dclose(fine(H5Dcreate2(file, key, type, from, H5P_DEFAULT, plist, H5P_DEFAULT)));
    H5Sclose(from);
    H5Sclose(to);
    H5Pclose(plist);
}

static const char *part(int i)
{
    char name[32];
    snprintf(name, sizeof name, "d/part_%d.part", i);
    return fixture_path(name);
}

/* Creates an episode with unlimited mappings to d/part_0.part to d/part_5.part, with one step each, or to d/part_0.part
 * alone. */
static void unlimited_episode(const char *source, int parts, uint64_t steps)
{
    static const char *const cameras[] = {"/observations/images/top", "/observations/images/wrist"};
    static const char *const states[] = {"/observations/qpos", "/action"};
    const char *path = episode();
    const double values[STEPS * 4] = {1};
    hid_t file = fine(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    for (int c = 0; c < 2; c++) {
        put_unlimited(file, cameras[c], H5T_NATIVE_UINT8, 4, (hsize_t[]){1, H, W, 3}, source);
        put_unlimited(file, states[c], H5T_IEEE_F32LE, 2, (hsize_t[4]){1, 4}, source);
    }
    H5Fclose(file);
    for (int i = 0; i < parts; i++) {
        file = fine(H5Fcreate(part(i), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        for (int c = 0; c < 2; c++)
            put_frames(file, cameras[c], steps, i, H5P_DEFAULT);
        H5Fclose(file);
        for (int c = 0; c < 2; c++)
            h5fx_put(part(i), states[c], "f32", 2, (uint64_t[]){steps, 4}, values);
    }
}

static void expect_steps(int steps)
{
    struct weir_dataset *dataset = open_it(false);
    cr_assert_eq(weir_dataset_steps(dataset, 0), steps);
    weir_dataset_close(&dataset);
}

/* If a source cannot be opened, the library silently shortens the episode by the rows of this source. */
Test(outside, unlimited_mappings_are_not_cut_short)
{
    unlimited_episode("part_%b.part", STEPS, 1);
    expect("numbered", "012345", "");
    replace_with_text(part(STEPS - 1));
    bad_input_try("the last is no HDF5 file", fixture_path("d"),
                  bad_stops(-EBADMSG, "part_5.part cannot be read", NULL));
    unlink(part(STEPS - 1));
    expect_steps(STEPS - 1); /* without this file, the series is just shorter */
    source_file("d/part_5.part", "/x/frames", 1, 0);
    bad_input_try("another file of that name", fixture_path("d"),
                  bad_stops(-EBADMSG, "part_5.part", "has no such dataset"));
    unlimited_episode("part_0.part", 1, STEPS);
    expect("growing", "012345", "");
    truncate(part(0), (off_t)h5fx_file_bytes(part(0)) - 40);
    bad_input_try("cut", fixture_path("d"), bad_stops(-EBADMSG, "part_0.part cannot be read", NULL));
    unlink(part(0));
    bad_input_try("missing", fixture_path("d"), bad_stops(-EBADMSG, "part_0.part is missing", NULL));
}

/* ---- files outside the folder ---- */

static hid_t external_list(const char *name)
{
    hid_t plist = fine(H5Pcreate(H5P_DATASET_CREATE));
    cr_assert_geq(H5Pset_external(plist, name, 0, STEPS * FRAME), 0);
    return plist;
}

static void put_link(const char *path, const char *to)
{
    hid_t file = fine(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    H5Ldelete(file, camera, H5P_DEFAULT);
    cr_assert_geq(H5Lcreate_external(to, "/x/frames", file, camera, H5P_DEFAULT, H5P_DEFAULT), 0);
    H5Fclose(file);
}

static void put_raw(const char *path, int frames)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; i < frames * FRAME; i++)
        fputc(i / FRAME, file);
    fclose(file);
}

static void put_virtual(const char *path, const char *to)
{
    hid_t plist = plist_of();
    map(plist, to, "/x/frames", 0, STEPS);
    put_camera(path, plist);
}

/* Expects an error with the file's name from every way to open the dataset. */
static void expect_refused(const char *about, const char *name, const char *why)
{
    bad_input_try(about, fixture_path("d"), bad_stops(-EPERM, name, why));
}

Test(outside, what_leads_out_of_the_folder_is_refused)
{
    static const char *const why = "lies outside the dataset's folder";
    char path[512], out[512], secret[512];
    snprintf(path, sizeof path, "%s", episode());
    snprintf(out, sizeof out, "%s", source_file("out.part", "/x/frames", STEPS, 0));
    snprintf(secret, sizeof secret, "%s", fixture_path("raw"));
    put_raw(secret, STEPS);
    put_camera(path, external_list("/etc/passwd"));
    expect_refused("the password file", "/etc/passwd", why);
    put_camera(path, external_list("/proc/self/environ"));
    expect_refused("the environment", "/proc/self/environ", why);
    put_camera(path, external_list(secret));
    expect_refused("external storage", secret, "--allow-external");
    expect_with(true, "external storage, allowed", "012345", "");
    put_virtual(path, out);
    expect_refused("a virtual source", out, why);
    expect_with(true, "a virtual source, allowed", "012345", "");
    put_virtual(path, "../out.part");
    expect_refused("a virtual source through ..", "out.part", why);
    put_link(path, out);
    expect_refused("an external link", out, why);
    expect_with(true, "an external link, allowed", "012345", "");
    put_link(path, "../out.part");
    expect_refused("an external link through ..", "out.part", why);
    /* Symbolic links inside the folder are allowed to lead outside, since they belong to the folder and not to the HDF5
     * file. */
    cr_assert_eq(symlink("../out.part", fixture_path("d/link.part")), 0);
    put_link(path, "link.part");
    expect("a symbolic link in the folder", "012345", "");
    put_virtual(path, "link.part");
    expect("a symbolic link in the folder, virtual source", "012345", "");
}

/* As in a Hugging Face cache, the episode and its neighbours are symbolic links to files elsewhere. */
Test(outside, episodes_that_are_links_are_welcome)
{
    char path[512];
    snprintf(path, sizeof path, "%s", episode());
    put_virtual(path, "side.part");
    mkdir(fixture_path("blobs"), 0777);
    rename(path, fixture_path("blobs/1f"));
    source_file("blobs/2e", "/x/frames", STEPS, 0);
    cr_assert_eq(symlink("../blobs/1f", path), 0);
    cr_assert_eq(symlink("../blobs/2e", fixture_path("d/side.part")), 0);
    expect("a virtual source next to the link", "012345", "");
    put_link(fixture_path("blobs/1f"), "side.part");
    expect("an external link next to the link", "012345", "");
    cr_assert_eq(unlink(fixture_path("d/side.part")), 0);
    /* This source is next to the episode's real file, which is outside the dataset's folder. */
    source_file("blobs/side.part", "/x/frames", STEPS, 0);
    expect_refused("next to the real file", "blobs/side.part", "outside");
    /* A symbolic link to a folder. */
    char moved[512];
    snprintf(moved, sizeof moved, "%s", fixture_path("blobs/episode_3.hdf5"));
    rename(fixture_path("blobs/1f"), moved);
    unlink(path);
    rmdir(fixture_path("d/side"));
    cr_assert_eq(symlink("../blobs", fixture_path("d/folder")), 0);
    expect("a folder that is a link", "012345", "");
}

Test(outside, a_fifo_is_not_waited_for)
{
    char path[512], fifo[512];
    snprintf(path, sizeof path, "%s", episode());
    snprintf(fifo, sizeof fifo, "%s", fixture_path("d/fifo"));
    cr_assert_eq(mkfifo(fifo, 0666), 0);
    put_link(path, "fifo");
    expect_refused("an external link", fifo, "is a FIFO, not a regular file");
    put_virtual(path, "fifo");
    expect_refused("a virtual source", fifo, "is a FIFO, not a regular file");
    put_camera(path, external_list(fifo));
    expect_refused("external storage", fifo, "is a FIFO, not a regular file");
    put_camera(path, external_list("/dev/zero"));
    expect_refused("a device", "/dev/zero", "is a device or socket");
}

Test(outside, external_files_that_are_missing_or_cut)
{
    char path[512], raw[512];
    snprintf(path, sizeof path, "%s", episode());
    snprintf(raw, sizeof raw, "%s", fixture_path("d/raw"));
    put_camera(path, external_list(raw));
    expect("missing", "", "cannot be opened: No such file");
    put_raw(raw, 3);
    expect("cut", "012", "ends too early; was it copied completely?");
    put_raw(raw, STEPS);
    expect("whole", "012345", "");
    put_camera(path, external_list("raw"));
    expect("relative", "", "is not in the current folder, where HDF5 searches it; set HDF5_EXTFILE_PREFIX='${ORIGIN}'");
}

Test(outside, virtual_sources_that_are_not_as_they_were)
{
    char b[512];
    snprintf(b, sizeof b, "%s", fixture_path("d/b.part"));
    episode();
    expect("all there", "012345", "");
    truncate(b, (off_t)h5fx_file_bytes(b) - 40);
    expect("cut", "012", "b.part cannot be read");
    replace_with_text(b);
    expect("text", "012", "b.part cannot be read");
    unlink(b);
    expect("missing", "012", "b.part is missing");
    mkdir(b, 0777);
    expect("a folder", "012", "b.part cannot be read");
    rmdir(b);
    source_file("d/b.part", "/y", 3, 3);
    expect("no such dataset", "012", "has no such dataset");
    source_file("d/b.part", "/x/frames", 2, 3);
    expect("fewer frames", "01234", "does not have the shape");
    source_file("d/b.part", "/x/frames", 3, -1);
    hid_t file = fine(H5Fopen(b, H5F_ACC_RDWR, H5P_DEFAULT)), plist = fine(H5Pcreate(H5P_DATASET_CREATE));
    uint8_t fill = 4;
    H5Pset_fill_value(plist, H5T_NATIVE_UINT8, &fill);
    H5Ldelete(file, "/x/frames", H5P_DEFAULT);
    put_frames(file, "/x/frames", 3, -1, plist);
    H5Pclose(plist);
    H5Fclose(file);
    struct weir_dataset *dataset = open_it(false);
    uint8_t frame[FRAME];
    size_t length;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_fetch(dataset, 0, 0, 4, frame, sizeof frame, &length, &err), 0, "%s", err.text);
    cr_assert_eq(frame[7], 4, "a source that was never written has its own fill value");
    weir_dataset_close(&dataset);
}

/* A wrong address in the chunk index makes one frame bad, but not the episode. */
Test(outside, a_chunk_that_leads_out_of_the_file)
{
    struct h5fx_episode one = act;
    one.cameras[0].storage = H5FX_CHUNK_ONE;
    const char *path = bad_input_episodes(&one), *bad = bad_input_episode(1);
    hid_t file = fine(H5Fopen(bad, H5F_ACC_RDONLY, H5P_DEFAULT)), dataset = fine(H5Dopen2(file, camera, H5P_DEFAULT));
    hsize_t at[4] = {3}, bytes;
    unsigned mask;
    haddr_t address;
    cr_assert_geq(H5Dget_chunk_info_by_coord(dataset, at, &mask, &address, &bytes), 0);
    H5Dclose(dataset);
    H5Fclose(file);
    size_t n = h5fx_file_bytes(bad), found = 0;
    uint8_t *data = malloc(n);
    FILE *stream = fopen(bad, "r");
    cr_assert_eq(fread(data, 1, n, stream), n);
    fclose(stream);
    for (size_t i = 0; i + 8 <= n; i += 8)
        if (memcmp(data + i, &address, 8) == 0)
            found = i;
    cr_assert_gt(found, 0);
    free(data);
    const uint64_t beyond = n + 4096;
    h5fx_poke(bad, found, &beyond, sizeof beyond);
    bad_input_try("a chunk past the end", path,
                  (struct bad_expect){.code = -EBADMSG,
                                      .parts = {bad, "images/top[3]", "invalid offset or size for its chunk"},
                                      .tolerated = BAD_LOSES,
                                      .frames = 1,
                                      .skipped = 1,
                                      .substituted = 1,
                                      .info_is_fine = true});
}
