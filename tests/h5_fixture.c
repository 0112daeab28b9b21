#include "tests/h5_fixture.h"
#include "tests/loader_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

#define CHECK(id) checked((int64_t)(id), #id)

static int64_t checked(int64_t id, const char *what)
{
    if (id < 0)
        fixture_die("%s failed", what);
    return id;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* ---- frames ---- */

struct frames {
    int n;
    uint8_t **bytes;
    size_t *lengths, longest;
};

static uint8_t *blob(size_t max, uint64_t *random, size_t *length)
{
    *length = 1 + next_random(random) % max;
    uint8_t *bytes = malloc(*length);
    for (size_t i = 0; i < *length; i++)
        bytes[i] = (uint8_t)next_random(random);
    return bytes;
}

static struct frames make_frames(const struct h5fx_camera *camera, int steps, int seed)
{
    struct frames frames = {steps, calloc((size_t)steps + 1, sizeof *frames.bytes),
                            calloc((size_t)steps + 1, sizeof *frames.lengths), 0};
    uint64_t random = (uint64_t)seed * 77 + (uint64_t)camera->name[0];
    for (int t = 0; t < steps; t++) {
        int tag = seed * 1000 + t;
        if (camera->content == H5FX_RAW) {
            frames.lengths[t] = (size_t)camera->width * (size_t)camera->height * 3;
            frames.bytes[t] = malloc(frames.lengths[t]);
            for (size_t i = 0; i < frames.lengths[t]; i++)
                frames.bytes[t][i] = (uint8_t)next_random(&random);
        } else if (camera->blob_max) {
            frames.bytes[t] = blob(camera->blob_max, &random, &frames.lengths[t]);
        } else {
            frames.bytes[t] = h5fx_jpeg(H5FX_JPEG_420, camera->width, camera->height, tag, &frames.lengths[t]);
        }
        frames.longest = frames.lengths[t] > frames.longest ? frames.lengths[t] : frames.longest;
    }
    return frames;
}

static void free_frames(struct frames *frames)
{
    for (int t = 0; t < frames->n; t++)
        free(frames->bytes[t]);
    free(frames->bytes);
    free(frames->lengths);
}

/* ---- datasets ---- */

static void make_parents(hid_t file, const char *key)
{
    char part[256];
    for (const char *at = strchr(key + 1, '/'); at; at = strchr(at + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(at - key), key);
        if (H5Lexists(file, part, H5P_DEFAULT) > 0)
            continue;
        H5Gclose((hid_t)CHECK(H5Gcreate2(file, part, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
    }
}

static hid_t creation(const struct h5fx_camera *camera, const char *path, int rank, const hsize_t *dims)
{
    hid_t plist = (hid_t)CHECK(H5Pcreate(H5P_DATASET_CREATE));
    hsize_t chunk[4] = {1, dims[1], dims[2], dims[3]};
    uint8_t fill = 7;
    char raw[1100];
    H5Pset_obj_track_times(plist, false);
    if (camera->content == H5FX_RAW)
        CHECK(H5Pset_fill_value(plist, H5T_NATIVE_UINT8, &fill));
    switch (camera->storage) {
    case H5FX_CHUNK_MANY:
        chunk[0] = 4;
        break;
    case H5FX_CHUNK_CUT:
        chunk[1] = (dims[1] + 1) / 2;
        break;
    case H5FX_GZIP:
        chunk[0] = camera->chunk_rows ? (hsize_t)camera->chunk_rows : 2;
        CHECK(H5Pset_deflate(plist, 4));
        break;
    case H5FX_CHUNK_ONE:
    case H5FX_CHUNK_HALF:
        break;
    case H5FX_COMPACT:
        CHECK(H5Pset_layout(plist, H5D_COMPACT));
        return plist;
    case H5FX_EXTERNAL_RAW:
        snprintf(raw, sizeof raw, "%s.raw", path);
        CHECK(H5Pset_external(plist, raw, 16, H5F_UNLIMITED));
        return plist;
    default:
        return plist;
    }
    CHECK(H5Pset_chunk(plist, rank, chunk));
    return plist;
}

static void write_rows(hid_t dataset, hid_t type, const struct h5fx_camera *camera, const struct frames *frames,
                       int rank, const hsize_t *dims)
{
    hid_t space = (hid_t)CHECK(H5Dget_space(dataset));
    uint8_t *row = calloc(1, frames->longest + 1);
    hsize_t one[4] = {1, dims[1], dims[2], dims[3]};
    hid_t memory = (hid_t)CHECK(H5Screate_simple(rank, one, NULL));
    for (int t = 0; t < frames->n; t++) {
        if (camera->storage == H5FX_UNWRITTEN || (camera->storage == H5FX_CHUNK_HALF && t % 2))
            continue;
        hsize_t start[4] = {(hsize_t)t};
        hvl_t element = {frames->lengths[t], frames->bytes[t]};
        memset(row, 0, frames->longest);
        memcpy(row, frames->bytes[t], frames->lengths[t]);
        CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, one, NULL));
        CHECK(
            H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, camera->content == H5FX_VLEN ? (void *)&element : row));
    }
    free(row);
    H5Sclose(memory);
    H5Sclose(space);
}

static void write_camera(hid_t file, const char *path, const char *key, const struct h5fx_camera *camera,
                         const struct frames *frames)
{
    int rank = camera->content == H5FX_RAW ? 4 : camera->content == H5FX_PADDED ? 2 : 1;
    hsize_t dims[4] = {(hsize_t)frames->n, (hsize_t)camera->height, (hsize_t)camera->width, 3};
    hid_t base = camera->is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    if (camera->content == H5FX_PADDED)
        dims[1] = frames->longest;
    hid_t type = camera->content == H5FX_VLEN ? (hid_t)CHECK(H5Tvlen_create(base)) : (hid_t)CHECK(H5Tcopy(base));
    hsize_t most[4] = {camera->chunk_rows ? H5S_UNLIMITED : dims[0], dims[1], dims[2], dims[3]};
    hid_t space = (hid_t)CHECK(H5Screate_simple(rank, dims, most));
    hid_t plist = creation(camera, path, rank, dims);
    make_parents(file, key);
    hid_t dataset = (hid_t)CHECK(H5Dcreate2(file, key, type, space, H5P_DEFAULT, plist, H5P_DEFAULT));
    write_rows(dataset, type, camera, frames, rank, dims);
    H5Dclose(dataset);
    H5Pclose(plist);
    H5Sclose(space);
    H5Tclose(type);
}

/* The same shape and type as source, mapped onto it row for row. */
static void write_virtual(hid_t file, const char *key, const char *other, hid_t source)
{
    hid_t space = (hid_t)CHECK(H5Dget_space(source)), type = (hid_t)CHECK(H5Dget_type(source));
    hid_t plist = (hid_t)CHECK(H5Pcreate(H5P_DATASET_CREATE));
    CHECK(H5Pset_virtual(plist, space, other, "/there/frames", space));
    make_parents(file, key);
    H5Dclose((hid_t)CHECK(H5Dcreate2(file, key, type, space, H5P_DEFAULT, plist, H5P_DEFAULT)));
    H5Pclose(plist);
    H5Tclose(type);
    H5Sclose(space);
}

/* Frames that lie in another file, and the way to them. */
static void write_elsewhere(hid_t file, const char *path, const char *key, const struct h5fx_camera *camera,
                            const struct frames *frames)
{
    char name[1100];
    struct h5fx_camera plain = *camera;
    plain.storage = H5FX_CONTIGUOUS;
    snprintf(name, sizeof name, "%s.other", path);
    hid_t other = (hid_t)CHECK(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    write_camera(other, name, "/there/frames", &plain, frames);
    if (camera->storage == H5FX_VIRTUAL) {
        hid_t source = (hid_t)CHECK(H5Dopen2(other, "/there/frames", H5P_DEFAULT));
        write_virtual(file, key, name, source);
        H5Dclose(source);
    } else {
        make_parents(file, key);
        CHECK(H5Lcreate_external(name, "/there/frames", file, key, H5P_DEFAULT, H5P_DEFAULT));
    }
    H5Fclose(other);
}

/* ---- episodes ---- */

const char *h5fx_key(const struct h5fx_episode *episode, const char *camera)
{
    static char keys[8][128];
    static int next;
    char *key = keys[next++ % 8];
    snprintf(key, sizeof keys[0], episode->astrobench ? "/observations/rgb_%s" : "/observations/images/%s", camera);
    return key;
}

static void write_numbers(hid_t file, const char *key, hid_t stored, int rank, const hsize_t *dims,
                          const double *values)
{
    hid_t space = (hid_t)CHECK(H5Screate_simple(rank, dims, NULL));
    make_parents(file, key);
    hid_t dataset = (hid_t)CHECK(H5Dcreate2(file, key, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (values)
        CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    H5Dclose(dataset);
    H5Sclose(space);
}

static void write_state(hid_t file, const char *key, int steps, int dim, uint64_t random)
{
    hsize_t dims[2] = {(hsize_t)steps, (hsize_t)dim};
    double *values = malloc(sizeof *values * (size_t)(steps * dim + 1));
    for (int i = 0; i < steps * dim; i++)
        values[i] = next_random(&random) / 1e9 - 1;
    write_numbers(file, key, H5T_IEEE_F32LE, 2, dims, values);
    free(values);
}

static hid_t create_file(const char *path, const struct h5fx_episode *episode)
{
    hid_t create = (hid_t)CHECK(H5Pcreate(H5P_FILE_CREATE)), access_plist = (hid_t)CHECK(H5Pcreate(H5P_FILE_ACCESS));
    CHECK(H5Pset_userblock(create, episode->user_block));
    if (episode->latest)
        CHECK(H5Pset_libver_bounds(access_plist, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    hid_t file = (hid_t)CHECK(H5Fcreate(path, H5F_ACC_TRUNC, create, access_plist));
    H5Pclose(create);
    H5Pclose(access_plist);
    return file;
}

static struct h5fx_camera complete(struct h5fx_camera camera)
{
    camera.width = camera.width ? camera.width : 24;
    camera.height = camera.height ? camera.height : 16;
    return camera;
}

/* compress_len has its rows in the order of the sorted names. */
static int row_of(const struct h5fx_episode *episode, int camera)
{
    int row = 0;
    for (int c = 0; c < H5FX_CAMERAS && episode->cameras[c].name; c++)
        row += episode->cameras[c].content == H5FX_PADDED &&
               strcmp(episode->cameras[c].name, episode->cameras[camera].name) < 0;
    return row;
}

static int write_cameras(hid_t file, const char *path, const struct h5fx_episode *episode, int steps, double *lengths)
{
    int padded = 0;
    for (int c = 0; c < H5FX_CAMERAS && episode->cameras[c].name; c++) {
        struct h5fx_camera camera = complete(episode->cameras[c]);
        struct frames frames = make_frames(&camera, camera.steps ? camera.steps : steps, episode->seed + c);
        const char *key = h5fx_key(episode, camera.name);
        if (camera.storage == H5FX_VIRTUAL || camera.storage == H5FX_EXTERNAL_LINK) {
            write_elsewhere(file, path, key, &camera, &frames);
        } else if (camera.storage == H5FX_SOFT_LINK) {
            write_camera(file, path, "/real/place", &camera, &frames);
            make_parents(file, key);
            CHECK(H5Lcreate_soft("/real/place", file, key, H5P_DEFAULT, H5P_DEFAULT));
        } else {
            write_camera(file, path, key, &camera, &frames);
        }
        for (int t = 0; t < steps && camera.content == H5FX_PADDED; t++)
            lengths[row_of(episode, c) * steps + t] = t < frames.n ? (double)frames.lengths[t] : 1;
        padded += camera.content == H5FX_PADDED;
        free_frames(&frames);
    }
    return padded;
}

void h5fx_write(const char *path, const struct h5fx_episode *episode)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    int steps = episode->steps ? episode->steps : 10;
    hid_t file = create_file(path, episode);
    double *lengths = calloc((size_t)steps * H5FX_CAMERAS, sizeof *lengths);
    int padded = write_cameras(file, path, episode, steps, lengths);
    hsize_t dims[2] = {(hsize_t)padded, (hsize_t)steps};
    if (padded && !episode->no_lengths)
        write_numbers(file, "/compress_len", H5T_IEEE_F32LE, 2, dims, lengths);
    free(lengths);
    bool bench = episode->astrobench;
    write_state(file, bench ? "/observations/joint_pos" : "/observations/qpos", steps,
                episode->qpos_dim ? episode->qpos_dim : 4, (uint64_t)episode->seed * 2);
    write_state(file, bench ? "/action/joint_positions" : "/action", steps,
                episode->action_dim ? episode->action_dim : 3, (uint64_t)episode->seed * 2 + 1);
    CHECK(H5Fclose(file));
}

/* ---- changing ---- */

static hid_t type_of(const char *name)
{
    if (strcmp(name, "str") == 0) {
        hid_t type = (hid_t)CHECK(H5Tcopy(H5T_C_S1));
        CHECK(H5Tset_size(type, 16));
        return type;
    }
    const struct {
        const char *name;
        hid_t type;
    } known[] = {{"f32", H5T_IEEE_F32LE}, {"f32be", H5T_IEEE_F32BE}, {"f64", H5T_IEEE_F64LE}, {"f64be", H5T_IEEE_F64BE},
                 {"i16", H5T_STD_I16LE},  {"i32be", H5T_STD_I32BE},  {"u8", H5T_STD_U8LE},    {"i8", H5T_STD_I8LE}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return (hid_t)CHECK(H5Tcopy(known[i].type));
    fixture_die("no type %s", name);
}

void h5fx_put(const char *path, const char *key, const char *type, int rank, const uint64_t *dims, const double *values)
{
    hsize_t sizes[16];
    for (int i = 0; i < rank; i++)
        sizes[i] = dims[i];
    hid_t file = (hid_t)CHECK(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    if (H5Lexists(file, key, H5P_DEFAULT) > 0)
        CHECK(H5Ldelete(file, key, H5P_DEFAULT));
    if (type) {
        hid_t stored = type_of(type);
        write_numbers(file, key, stored, rank, sizes, values);
        H5Tclose(stored);
    }
    CHECK(H5Fclose(file));
}

/* Sets one value of row 0 of /compress_len. */
static void set_length(hid_t file, int t, size_t n)
{
    hid_t dataset = (hid_t)CHECK(H5Dopen2(file, "/compress_len", H5P_DEFAULT)), space = H5Dget_space(dataset);
    hsize_t at[2] = {0, (hsize_t)t}, one = 1;
    hid_t memory = (hid_t)CHECK(H5Screate_simple(1, &one, NULL));
    double value = (double)n;
    CHECK(H5Sselect_elements(space, H5S_SELECT_SET, 1, at));
    CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value));
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(dataset);
}

void h5fx_replace(const char *path, const char *key, int t, const void *bytes, size_t n)
{
    hid_t file = (hid_t)CHECK(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    hid_t dataset = (hid_t)CHECK(H5Dopen2(file, key, H5P_DEFAULT));
    hid_t type = (hid_t)CHECK(H5Dget_type(dataset)), space = (hid_t)CHECK(H5Dget_space(dataset));
    hsize_t dims[2] = {0, 0}, start[2] = {(hsize_t)t, 0};
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    hvl_t element = {n, (void *)bytes};
    uint8_t *row = calloc(1, dims[1] + n);
    memcpy(row, bytes, n);
    if (rank == 2 && n > dims[1])
        fixture_die("%zu bytes are more than a row has", n);
    dims[0] = 1;
    hid_t memory = (hid_t)CHECK(H5Screate_simple(rank, dims, NULL));
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, dims, NULL));
    CHECK(H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, rank == 1 ? (void *)&element : row));
    if (rank == 2)
        set_length(file, t, n);
    free(row);
    H5Sclose(memory);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
    CHECK(H5Fclose(file));
}

void h5fx_poke(const char *path, uint64_t offset, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, bytes, n, (off_t)offset) != (ssize_t)n)
        fixture_die("%s: %s", path, strerror(errno));
    close(fd);
}

uint64_t h5fx_references(const char *path, const char *key)
{
    hid_t file = (hid_t)CHECK(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t dataset = (hid_t)CHECK(H5Dopen2(file, key, H5P_DEFAULT));
    haddr_t offset = H5Dget_offset(dataset);
    H5Dclose(dataset);
    H5Fclose(file);
    if (offset == HADDR_UNDEF)
        fixture_die("%s: %s is not contiguous", path, key);
    return offset;
}

uint64_t h5fx_file_bytes(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        fixture_die("%s: %s", path, strerror(errno));
    return (uint64_t)st.st_size;
}

/* ---- what the library reads ---- */

static uint8_t *read_element(hid_t dataset, hid_t type, hid_t memory, hid_t space, size_t *length)
{
    hvl_t element = {0, NULL};
    CHECK(H5Dread(dataset, type, memory, space, H5P_DEFAULT, &element));
    uint8_t *bytes = malloc(element.len + 1);
    if (element.len)
        memcpy(bytes, element.p, element.len);
    *length = element.len;
    H5Dvlen_reclaim(type, memory, H5P_DEFAULT, &element);
    return bytes;
}

uint8_t *h5fx_read(const char *path, const char *key, int t, size_t *length)
{
    hid_t file = (hid_t)CHECK(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t dataset = (hid_t)CHECK(H5Dopen2(file, key, H5P_DEFAULT));
    hid_t type = (hid_t)CHECK(H5Dget_type(dataset)), space = (hid_t)CHECK(H5Dget_space(dataset));
    hsize_t dims[8], start[8] = {(hsize_t)t};
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    dims[0] = 1;
    *length = 1;
    for (int i = 1; i < rank; i++)
        *length *= dims[i];
    hid_t memory = (hid_t)CHECK(H5Screate_simple(rank, dims, NULL));
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, dims, NULL));
    uint8_t *bytes;
    if (H5Tget_class(type) == H5T_VLEN) {
        bytes = read_element(dataset, type, memory, space, length);
    } else {
        bytes = malloc(*length + 1);
        CHECK(H5Dread(dataset, type, memory, space, H5P_DEFAULT, bytes));
    }
    H5Sclose(memory);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
    H5Fclose(file);
    return bytes;
}

double *h5fx_read_doubles(const char *path, const char *key, int *rows, int *columns)
{
    hid_t file = (hid_t)CHECK(H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t dataset = (hid_t)CHECK(H5Dopen2(file, key, H5P_DEFAULT));
    hid_t space = (hid_t)CHECK(H5Dget_space(dataset));
    hsize_t dims[8] = {0, 1};
    CHECK(H5Sget_simple_extent_dims(space, dims, NULL));
    double *values = malloc(sizeof *values * (dims[0] * dims[1] + 1));
    CHECK(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    *rows = (int)dims[0];
    *columns = (int)dims[1];
    H5Sclose(space);
    H5Dclose(dataset);
    H5Fclose(file);
    return values;
}
