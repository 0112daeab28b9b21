/* libFuzzer target for hostile archives. Reads the archive as a motion file, and then each of its arrays. This build
 * does not check checksums, so that fuzzing reaches the code after them. The first byte of the input selects options.
 */
#include "datasets/zarr/zip_index.h"
#include "extras/motion/clips/clips_priv.h"
#include "extras/motion/clips/npz.h"
#include "tests/fuzz/fuzz_bytes.h"

#include <math.h>

static void check_clips(const struct weir_motion_clips *c)
{
    const float *const arrays[] = {c->root_pos_w, c->root_vel_w, c->root_ang_vel_w,
                                   c->dof_pos,    c->dof_vel,    c->key_body_pos_w};
    const size_t widths[] = {3, 3, 3, c->dofs, c->dofs, 3 * c->bodies};
    require(c->clips == 1 && c->clip[0].first_frame == 0 && c->clip[0].frames == c->frames && c->frames >= 2);
    require(c->clip[0].fps > 0 && c->clip[0].duration_s > 0 && isfinite(c->clip[0].duration_s));
    require(c->dofs > 0 && c->bodies > 0);
    for (size_t a = 0; a < sizeof arrays / sizeof arrays[0]; a++)
        for (size_t i = 0; i < c->frames * widths[a]; i++)
            require(isfinite(arrays[a][i]));
    for (size_t f = 0; f < c->frames; f++) {
        const float *q = c->root_quat + 4 * f;
        float norm = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
        require(norm > 0.99999f && norm < 1.00001f);
    }
    for (size_t i = 0; i < c->dofs && c->dof_names; i++)
        require(strnlen(c->dof_names[i], WEIR_MOTION_NAME) < WEIR_MOTION_NAME);
    for (size_t i = 0; i < c->bodies && c->body_names; i++)
        require(strnlen(c->body_names[i], WEIR_MOTION_NAME) < WEIR_MOTION_NAME);
}

static void read_motion(const struct weir_raw_file *raw, uint8_t choice)
{
    static const char *const bodies[] = {NULL, "0", "1", "b,a"};
    const struct weir_motion_read_options options = {bodies[choice & 3], bodies[choice >> 2 & 3],
                                                     (enum weir_motion_loop)((choice >> 4 & 3) % 3)};
    struct weir_motion_clips *clips = NULL;
    struct weir_motion_source source;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_motion_raw_npz_open(&source, raw, &err);
    if (rc == 0) {
        rc = weir_motion_part_read(&clips, &source, "fuzz", &options, &err);
        source.ops->close(source.file);
    }
    require(rc == 0 || (*err.text && !strchr(err.text, '\n')));
    if (rc == 0)
        check_clips(clips);
    weir_motion_clips_free(&clips);
}

static void read_arrays(const struct weir_raw_file *raw)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_zip zip;
    struct weir_npz *npz;
    if (weir_zip_open(&zip, raw, &err) < 0)
        return;
    if (weir_npz_open(&npz, raw, &err) == 0) {
        for (uint32_t i = 0; i < zip.n; i++) {
            struct weir_file_array array;
            struct weir_err why = WEIR_ERR_NONE;
            char name[64] = "";
            size_t length = strlen(zip.members[i].name);
            if (length < 5 || length - 4 >= sizeof name)
                continue;
            memcpy(name, zip.members[i].name, length - 4);
            int rc = weir_npz_read(npz, name, &array, &why);
            require(rc == 0 ? !array.values != !array.texts : *why.text && !array.values && !array.texts);
            weir_file_array_free(&array);
        }
        weir_npz_close(&npz);
    }
    weir_zip_close(&zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct fuzz_bytes bytes = {data + 1, size - 1};
    struct weir_raw_file raw = {fuzz_read_inside, &bytes, 0, size - 1};
    read_motion(&raw, data[0]);
    read_arrays(&raw);
    return 0;
}
