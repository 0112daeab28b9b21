/* Packed files: copies contain the source's samples, interrupted copies are resumed, and damage is reported as an
 * error. */
#include "base/files.h"
#include "datasets/format_ops.h"
#include "datasets/packed/packed_file.h"
#include "tests/fixtures/copy_fixture.h"
#include "tests/fixtures/loader_fixture.h"

#include "base/hash.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EPISODES = 3, STEPS = 4 };

TestSuite(packed, .init = fixture_open, .fini = fixture_close);

static char path[512];

/* Returns the path of a new copy in its own folder. */
static const char *new_copy(const char *folder)
{
    const char *in = fixture_path(folder);
    mkdir(in, 0777);
    snprintf(path, sizeof path, "%s/copy.weir", in);
    return path;
}

static char *sums_of(const char *data, const char *cameras)
{
    struct weir_loader_config config;
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    weir_loader_config_default(&config);
    config.data = data;
    config.cameras = cameras;
    config.num_epochs = 1;
    config.batch_size = 2;
    char *sums = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s: %s", data, err.text);
    cr_assert(strlen(sums) > 0);
    return sums;
}

static void same_samples(const char *source, const char *copy, const char *cameras)
{
    char *a = sums_of(source, cameras), *b = sums_of(copy, cameras);
    cr_assert_str_eq(a, b, "%s", source);
    free(a);
    free(b);
}

static uint8_t *whole_file(const char *name, size_t *n)
{
    struct stat st;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    cr_assert(fd >= 0 && fstat(fd, &st) == 0);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    cr_assert_eq(pread(fd, bytes, (size_t)st.st_size, 0), st.st_size);
    close(fd);
    *n = (size_t)st.st_size;
    return bytes;
}

static void write_file(const char *name, const uint8_t *bytes, size_t n)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    cr_assert(fd >= 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    close(fd);
}

static int open_it(const char *name, struct weir_err *err)
{
    struct weir_dataset_config config = {.size = sizeof config, .path = name};
    struct weir_file_result result;
    weir_file_open(&result, name, &weir_format_packed, &(struct weir_opening){.config = &config});
    *err = result.err;
    weir_file_index_close(&result.file);
    return result.rc;
}

/* ---- copies ---- */

Test(packed, the_samples_of_the_source)
{
    static const char *const formats[] = {"act-jpeg", "act", "astrobench", "robomimic", "agilex"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char name[64];
        const char *source = fixture_synth(formats[i], formats[i], EPISODES, STEPS, 32, 24, "left,top");
        snprintf(name, sizeof name, "copy-%s", formats[i]);
        cr_assert_eq(copyfx_copy(&weir_writer_packed, source, new_copy(name), COPYFX_ALL), 0);
        same_samples(source, path, NULL);
    }
}

Test(packed, depth_and_names)
{
    const char *source = fixture_synth("source", "astrobench", EPISODES, STEPS, 32, 24, "main,left");
    copyfx_copy(&weir_writer_packed, source, new_copy("copy"), COPYFX_ALL);
    same_samples(source, path, "main,depth_main");
    struct weir_dataset_config config = {.size = sizeof config, .path = path, .depth = true};
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_str_eq(weir_dataset_layout(dataset, 0), "weir");
    cr_assert_eq(weir_dataset_cameras(dataset), 4);
    cr_assert_str_eq(weir_dataset_camera(dataset, 2)->name, "depth_left");
    cr_assert_eq(weir_dataset_camera(dataset, 2)->kind, WEIR_FRAME_PNG16);
    const char *key, *value;
    cr_assert(weir_dataset_text(dataset, 0, 0, &key, &value));
    cr_assert_str_eq(key, "instruction");
    cr_assert_str_eq(value, "fold the towel");
    cr_assert_not(weir_dataset_is_bgr(dataset));
    char text[600];
    weir_frame_name(dataset, 1, 2, 2, text, sizeof text);
    cr_assert_not_null(strstr(text, "copy.weir: episode 1/depth/depth_left[2]"), "%s", text);
    weir_dataset_close(&dataset);
}

/* Every step starts at a storage block, and every frame at a sector. */
Test(packed, extents_are_aligned)
{
    const char *source = fixture_synth("source", "act-jpeg", EPISODES, STEPS, 32, 24, "left,top");
    copyfx_copy(&weir_writer_packed, source, new_copy("copy"), COPYFX_ALL);
    struct weir_dataset_config config = {.size = sizeof config, .path = path};
    struct weir_dataset *dataset;
    struct weir_location left, top;
    cr_assert_eq(weir_dataset_open(&dataset, &config, NULL), 0);
    for (int e = 0; e < EPISODES; e++)
        for (int t = 0; t < STEPS; t++) {
            cr_assert_eq(weir_locate(dataset, e, 0, t, &left), WEIR_HOW_EXTENT);
            cr_assert_eq(weir_locate(dataset, e, 1, t, &top), WEIR_HOW_EXTENT);
            cr_assert_eq(left.offset % WEIR_PACKED_STEP_ALIGN, 0);
            cr_assert_eq(top.offset % WEIR_PACKED_FRAME_ALIGN, 0);
            cr_assert(top.offset - left.offset - left.length < WEIR_PACKED_FRAME_ALIGN);
        }
    weir_dataset_close(&dataset);
}

/* Numbers of every type keep their type. */
Test(packed, numbers_in_their_own_type)
{
    static const double f64[] = {0.1, -2, 1e9};
    static const int64_t i64[] = {1 << 24, -5, 7};
    struct weir_copy copy = {.n_episodes = 1,
                             .n_cameras = 1,
                             .qpos_type = WEIR_F64,
                             .action_type = WEIR_I64,
                             .qpos_dim = 1,
                             .is_bgr = true,
                             .action_dim = 1,
                             .cameras = {{.name = "a", .kind = WEIR_FRAME_RAW, .width = 1, .height = 1}}};
    struct weir_copy_episode episode = {.name = "made up", .steps = 3, .qpos = f64, .actions = i64};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_writer *writer;
    int had;
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_packed, &copy, new_copy("copy"), &had, &err), 0, "%s",
                 err.text);
    cr_assert_eq(weir_writer_begin(writer, &episode, &err), 0, "%s", err.text);
    for (int t = 0; t < 3; t++)
        cr_assert_eq(weir_writer_packed.frame(writer, 0, t, (const uint8_t *)"rgb", 3, &err), 0, "%s", err.text);
    cr_assert_eq(weir_writer_packed.frame(writer, 0, 2, (const uint8_t *)"rgbx", 4, &err), -EINVAL);
    cr_assert_eq(weir_writer_packed.end(writer, &err), 0);
    cr_assert_eq(weir_writer_finish(&writer, &err), 0);
    struct weir_packed_header header;
    struct weir_packed_record record;
    size_t n;
    uint8_t *bytes = whole_file(path, &n);
    cr_assert_eq(weir_packed_get_header(&header, bytes, &err), 0);
    const uint8_t *at = bytes + header.last_record;
    cr_assert_eq(weir_packed_get_record(&record, &header, at, header.index_offset - header.last_record,
                                        header.last_record, NULL),
                 0);
    cr_assert_eq(memcmp(at + record.qpos, f64, sizeof f64), 0);
    cr_assert_eq(memcmp(at + record.actions, i64, sizeof i64), 0);
    free(bytes);
    struct weir_dataset_config config = {.size = sizeof config, .path = path};
    struct weir_dataset *dataset;
    cr_assert_eq(weir_dataset_open(&dataset, &config, NULL), 0);
    cr_assert(weir_dataset_is_bgr(dataset));
    cr_assert_eq(weir_dataset_qpos(dataset, 0)[0], 0.1f);
    cr_assert_eq(weir_dataset_actions(dataset, 0)[1], -5.0f);
    weir_dataset_close(&dataset);
}

/* ---- interrupted ---- */

static void unfinished(void)
{
    struct weir_err err;
    cr_assert_eq(open_it(path, &err), -ENODATA);
    cr_assert_not_null(strstr(err.text, "copy.weir: unfinished; run weir convert again"), "%s", err.text);
}

Test(packed, goes_on_behind_the_last_complete_episode)
{
    const char *source = fixture_synth("source", "act-jpeg", EPISODES, STEPS, 32, 24, NULL);
    copyfx_copy(&weir_writer_packed, source, new_copy("once"), COPYFX_ALL);
    size_t n_once, n_parts;
    uint8_t *once = whole_file(path, &n_once);
    cr_assert_eq(copyfx_copy(&weir_writer_packed, source, new_copy("parts"), 0), 0);
    unfinished();
    cr_assert_eq(copyfx_copy(&weir_writer_packed, source, path, 2), 0);
    unfinished();
    cr_assert_eq(copyfx_copy(&weir_writer_packed, source, path, 2), 2);
    unfinished();
    cr_assert_eq(copyfx_copy(&weir_writer_packed, source, path, COPYFX_ALL), 2);
    uint8_t *parts = whole_file(path, &n_parts);
    cr_assert(n_once == n_parts && memcmp(once, parts, n_once) == 0);
    free(parts);
    /* A complete copy that was killed before it could be renamed. */
    cr_assert_eq(copyfx_copy(&weir_writer_packed, source, path, COPYFX_ALL), EPISODES);
    parts = whole_file(path, &n_parts);
    cr_assert(n_once == n_parts && memcmp(once, parts, n_once) == 0);
    free(parts);
    /* The unfinished copy is of another dataset, so copying starts again. */
    const char *other = fixture_synth("other", "act-jpeg", EPISODES, STEPS, 64, 24, NULL);
    cr_assert_eq(copyfx_copy(&weir_writer_packed, other, path, COPYFX_ALL), 0);
    same_samples(other, path, NULL);
    /* The last record is damaged, so copying starts again. */
    parts = whole_file(path, &n_parts);
    parts[n_parts - EPISODES * WEIR_PACKED_INDEX_ENTRY - 20] ^= 1;
    write_file(path, parts, n_parts);
    cr_assert_eq(copyfx_copy(&weir_writer_packed, other, path, COPYFX_ALL), 0);
    same_samples(other, path, NULL);
    free(once);
    free(parts);
}

Test(packed, a_full_disk_is_one_line)
{
    const char *source = fixture_synth("source", "act", 1, STEPS, 64, 48, NULL);
    struct weir_dataset_config config = {.size = sizeof config, .path = source};
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_copy copy;
    struct weir_writer *writer;
    int had, rc = 0;
    cr_assert_eq(weir_dataset_open(&dataset, &config, NULL), 0);
    copyfx_describe(dataset, &copy);
    struct rlimit limit = {0, 20000};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_packed, &copy, new_copy("none"), &had, &err), -EFBIG);
    cr_assert_null(writer);
    cr_assert_not_null(strstr(err.text, "copy.weir: File too large; free space"), "%s", err.text);
    /* Then the disk fills up in the middle of the copy. */
    limit.rlim_cur = limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct weir_copy_episode episode = {.name = "it",
                                        .steps = STEPS,
                                        .qpos = weir_dataset_qpos(dataset, 0),
                                        .actions = weir_dataset_actions(dataset, 0)};
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_writer_open(&writer, &weir_writer_packed, &copy, new_copy("copy"), &had, &err), 0, "%s",
                 err.text);
    uint8_t *pixels = calloc(3, 64 * 48);
    cr_assert_eq(weir_writer_begin(writer, &episode, &err), 0);
    for (int i = 0; i < STEPS * copy.n_cameras && rc == 0; i++)
        rc = weir_writer_packed.frame(writer, i % copy.n_cameras, i / copy.n_cameras, pixels, 3 * 64 * 48, &err);
    rc = rc < 0 ? rc : weir_writer_packed.end(writer, &err);
    cr_assert_eq(rc, -EFBIG, "%s", err.text);
    weir_writer_close(&writer);
    unfinished();
    free(pixels);
    weir_dataset_close(&dataset);
}

/* ---- hostile files ---- */

static int n_damaged;

static int note_damage(void *user, const char *part, const char *why)
{
    (void)user;
    n_damaged++;
    cr_assert_not_null(strstr(part, "episode 0/images/top["), "%s", part);
    cr_assert_not_null(strstr(why, "checksum is wrong"), "%s", why);
    return 0;
}

static int check(const char *name, uint64_t n)
{
    struct weir_dataset_file file = {.path = name, .size_bytes = n};
    struct weir_err err = WEIR_ERR_NONE;
    n_damaged = 0;
    cr_assert_eq(weir_format_packed.check(NULL, &file, note_damage, NULL, &err), 0, "%s", err.text);
    return n_damaged;
}

/* Damages one bit in each byte. Checksums detect damage to header, index and records on open, and `weir verify` detects
 * damage to frames. Padding between them is not checked. */
Test(packed, every_byte_is_checked)
{
    size_t n;
    const char *source = fixture_synth("source", "act-jpeg", 1, 2, 16, 16, "top");
    copyfx_copy(&weir_writer_packed, source, new_copy("copy"), COPYFX_ALL);
    uint8_t *bytes = whole_file(path, &n);
    int opened = 0, told = 0, same = 0;
    struct weir_err err;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; i < n; i++) {
        uint8_t wrong = bytes[i] ^ (uint8_t)(1u << (i % 8));
        cr_assert_eq(pwrite(fd, &wrong, 1, (off_t)i), 1);
        if (open_it(path, &err) < 0) {
            cr_assert(err.code == -EBADMSG || err.code == -ENOTSUP, "byte %zu: %s", i, err.text);
            opened++;
        } else if (check(path, n)) {
            told++;
        } else {
            same++;
        }
        cr_assert_eq(pwrite(fd, &bytes[i], 1, (off_t)i), 1);
    }
    close(fd);
    struct weir_packed_header header;
    cr_assert_eq(weir_packed_get_header(&header, bytes, NULL), 0);
    cr_assert_eq((size_t)opened, WEIR_PACKED_HEADER + n - (size_t)header.last_record, "%d", opened);
    cr_assert(told > 2 * 300 && same < WEIR_PACKED_STEP_ALIGN + 2 * 8, "%d %d", told, same);
    free(bytes);
}

Test(packed, cut_at_any_length)
{
    size_t n;
    const char *source = fixture_synth("source", "act-jpeg", 1, 2, 16, 16, "top");
    copyfx_copy(&weir_writer_packed, source, new_copy("copy"), COPYFX_ALL);
    uint8_t *bytes = whole_file(path, &n);
    struct weir_err err;
    for (size_t cut = n; cut-- > 0;) {
        cr_assert_eq(truncate(path, (off_t)cut), 0);
        cr_assert_eq(open_it(path, &err), -ENODATA, "%zu: %s", cut, err.text);
        cr_assert_not_null(strstr(err.text, "copy.weir: has "), "%s", err.text);
    }
    free(bytes);
}

/* Expects an error for invalid content with a correct checksum. */
static void refused(const uint8_t *bytes, size_t n, size_t record, const char *what)
{
    uint8_t *copy = malloc(n);
    struct weir_err err;
    static const uint8_t zeros[4];
    memcpy(copy, bytes, n);
    uint64_t index = weir_le(copy + 24, 8), length = weir_le(copy + record + 16, 8);
    if (index > record && length == index - record) {
        memcpy(copy + record + 8, zeros, 4);
        weir_put_le(copy + record + 8, weir_crc32c(0, copy + record, (size_t)length), 4);
    }
    if (index < n)
        weir_put_le(copy + 48, weir_crc32c(0, copy + index, n - (size_t)index), 4);
    memcpy(copy + 12, zeros, 4);
    weir_put_le(copy + 12, weir_crc32c(0, copy, WEIR_PACKED_HEADER), 4);
    write_file(path, copy, n);
    int rc = open_it(path, &err);
    cr_assert_lt(rc, 0, "%s", what);
    cr_assert_not_null(strstr(err.text, what), "%s", err.text);
    free(copy);
}

Test(packed, numbers_that_make_no_sense)
{
    size_t n;
    const char *source = fixture_synth("source", "act", 1, 2, 16, 16, "top");
    copyfx_copy(&weir_writer_packed, source, new_copy("copy"), COPYFX_ALL);
    uint8_t *bytes = whole_file(path, &n);
    size_t record = (size_t)weir_le(bytes + 40, 8), index = (size_t)weir_le(bytes + 24, 8);
    size_t frames = record + 48 + 2 * (2 * 14 * 4);
    static const struct {
        size_t at; /* offset in the header, record, frames or index, selected by `of` */
        int of, bytes;
        uint64_t value;
        const char *what;
    } cases[] = {
        {8, 0, 4, 2, "has version 2 of the format"},
        {16, 0, 4, 2, "its header is invalid"},
        {20, 0, 4, 2, "its index does not fit"},
        {20, 0, 4, 0, "its index does not fit"},
        {24, 0, 8, 1, "its index does not fit"},
        {24, 0, 8, UINT64_MAX, "its index does not fit"},
        {52, 0, 4, 33, "its header is invalid"},
        {56, 0, 4, 0, "its header is invalid"},
        {64, 0, 4, 0, "its header is invalid"},
        {68, 0, 4, UINT32_MAX, "its header is invalid"},
        {128, 0, 1, 0, "camera 0 in its header"},
        {128 + 63, 0, 1, 'a', "camera 0 in its header"},
        {128 + 80, 0, 4, 0, "camera 0 in its header"},
        {128 + 80, 0, 4, 17, "cannot be a frame of this episode"},
        {0, 1, 1, 'X', "no episode starts at byte"},
        {12, 1, 4, 1, "at the offset of episode 1"},
        {32, 1, 4, 0, "is invalid"},
        {32, 1, 4, UINT32_MAX, "is invalid"},
        {36, 1, 4, UINT32_MAX, "the metadata strings of episode 0"},
        {40, 1, 8, 0, "is invalid"},
        {0, 2, 8, 0, "cannot be a frame of this episode"},
        {0, 2, 8, UINT64_MAX, "cannot be a frame of this episode"},
        {8, 2, 4, UINT32_MAX, "cannot be a frame of this episode"},
        {8, 2, 4, 767, "cannot be a frame of this episode"},
        {0, 3, 8, 0, "at an impossible offset"},
        {8, 3, 8, UINT64_MAX, "at an impossible offset"},
        {8, 3, 8, 47, "no episode starts at byte"},
    };
    const size_t bases[] = {0, record, frames, index};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *at = bytes + bases[cases[i].of] + cases[i].at, kept[8], value[8];
        memcpy(kept, at, sizeof kept);
        weir_put_le(value, cases[i].value, 8);
        memcpy(at, value, (size_t)cases[i].bytes);
        refused(bytes, n, record, cases[i].what);
        memcpy(at, kept, sizeof kept);
    }
    free(bytes);
}

/* ---- sparse files ---- */

/* Returns the number of bytes that this process has read, or 0 if the kernel does not count them. */
static unsigned long long bytes_read(void)
{
    unsigned long long n = 0;
    FILE *io = fopen("/proc/self/io", "re");
    if (io && fscanf(io, "rchar: %llu", &n) != 1)
        n = 0;
    if (io)
        fclose(io);
    return n;
}

/* Writes a header with these values, a 5 GB hole, and an index of one entry. Opening the file must fail without reading
 * the hole. */
static void refused_unread(uint64_t index, uint32_t episodes, const char *what)
{
    const uint64_t bytes = 5000000000;
    struct weir_packed_header header;
    struct weir_err err;
    uint8_t head[WEIR_PACKED_HEADER], entry[WEIR_PACKED_INDEX_ENTRY];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert(fd >= 0 && pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head);
    cr_assert_eq(weir_packed_get_header(&header, head, &err), 0, "%s", err.text);
    weir_put_le(entry, WEIR_PACKED_HEADER, 8);
    weir_put_le(entry + 8, bytes - sizeof entry - WEIR_PACKED_HEADER, 8);
    header.index_offset = index ? index : bytes - sizeof entry;
    header.file_bytes = bytes;
    header.last_record = WEIR_PACKED_HEADER;
    header.n_episodes = episodes;
    header.index_crc = weir_crc32c(0, entry, sizeof entry);
    weir_packed_put_header(&header, head);
    cr_assert(ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t)bytes) == 0);
    cr_assert_eq(pwrite(fd, head, sizeof head, 0), (ssize_t)sizeof head);
    cr_assert_eq(pwrite(fd, entry, sizeof entry, (off_t)(bytes - sizeof entry)), (ssize_t)sizeof entry);
    close(fd);
    unsigned long long before = bytes_read();
    cr_assert_eq(open_it(path, &err), -EBADMSG);
    cr_assert_not_null(strstr(err.text, what), "%s", err.text);
    cr_assert_lt(bytes_read() - before, 4 << 20);
}

Test(packed, holes_are_not_read)
{
    const char *source = fixture_synth("source", "act", 1, 2, 16, 16, "top");
    copyfx_copy(&weir_writer_packed, source, new_copy("copy"), COPYFX_ALL);
    refused_unread(0, 1, "most of the file is a hole");
    refused_unread(WEIR_PACKED_HEADER + 3808, 312499506 /* enough entries to fill the rest of the file */,
                   "its index lists episode 0 at an impossible offset");
}
