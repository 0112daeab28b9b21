/* Tests reading motion files: how arrays are mapped, and which files are refused. compare_motion.py has more tests,
 * which need numpy and h5py. */
#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/tests/npz_fixture.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FRAMES = 3, DOFS = 2, BODIES = 3 };

static struct weir_motion_clips *clips;
static struct weir_err err;

static void start(void)
{
    fixture_open();
    clips = NULL;
    err = (struct weir_err)WEIR_ERR_NONE;
}

static void end(void)
{
    weir_motion_clips_free(&clips);
    fixture_close();
}

TestSuite(motion_read, .init = start, .fini = end);

/* Returns value i of array number a. All tests use the same values. */
static float value(int a, size_t i)
{
    return (float)(100 * a) + (float)i;
}

static const struct {
    const char *isaac_lab, *tracking;
    int rank;
    size_t dims[3];
} arrays[] = {
    {"dof_positions", "joint_pos", 2, {FRAMES, DOFS}},
    {"dof_velocities", "joint_vel", 2, {FRAMES, DOFS}},
    {"body_positions", "body_pos_w", 3, {FRAMES, BODIES, 3}},
    {"body_rotations", "body_quat_w", 3, {FRAMES, BODIES, 4}},
    {"body_linear_velocities", "body_lin_vel_w", 3, {FRAMES, BODIES, 3}},
    {"body_angular_velocities", "body_ang_vel_w", 3, {FRAMES, BODIES, 3}},
};
enum { ARRAYS = sizeof arrays / sizeof arrays[0] };

static size_t fill(int a, float *values)
{
    size_t n = 1;
    for (int d = 0; d < arrays[a].rank; d++)
        n *= arrays[a].dims[d];
    for (size_t i = 0; i < n; i++)
        values[i] = value(a, i);
    return n;
}

/* Writes a file without the arrays listed in leave_out, and returns its path. */
static const char *write_npz(const char *name, bool tracking, const char *leave_out, float fps)
{
    static const size_t one = 1;
    struct npzfx npz = {.deflate = tracking};
    float values[FRAMES * BODIES * 4];
    for (int a = 0; a < (int)ARRAYS; a++) {
        const char *key = tracking ? arrays[a].tracking : arrays[a].isaac_lab;
        fill(a, values);
        if (!leave_out || !strstr(leave_out, key))
            npzfx_floats(&npz, key, arrays[a].rank, arrays[a].dims, values);
    }
    if (!tracking)
        npzfx_npy(&npz, "body_names", "{'descr': '|S2', 'fortran_order': False, 'shape': (3,)}", "r\0b1b2", 6);
    npzfx_floats(&npz, "fps", 1, &one, &fps);
    npzfx_end(&npz);
    const char *path = fixture_path(name);
    npzfx_write(&npz, path);
    npzfx_free(&npz);
    return path;
}

static void check_rows(const char *what, const float *is, int a, size_t body, size_t bodies, size_t width)
{
    for (size_t f = 0; f < FRAMES; f++)
        for (size_t i = 0; i < width; i++)
            cr_assert_eq(is[f * width + i], value(a, (f * bodies + body) * width + i), "%s %zu %zu", what, f, i);
}

static void check_quats(size_t at, size_t body)
{
    for (size_t f = 0; f < FRAMES; f++) {
        double q[4], norm = 0;
        for (size_t i = 0; i < 4; i++) {
            q[i] = (double)value(3, (f * BODIES + body) * 4 + i);
            norm += q[i] * q[i];
        }
        for (size_t i = 0; i < 4; i++)
            cr_assert_float_eq(clips->root_quat[4 * (at + f) + i], q[i] / sqrt(norm), 1e-7);
    }
}

static void check_clip(size_t number, size_t root, const size_t key_bodies[2])
{
    size_t at = clips->clip[number].first_frame;
    cr_assert_eq(clips->clip[number].frames, FRAMES);
    cr_assert(clips->dofs == DOFS && clips->bodies == 2);
    check_rows("dofs", clips->dof_pos + at * DOFS, 0, 0, 1, DOFS);
    check_rows("dof rates", clips->dof_vel + at * DOFS, 1, 0, 1, DOFS);
    check_rows("root", clips->root_pos_w + 3 * at, 2, root, BODIES, 3);
    check_rows("root rates", clips->root_vel_w + 3 * at, 4, root, BODIES, 3);
    check_rows("root turns", clips->root_ang_vel_w + 3 * at, 5, root, BODIES, 3);
    check_quats(at, root);
    for (size_t k = 0; k < 2; k++)
        for (size_t f = 0; f < FRAMES; f++)
            for (size_t i = 0; i < 3; i++)
                cr_assert_eq(clips->key_body_pos_w[((at + f) * 2 + k) * 3 + i],
                             value(2, (f * BODIES + key_bodies[k]) * 3 + i));
}

static const size_t others[] = {1, 2};

Test(motion_read, npz)
{
    for (int tracking = 0; tracking < 2; tracking++) {
        weir_motion_clips_free(&clips);
        cr_assert_eq(weir_motion_read(&clips, write_npz("walk.b.npz", tracking, NULL, 50), NULL, &err), 0, "%s",
                     err.text);
        check_clip(0, 0, others);
        cr_assert(clips->clips == 1 && clips->frames == FRAMES && !clips->dof_names);
        cr_assert_str_eq(clips->clip[0].name, "walk.b");
        cr_assert(clips->clip[0].fps == 50 && clips->clip[0].duration_s == 0.04 && !clips->clip[0].loop);
        cr_assert(tracking ? !clips->body_names : strcmp(clips->body_names[1], "b2") == 0);
    }
}

Test(motion_read, options)
{
    const char *path = write_npz("a.npz", false, NULL, 50);
    const struct weir_motion_read_options named = {"b2", "r,b1", WEIR_MOTION_LOOP_ALWAYS};
    cr_assert_eq(weir_motion_read(&clips, path, &named, &err), 0, "%s", err.text);
    check_clip(0, 2, (const size_t[]){0, 1});
    cr_assert(clips->clip[0].loop && strcmp(clips->body_names[0], "r") == 0);
    static const char *const bad[] = {"", "b", "b1,", ",b1", "3", "-1", "b1 ", "0000001"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        weir_motion_clips_free(&clips);
        err = (struct weir_err)WEIR_ERR_NONE;
        const struct weir_motion_read_options options = {.key_bodies = bad[i]};
        cr_assert_eq(weir_motion_read(&clips, path, &options, &err), -EINVAL, "'%s': %s", bad[i], err.text);
        cr_assert(strstr(err.text, "its bodies are r, b1, b2") && !clips, "%s", err.text);
    }
}

/* Missing velocities are forward differences, and the last one is repeated. */
Test(motion_read, without_velocities)
{
    const char *path = write_npz("a.npz", false, "dof_velocities body_linear_velocities body_angular_velocities", 10);
    cr_assert_eq(weir_motion_read(&clips, path, NULL, &err), 0, "%s", err.text);
    for (size_t f = 0; f < FRAMES; f++) {
        cr_assert_float_eq(clips->dof_vel[f * DOFS], DOFS * 10.0, 1e-4);
        cr_assert_float_eq(clips->root_vel_w[3 * f + 2], BODIES * 3 * 10.0, 1e-3);
    }
    /* the rotation to the next frame has the angle 2 acos |q0 . q1| */
    for (size_t f = 0; f + 1 < FRAMES; f++) {
        const float *q = clips->root_quat + 4 * f, *w = clips->root_ang_vel_w + 3 * f;
        double dot = 0, rate = sqrt((double)(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]));
        for (int i = 0; i < 4; i++)
            dot += (double)q[i] * (double)q[i + 4];
        cr_assert_float_eq(rate, 10 * 2 * acos(fmin(fabs(dot), 1)), 5e-2);
    }
    cr_assert_arr_eq(clips->root_ang_vel_w + 6, clips->root_ang_vel_w + 3, 3 * sizeof(float));
}

Test(motion_read, folders)
{
    cr_assert_eq(mkdir(fixture_path("many"), 0777), 0);
    write_npz("many/walk_10.npz", false, NULL, 10);
    write_npz("many/walk_9.npz", false, NULL, 9);
    fclose(fopen(fixture_path("many/notes.txt"), "w"));
    cr_assert_eq(weir_motion_read(&clips, fixture_path("many"), NULL, &err), 0, "%s", err.text);
    cr_assert_eq(clips->clips, 2);
    cr_assert_str_eq(clips->clip[0].name, "walk_9");
    cr_assert_str_eq(clips->clip[1].name, "walk_10");
    check_clip(0, 0, others);
    check_clip(1, 0, others);
    weir_motion_clips_free(&clips);
    const char *paths[3] = {fixture_path("many/walk_10.npz"), fixture_path("many"), fixture_path("many/walk_9.npz")};
    cr_assert_eq(weir_motion_read_paths(&clips, paths, 3, NULL, &err), 0, "%s", err.text);
    cr_assert(clips->clips == 4 && clips->clip[0].fps == 10 && clips->clip[3].fps == 9);
    weir_motion_clips_free(&clips);
    cr_assert_eq(weir_motion_read_paths(&clips, paths, 0, NULL, &err), -EINVAL);
}

static void refused(const char *path, int code, const char *words)
{
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_assert_eq(weir_motion_read(&clips, path, NULL, &err), code, "%s: %s", words, err.text);
    cr_assert(!clips && strstr(err.text, words) && strncmp(err.text, path, strlen(path)) == 0, "%s", err.text);
}

Test(motion_read, refused)
{
    refused(write_npz("a.npz", false, "body_rotations", 50), -ENOENT,
            "body_rotations: is not in the file; Isaac Lab's motion files contain it");
    refused(write_npz("a.npz", true, "joint_pos", 50), -EBADMSG, "is not a motion file");
    refused(write_npz("a.npz", true, NULL, 0), -EINVAL, "fps is 0; it must be a positive number");
    refused(write_npz("a.npz", true, NULL, -INFINITY), -EINVAL, "fps is -inf");
    refused(write_npz("a.npz", true, NULL, 1e-44f), -EINVAL, "fps is ");
    cr_assert_eq(mkdir(fixture_path("none"), 0777), 0);
    refused(fixture_path("none"), -ENOENT, "no motion files");
    refused(fixture_path("nowhere"), -ENOENT, "No such file");
    FILE *file = fopen(fixture_path("one.npy"), "wb");
    fputs("\x93NUMPY", file);
    fclose(file);
    refused(fixture_path("one.npy"), -EBADMSG, "is a single numpy array");
}

/* The first bytes of a file determine its type, whatever its name is. */
Test(motion_read, npz_by_another_name)
{
    static const char *const names[] = {"walk.h5", "walk.hdf5", "walk"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        weir_motion_clips_free(&clips);
        cr_assert_eq(weir_motion_read(&clips, write_npz(names[i], false, NULL, 50), NULL, &err), 0, "%s", err.text);
        check_clip(0, 0, others);
    }
}

Test(motion_read, folders_named_as_files)
{
    cr_assert_eq(mkdir(fixture_path("walk.npz"), 0777), 0);
    const char *folder = fixture_path(".");
    cr_assert_eq(weir_motion_read(&clips, folder, NULL, &err), -EINVAL);
    cr_assert(strstr(err.text, "walk.npz: is not a regular file"), "%s", err.text);
}

/* The archive has 16 KiB and unpacks to 16 MiB of zeros. It is refused before the other arrays are read. */
Test(motion_read, too_many_frames)
{
    static const char head[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (16777217, 1)}";
    const size_t one = 1, n = WEIR_MOTION_FRAMES_MAX + (size_t)1;
    const float fps = 50;
    struct npzfx npz = {.deflate = true};
    uint8_t *zeros = calloc(n, 1);
    cr_assert_not_null(zeros);
    npzfx_npy(&npz, "dof_positions", head, zeros, n);
    npzfx_floats(&npz, "fps", 1, &one, &fps);
    npzfx_end(&npz);
    npzfx_write(&npz, fixture_path("long.npz"));
    npzfx_free(&npz);
    free(zeros);
    refused(fixture_path("long.npz"), -EFBIG, "dof_positions: has 16777217 frames; at most 16777216 are supported");
}

/* ---- HDF5 ---- */

static void put_h5(hid_t group, const char *key, int rank, const size_t *dims, const float *values)
{
    hsize_t sizes[3];
    for (int d = 0; d < rank; d++)
        sizes[d] = dims[d];
    hid_t space = rank ? H5Screate_simple(rank, sizes, NULL) : H5Screate(H5S_SCALAR);
    hid_t set = H5Dcreate2(group, key, H5T_IEEE_F64BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(set);
    H5Sclose(space);
}

static void put_clip(hid_t group, bool tracking, float fps)
{
    float values[FRAMES * BODIES * 4];
    for (int a = 0; a < (int)ARRAYS; a++) {
        fill(a, values);
        put_h5(group, tracking ? arrays[a].tracking : arrays[a].isaac_lab, arrays[a].rank, arrays[a].dims, values);
    }
    put_h5(group, "fps", 0, NULL, &fps);
}

static void put_names(hid_t group, const char *key, const char *const *names, size_t n)
{
    hsize_t size = n;
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &size, NULL);
    H5Tset_size(type, H5T_VARIABLE);
    hid_t set = H5Dcreate2(group, key, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, names), 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
}

Test(motion_read, hdf5_root)
{
    const char *path = fixture_path("walk.h5"), *const names[] = {"pelvis", "", "head"};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    put_clip(file, true, 30);
    put_names(file, "body_names", names, 3);
    H5Fclose(file);
    cr_assert_eq(weir_motion_read(&clips, path, NULL, &err), 0, "%s", err.text);
    check_clip(0, 0, others);
    cr_assert_str_eq(clips->clip[0].name, "walk");
    cr_assert_str_eq(clips->body_names[0], "");
    cr_assert_str_eq(clips->body_names[1], "head");
}

Test(motion_read, hdf5_groups)
{
    const char *path = fixture_path("many.hdf5"), *const groups[] = {"clip_10", "clip_9"};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 2; i++) {
        hid_t group = H5Gcreate2(file, groups[i], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        put_clip(group, false, 10 - (float)i);
        H5Gclose(group);
    }
    H5Fclose(file);
    cr_assert_eq(weir_motion_read(&clips, path, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(clips->clips, 2);
    cr_assert_str_eq(clips->clip[0].name, "many/clip_9");
    cr_assert(clips->clip[0].fps == 9 && clips->clip[1].fps == 10);
    check_clip(1, 0, others);
    weir_motion_clips_free(&clips);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "clip_11", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    refused(path, -EBADMSG, "/clip_11: is not a motion file");
}

Test(motion_read, hdf5_refused)
{
    const char *path = fixture_path("bad.hdf5");
    const float fps = 30;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    refused(path, -EBADMSG, "is not a motion file");
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    put_clip(file, false, fps);
    H5Ldelete(file, "dof_velocities", H5P_DEFAULT);
    put_names(file, "dof_velocities", (const char *const[]){"a", "b"}, 2);
    H5Fclose(file);
    refused(path, -EBADMSG, "dof_velocities: holds strings; it must hold numbers");
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(file, "dof_velocities", H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "dof_velocities", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Ldelete(file, "fps", H5P_DEFAULT);
    H5Fclose(file);
    refused(path, -ENOENT, "fps: is not in the file");
    fclose(fopen(path, "wb"));
    refused(path, -EBADMSG, "not an HDF5 file");
}
