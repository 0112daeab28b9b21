/* Tests named arrays in a file: they are read back bit for bit, an unexpected file is refused before anything is
 * changed, and a failed write keeps the previous file. */
#include "extras/train/cli/safetensors.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 1 << 16 };

TestSuite(safetensors, .init = fixture_open, .fini = fixture_close);

/* The arrays and metadata that tests read from handmade files. */
struct asked {
    float w[4], b[3];
    struct weir_safetensor tensors[2];
    struct weir_safetensors_meta meta[1];
};

static void ask(struct asked *asked)
{
    for (int i = 0; i < 4; i++)
        asked->w[i] = 40.0f + (float)i;
    for (int i = 0; i < 3; i++)
        asked->b[i] = 30.0f + (float)i;
    asked->tensors[0] = (struct weir_safetensor){"w", 2, {2, 2}, asked->w};
    asked->tensors[1] = (struct weir_safetensor){"b", 1, {3}, asked->b};
    asked->meta[0] = (struct weir_safetensors_meta){"step", "before"};
}

static int read_asked(struct asked *asked, const char *path, struct weir_err *err)
{
    ask(asked);
    return weir_safetensors_read(path, asked->tensors, 2, asked->meta, 1, err);
}

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0);
}

static char *whole_file(const char *path, size_t *n)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    cr_assert(file && fstat(fileno(file), &st) == 0);
    *n = (size_t)st.st_size;
    char *bytes = malloc(*n + 1);
    cr_assert_eq(fread(bytes, 1, *n, file), *n);
    bytes[*n] = '\0';
    fclose(file);
    return bytes;
}

/* Writes a file with this header and data_bytes of data (1.0f, 2.0f, ...), and returns its path. */
static const char *made(const char *header, size_t data_bytes)
{
    char bytes[2048];
    uint64_t length = strlen(header);
    const char *path = fixture_path("made");
    memcpy(bytes, &length, sizeof length);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i += sizeof(float)) {
        float value = 1.0f + (float)(i / sizeof value);
        memcpy(bytes + 8 + length + i, &value, sizeof value);
    }
    write_bytes(path, bytes, 8 + length + data_bytes);
    return path;
}

/* ---- round trip ---- */

Test(safetensors, every_bit_comes_back)
{
    static const uint32_t odd[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
                                   0x7f800001, 0x00000001, 0x807fffff, 0x7f7fffff, 0x3f800000, 0xdeadbeef};
    float values[12], one = -0.5f, got[12], got_one = 0;
    float *large = malloc(LARGE * sizeof *large), *got_large = malloc(LARGE * sizeof *large);
    memcpy(values, odd, sizeof odd);
    for (int i = 0; i < LARGE; i++)
        large[i] = sinf((float)i);
    struct weir_safetensor tensors[] = {{"encoder.top.conv1.weight", 4, {2, 3, 1, 2}, values},
                                        {"scalar", 0, {0}, &one},
                                        {"nothing", 2, {0, 7}, NULL},
                                        {"quoted \" \\ \xe4\xb8\xad \n\x7f", 2, {LARGE / 256, 256}, large}};
    struct weir_safetensors_meta meta[] = {{"step", "1200"}, {"empty", ""}, {"text", "\"\xe4\xb8\xad\"\n\t\\"}},
                                 found[4];
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = fixture_path("it");
    memset(meta[1].value, '7', sizeof meta[1].value - 1); /* the longest allowed value */
    cr_assert_eq(weir_safetensors_write(path, tensors, 4, meta, 3, &err), 0, "%s", err.text);
    tensors[0].data = got;
    tensors[1].data = &got_one;
    tensors[3].data = got_large;
    struct weir_safetensor turned[] = {tensors[3], tensors[1], tensors[0], tensors[2]};
    memcpy(found, meta, sizeof meta);
    found[3] = (struct weir_safetensors_meta){"not there", "before"};
    cr_assert_eq(weir_safetensors_read(path, turned, 4, found, 4, &err), 0, "%s", err.text);
    cr_assert_arr_eq(got, odd, sizeof odd);
    cr_assert_eq(got_one, -0.5f);
    cr_assert_arr_eq(got_large, large, LARGE * sizeof *large);
    for (int i = 0; i < 3; i++)
        cr_assert_str_eq(found[i].value, meta[i].value);
    cr_assert_str_empty(found[3].value);
    memset(found, 0, sizeof found);
    found[0].key = "step";
    cr_assert_eq(weir_safetensors_read(path, NULL, 0, found, 1, &err), 0, "the metadata alone: %s", err.text);
    cr_assert_str_eq(found[0].value, "1200");
    free(large);
    free(got_large);
}

Test(safetensors, the_file_is_as_the_format_says)
{
    struct asked asked;
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = fixture_path("it");
    size_t n;
    uint64_t length;
    static const char header[] = "{\"__metadata__\":{\"step\":\"before\"},"
                                 "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[16,28]}}";
    ask(&asked);
    cr_assert_eq(weir_safetensors_write(path, asked.tensors, 2, asked.meta, 1, &err), 0, "%s", err.text);
    char *bytes = whole_file(path, &n);
    memcpy(&length, bytes, sizeof length);
    cr_assert(length % 8 == 0 && length >= strlen(header) && length < strlen(header) + 8);
    cr_assert_arr_eq(bytes + 8, header, strlen(header));
    for (size_t i = strlen(header); i < length; i++)
        cr_assert_eq(bytes[8 + i], ' ');
    cr_assert_eq(n, 8 + length + 28);
    cr_assert_arr_eq(bytes + 8 + length, asked.w, sizeof asked.w);
    cr_assert_arr_eq(bytes + 8 + length + 16, asked.b, sizeof asked.b);
    free(bytes);
    /* a file without arrays is also valid */
    cr_assert_eq(weir_safetensors_write(path, NULL, 0, NULL, 0, &err), 0, "%s", err.text);
    cr_assert_eq(weir_safetensors_read(path, NULL, 0, NULL, 0, &err), 0, "%s", err.text);
}

/* ---- refusals ---- */

#define W                "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}"
#define B                "\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[16,28]}"
#define B_AT(begin, end) "{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[" begin "," end "]}}"
#define B_OF(shape)      "{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[16,28]}}"

Test(safetensors, files_of_others_are_read)
{
    static const char *const headers[] = {
        "{" W "," B "}",
        "{" B "," W "}      ",
        ("{\"w\":{\"data_offsets\":[12,28],\"shape\":[2,2],\"dtype\":\"F32\"},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},\"__metadata__\":{\"step\":\"7\"}}"),
    };
    struct asked asked;
    struct weir_err err = WEIR_ERR_NONE;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(read_asked(&asked, made(headers[i], 28), &err), 0, "%s", err.text);
        cr_assert_eq(asked.w[0], i == 2 ? 4.0f : 1.0f);
        cr_assert_eq(asked.b[2], i == 2 ? 3.0f : 7.0f);
        cr_assert_str_eq(asked.meta[0].value, i == 2 ? "7" : "");
    }
}

static void expect_refusal(const char *path, const char *what)
{
    struct asked asked, before;
    struct weir_err err = WEIR_ERR_NONE;
    ask(&before);
    cr_assert_eq(read_asked(&asked, path, &err), -EINVAL, "%s: %s", what, err.text);
    cr_assert(strstr(err.text, path) == err.text && strstr(err.text, what), "wanted '%s': %s", what, err.text);
    cr_assert_null(strchr(err.text, '\n'));
    cr_assert_arr_eq(asked.w, before.w, sizeof before.w);
    cr_assert_arr_eq(asked.b, before.b, sizeof before.b);
    cr_assert_str_eq(asked.meta[0].value, "before");
}

Test(safetensors, what_is_not_as_asked_for_is_refused)
{
    static const struct {
        const char *header;
        size_t data_bytes;
        const char *what;
    } rows[] = {
        {"{" W "}", 16, "its array \"b\" is missing"},
        {"{" W "," B ",\"more\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[28,28]}}", 28,
         "its array \"more\" is not in this model"},
        {"{" W ",\"b\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[16,22]}}", 22, "\"b\" is not of type F32"},
        {"{" W ",\"b\":{\"shape\":[3],\"data_offsets\":[16,28]}}", 28, "\"b\" is not of type F32"},
        {"{" W ",\"b\":[]}", 28, "\"b\" is not of type F32"},
        {B_OF("[4]"), 28, "\"b\" has a different shape"},
        {B_OF("[1,3]"), 28, "\"b\" has a different shape"},
        {B_OF("[]"), 28, "\"b\" has a different shape"},
        {B_OF("[3.0]"), 28, "\"b\" has a different shape"},
        {B_OF("3"), 28, "\"b\" has a different shape"},
        {B_OF("[3,1,1,1,1]"), 28, "\"b\" has a different shape"},
        {B_AT("28", "16"), 28, "\"b\" has invalid data_offsets"},
        {B_AT("-12", "0"), 28, "\"b\" has invalid data_offsets"},
        {B_AT("16", "28.0"), 28, "\"b\" has invalid data_offsets"},
        {B_AT("16", "28,40"), 40, "\"b\" has invalid data_offsets"},
        {B_AT("16", "28"), 24, "\"b\" extends past the end of the file"},
        {B_AT("9223372036854775795", "9223372036854775807"), 28, "\"b\" extends past the end of the file"},
        {B_AT("18446744073709551612", "8"), 28, "too big integer"},
        {B_AT("16", "24"), 28, "\"b\" has a size that does not match its shape"},
        {B_AT("4", "16"), 28, "\"b\" overlaps another"},
        {B_AT("20", "32"), 32, "\"b\" follows a gap"},
        {B_AT("16", "28"), 32, "it has bytes after the last array"},
        {"{" W "," W "," B "}", 28, "duplicate object key"},
        {"{" W "," B, 28, "is not a safetensors file"},
        {"{" W "," B "} x", 28, "is not a safetensors file"},
        {" {" W "," B "}", 28, "its header does not begin with {"},
        {"[" W "]", 28, "its header does not begin with {"},
        {"", 28, "its header does not begin with {"},
        {"{\"__metadata__\":7," W "," B "}", 28, "its __metadata__ is not an object"},
        {"{\"__metadata__\":{\"step\":7}," W "," B "}", 28,
         "\"step\" in its metadata must be a string of at most 127 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_refusal(made(rows[i].header, rows[i].data_bytes), rows[i].what);
    char header[512], digits[129];
    memset(digits, '7', 128);
    digits[128] = '\0';
    snprintf(header, sizeof header, "{\"__metadata__\":{\"step\":\"%s\"}," W "," B "}", digits);
    expect_refusal(made(header, 28), "\"step\" in its metadata must be a string of at most 127 bytes");
}

Test(safetensors, lengths_are_bounded_by_the_file)
{
    static const uint64_t lengths[] = {2000, UINT64_MAX, (uint64_t)1 << 63, ((uint64_t)16 << 20) + 1};
    const char *path = fixture_path("it");
    char bytes[64] = "";
    for (size_t n = 0; n < 8; n++) {
        write_bytes(path, bytes, n);
        expect_refusal(path, "it is shorter than 8 bytes");
    }
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memcpy(bytes, &lengths[i], 8);
        write_bytes(path, bytes, sizeof bytes);
        if (lengths[i] > 2000) /* make the file long enough for the header */
            cr_assert_eq(truncate(path, 64 << 20), 0);
        expect_refusal(path, "its header is longer than the file or than 16 MiB");
    }
    expect_refusal("/tmp", "is not a regular file");
    expect_refusal("/dev/null", "is not a regular file");
    struct asked asked;
    struct weir_err err = WEIR_ERR_NONE;
    path = fixture_path("not there");
    cr_assert_eq(read_asked(&asked, path, &err), -ENOENT);
    cr_assert_not_null(strstr(err.text, "check the path"), "%s", err.text);
}

/* Flips each bit of the header in turn. Each file must be either refused or accepted, and a refusal must leave the
 * arrays unchanged. */
Test(safetensors, damaged_headers_change_nothing)
{
    struct asked asked, before;
    const char *path = fixture_path("it");
    size_t n;
    ask(&before);
    cr_assert_eq(weir_safetensors_write(path, before.tensors, 2, before.meta, 1, NULL), 0);
    char *bytes = whole_file(path, &n);
    for (size_t at = 0; at < n - 28; at++)
        for (int bit = 0; bit < 8; bit++) {
            struct weir_err err = WEIR_ERR_NONE;
            bytes[at] ^= (char)(1 << bit);
            write_bytes(path, bytes, n);
            bytes[at] ^= (char)(1 << bit);
            int rc = read_asked(&asked, path, &err); /* accepted if the bit is in a key or value of the metadata */
            cr_assert(rc == 0 || (rc == -EINVAL && strstr(err.text, path) == err.text), "%d: %s", rc, err.text);
            cr_assert_arr_eq(asked.w, before.w, sizeof before.w);
            cr_assert_arr_eq(asked.b, before.b, sizeof before.b);
        }
    free(bytes);
}

static void expect_unwritten(const char *name, const char *value, const char *what)
{
    struct asked asked;
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = fixture_path("unwritten");
    ask(&asked);
    asked.tensors[1].name = name;
    snprintf(asked.meta[0].value, sizeof asked.meta[0].value, "%s", value);
    cr_assert_eq(weir_safetensors_write(path, asked.tensors, 2, asked.meta, 1, &err), -EINVAL, "%s", err.text);
    cr_assert(strstr(err.text, path) == err.text && strstr(err.text, what), "%s", err.text);
    cr_assert_neq(access(path, F_OK), 0);
}

Test(safetensors, names_that_would_not_come_back_are_refused)
{
    expect_unwritten("w", "", "\"w\" is the name of two arrays");
    expect_unwritten("", "", "\"\" is not a valid array name");
    expect_unwritten("__metadata__", "", "\"__metadata__\" is not a valid array name");
    expect_unwritten("camera \xff", "", "is not a valid array name");
    expect_unwritten("b", "half a character: \xe4\xb8", "the metadata entry \"step\" is not valid UTF-8");
}

/* ---- the previous file ---- */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int write_large(const char *path, struct weir_err *err)
{
    float *values = calloc(LARGE, sizeof *values);
    struct weir_safetensor tensor = {"w", 1, {LARGE}, values};
    int rc = weir_safetensors_write(path, &tensor, 1, NULL, 0, err);
    free(values);
    return rc;
}

static void expect_old_file(const char *path)
{
    struct asked asked, before;
    struct weir_err err = WEIR_ERR_NONE;
    ask(&before);
    cr_assert_eq(read_asked(&asked, path, &err), 0, "%s", err.text);
    cr_assert_arr_eq(asked.w, before.w, sizeof before.w);
}

static void write_old_file(const char *path)
{
    struct asked asked;
    ask(&asked);
    cr_assert_eq(weir_safetensors_write(path, asked.tensors, 2, asked.meta, 1, NULL), 0);
}

Test(safetensors, a_full_disk_leaves_the_file_before)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = fixture_path("it"), *partial = fixture_path("it.partial");
    write_old_file(path);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(LARGE); /* a quarter of the file's size */
    cr_assert_eq(write_large(path, &err), -EFBIG, "%s", err.text);
    cr_assert(strstr(err.text, path) == err.text && strstr(err.text, "free some space there"), "%s", err.text);
    cr_assert_neq(access(partial, F_OK), 0);
    expect_old_file(path);
    limit_files(RLIM_INFINITY);
    err = WEIR_ERR_NONE;
    cr_assert_eq(write_large(path, &err), 0, "%s", err.text);
}

Test(safetensors, a_killed_process_leaves_the_file_before)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = fixture_path("it"), *partial = fixture_path("it.partial");
    int status;
    write_old_file(path);
    pid_t child = fork();
    if (child == 0) { /* the kernel kills the child while it writes the file */
        signal(SIGXFSZ, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        limit_files(LARGE);
        write_large(path, NULL);
        _exit(0);
    }
    cr_assert(child > 0 && waitpid(child, &status, 0) == child);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    cr_assert_eq(access(partial, F_OK), 0);
    expect_old_file(path);
    cr_assert_eq(write_large(path, &err), 0, "%s",
                 err.text); /* the leftover partial file does not block the next write */
    cr_assert_neq(access(partial, F_OK), 0);
}

Test(safetensors, only_files_are_written)
{
    static const struct {
        const char *path;
        int code;
        const char *what;
    } rows[] = {
        {"/dev/full", -EINVAL, "/dev/full: exists but is not a regular file"},
        {"/tmp", -EINVAL, "/tmp: exists but is not a regular file"},
        {"/tmp/no such folder/it", -ENOENT, "create its folder first"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_err err = WEIR_ERR_NONE;
        cr_assert_eq(write_large(rows[i].path, &err), rows[i].code, "%s", err.text);
        cr_assert(strstr(err.text, rows[i].path) == err.text && strstr(err.text, rows[i].what), "%s", err.text);
    }
    struct weir_err err = WEIR_ERR_NONE;
    const char *path = fixture_path("it");
    cr_assert_eq(mkdir(fixture_path("it.partial"), 0777), 0); /* an existing folder is kept */
    cr_assert_eq(write_large(path, &err), -EISDIR, "%s", err.text);
    cr_assert_eq(access(fixture_path("it.partial"), F_OK), 0);
}
