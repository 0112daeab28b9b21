/* Tests NumPy arrays in archives: the values in valid archives, and the errors for invalid ones. */
#include "extras/motion/clips/npz.h"
#include "extras/motion/tests/npz_fixture.h"
#include "tests/fuzz/fuzz_bytes.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct npzfx archive;
static struct weir_err err;
static struct weir_file_array array;

static void start(void)
{
    archive = (struct npzfx){0};
    array = (struct weir_file_array){0};
    err = (struct weir_err)WEIR_ERR_NONE;
}

static void end(void)
{
    weir_file_array_free(&array);
    npzfx_free(&archive);
}

TestSuite(npz, .init = start, .fini = end);

/* Reads an array of the archive. The archive is copied to memory of exactly its size, to detect reads past its end. */
static int read_it(const char *name)
{
    struct fuzz_bytes bytes = {archive.bytes, archive.n};
    uint8_t *exact = malloc(archive.n);
    memcpy(exact, archive.bytes, archive.n);
    bytes.at = exact;
    struct weir_raw_file raw = {fuzz_read_inside, &bytes, 0, archive.n};
    struct weir_npz *npz = NULL;
    err = (struct weir_err)WEIR_ERR_NONE;
    weir_file_array_free(&array);
    int rc = weir_npz_open(&npz, &raw, &err);
    if (rc == 0)
        rc = weir_npz_read(npz, name, &array, &err);
    weir_npz_close(&npz);
    free(exact);
    return rc;
}

static void refused(const char *name, int code, const char *words)
{
    cr_assert_eq(read_it(name), code, "%s: %d, %s", words, err.code, err.text);
    cr_assert(strstr(err.text, words), "'%s' does not contain '%s'", err.text, words);
    cr_assert(!array.values && !array.texts);
}

static const float values[6] = {1, 2, 3, 4, 5, 6};
static const size_t two_by_three[] = {2, 3};

Test(npz, stored_and_deflate)
{
    for (int i = 0; i < 4; i++) {
        archive = (struct npzfx){.deflate = i & 1, .zip64 = i & 2};
        npzfx_floats(&archive, "a", 2, two_by_three, values);
        npzfx_floats(&archive, "b", 0, NULL, values + 4);
        npzfx_end(&archive);
        cr_assert_eq(read_it("a"), 0, "%s", err.text);
        cr_assert(array.rank == 2 && array.dims[0] == 2 && array.dims[1] == 3 && array.items == 6);
        cr_assert(array.type == WEIR_F32 && !array.texts);
        cr_assert_arr_eq((float *)array.values, values, sizeof values);
        cr_assert_eq(read_it("b"), 0, "%s", err.text);
        cr_assert(array.rank == 0 && array.items == 1 && *(float *)array.values == 5);
        refused("c", -ENOENT, "c: is not in the file");
        npzfx_free(&archive);
    }
}

static void one(const char *header, const void *data, size_t n)
{
    npzfx_free(&archive);
    npzfx_npy(&archive, "a", header, data, n);
    npzfx_end(&archive);
}

static double number(size_t i)
{
    double value;
    weir_numbers_convert(array.type, (const char *)array.values + i * weir_number_bytes(array.type), 1, WEIR_F64,
                         &value);
    return value;
}

Test(npz, types)
{
    static const struct {
        const char *descr;
        enum weir_number_type type;
        uint8_t bytes[8];
        double value;
    } types[] = {
        {"<f2", WEIR_F32, {0x00, 0xc0}, -2},
        {">f2", WEIR_F32, {0x3c, 0x01}, 1.0009765625},
        {"<f4", WEIR_F32, {0, 0, 0x80, 0x3f}, 1},
        {">f4", WEIR_F32, {0x3f, 0x80}, 1},
        {"=f8", WEIR_F64, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 1},
        {">f8", WEIR_F64, {0x3f, 0xf0}, 1},
        {"|i1", WEIR_I8, {0xff}, -1},
        {"<u1", WEIR_U8, {0xff}, 255},
        {"|b1", WEIR_U8, {1}, 1},
        {"<i2", WEIR_I16, {0xfe, 0xff}, -2},
        {">u2", WEIR_U16, {1, 2}, 258},
        {"<i4", WEIR_I32, {1, 2}, 513},
        {">i8", WEIR_I64, {0, 0, 0, 0, 0, 0, 1, 2}, 258},
        {"<u8", WEIR_U64, {0, 0, 0, 0, 1}, 4294967296.0},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char header[128];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (1,)}", types[i].descr);
        one(header, types[i].bytes, (size_t)(types[i].descr[2] - '0'));
        cr_assert_eq(read_it("a"), 0, "%s: %s", types[i].descr, err.text);
        cr_assert(array.type == types[i].type && number(0) == types[i].value, "%s: %g", types[i].descr, number(0));
    }
}

/* In Fortran order the first index varies fastest. The result is in C order. */
Test(npz, fortran_order)
{
    uint8_t bytes[2 * 3 * 4], big[2 * 3 * 4 * 2] = {0};
    for (uint8_t i = 0; i < 2; i++)
        for (uint8_t j = 0; j < 3; j++)
            for (uint8_t k = 0; k < 4; k++)
                bytes[i + 2 * j + 6 * k] = big[2 * (i + 2 * j + 6 * k) + 1] = (uint8_t)(100 * i + 10 * j + k);
    for (int wide = 0; wide < 2; wide++) {
        one(wide ? "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3, 4)}"
                 : "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}",
            wide ? big : bytes, wide ? sizeof big : sizeof bytes);
        cr_assert_eq(read_it("a"), 0, "%s", err.text);
        for (size_t n = 0; n < 24; n++)
            cr_assert_eq(number(n), 100.0 * (double)(n / 12) + 10.0 * (double)(n / 4 % 3) + (double)(n % 4));
    }
}

Test(npz, texts)
{
    const uint32_t wide[2][3] = {{0x5de6, 'a', 0}, {0x1f600, 0, 0}};
    one("{'descr': '<U3', 'fortran_order': False, 'shape': (2,)}", wide, sizeof wide);
    cr_assert_eq(read_it("a"), 0, "%s", err.text);
    cr_assert(array.items == 2 && !array.values);
    cr_assert_str_eq(array.texts[0], "\xe5\xb7\xa6"
                                     "a");
    cr_assert_str_eq(array.texts[1], "\xf0\x9f\x98\x80");
    one("{'descr': '|S4', 'fortran_order': True, 'shape': (3,)}", "ab\0\0abcd\0\0\0\0", 12);
    cr_assert_eq(read_it("a"), 0, "%s", err.text);
    cr_assert_str_eq(array.texts[0], "ab");
    cr_assert_str_eq(array.texts[1], "abcd");
    cr_assert_str_eq(array.texts[2], "");
    one("{'descr': '<U0', 'fortran_order': False, 'shape': (2,)}", "", 0);
    cr_assert_eq(read_it("a"), 0, "%s", err.text);
    cr_assert(array.items == 2 && !*array.texts[1]);
    const uint32_t bad[3] = {0xd800, 0x110000, 0xffffffff};
    for (int i = 0; i < 3; i++) {
        one("{'descr': '<U1', 'fortran_order': False, 'shape': ()}", &bad[i], 4);
        refused("a", -EBADMSG, "a: has a string that is not valid Unicode");
    }
    one("{'descr': '|S3', 'fortran_order': False, 'shape': ()}", "a\0b", 3);
    refused("a", -EBADMSG, "contains a NUL");
    one("{'descr': '|S64', 'fortran_order': False, 'shape': ()}",
        "0123456789012345678901234567890123456789012345678901234567890123", 64);
    refused("a", -ENAMETOOLONG, "longer than 63 bytes");
    one("{'descr': '|S0', 'fortran_order': False, 'shape': (65537,)}", "", 0);
    refused("a", -EFBIG, "has 65537 strings");
}

Test(npz, empty)
{
    one("{'descr': '<f8', 'fortran_order': True, 'shape': (0, 18446744073709551615)}", "", 0);
    cr_assert_eq(read_it("a"), 0, "%s", err.text);
    cr_assert(array.items == 0 && array.dims[1] == UINT64_MAX);
    npzfx_free(&archive);
    npzfx_end(&archive);
    refused("a", -ENOENT, "is not in the file");
}

static void both(void)
{
    npzfx_free(&archive);
    npzfx_floats(&archive, "a", 2, two_by_three, values);
    npzfx_floats(&archive, "b", 2, two_by_three, values);
}

Test(npz, members)
{
    npzfx_floats(&archive, "a", 2, two_by_three, values);
    npzfx_floats(&archive, "b.npy+", 2, two_by_three, values);
    npzfx_end(&archive);
    uint8_t *name = archive.bytes; /* becomes "b" if the name is cut at the zero byte */
    for (uint8_t *next; (next = memmem(name, archive.n - (size_t)(name - archive.bytes), "b.npy+", 6)); name = next + 1)
        next[5] = '\0';
    refused("b", -EBADMSG, "the name of a member contains a zero byte");
    both();
    npzfx_floats(&archive, "a", 2, two_by_three, values);
    npzfx_end(&archive);
    refused("b", -EBADMSG, "has duplicate array names (1)");
    both();
    archive.members[0].at = archive.members[1].at;
    npzfx_end(&archive);
    refused("a", -EBADMSG, "a.npy: its header in the archive belongs to another member");
    refused("b", -EBADMSG, "b.npy: overlaps another member");
    both();
    archive.members[0].stored = archive.members[0].unpacked = archive.members[0].stored + 1;
    npzfx_end(&archive);
    refused("a", -EBADMSG, "a.npy: overlaps another member");
    cr_assert_eq(read_it("b"), 0, "%s", err.text);
    both();
    archive.members[1].flags = 1;
    npzfx_end(&archive);
    refused("b", -ENOTSUP, "b.npy: is encrypted");
    both();
    archive.members[0].method = 12;
    npzfx_end(&archive);
    refused("a", -ENOTSUP, "a: is compressed with method 12");
}

/* The lengths in the directory and in the npy header, and the length of the unpacked data, must agree. */
Test(npz, lengths)
{
    for (int deflate = 0; deflate < 2; deflate++) {
        for (int more = -1; more < 2; more += 2) {
            npzfx_free(&archive);
            archive.deflate = deflate;
            struct npzfx_member *member = npzfx_floats(&archive, "a", 2, two_by_three, values);
            member->unpacked = (uint64_t)((int64_t)member->unpacked + more);
            npzfx_end(&archive);
            refused("a", -EBADMSG, deflate ? "but its npy header says 24" : "is stored, but with two different sizes");
        }
        npzfx_free(&archive);
        archive.deflate = deflate;
        npzfx_npy(&archive, "a", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", values, 20);
        npzfx_end(&archive);
        refused("a", -EBADMSG, "a: holds 20 bytes, but its npy header says 24");
        npzfx_free(&archive);
        archive.deflate = deflate;
        npzfx_floats(&archive, "a", 2, two_by_three, values)->crc ^= 1;
        npzfx_end(&archive);
        refused("a", -EBADMSG, "a: does not match its checksum");
    }
}

/* The stream unpacks to more or fewer bytes than the directory and the npy header say. */
Test(npz, streams)
{
    uint8_t bytes[64 + 4096] = {0};
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}";
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)strlen(header);
    memcpy(bytes + 10, header, strlen(header));
    size_t n = 10 + strlen(header) + 16;
    archive.deflate = true;
    npzfx_put(&archive, "a.npy", bytes, n + 100)->unpacked = n;
    npzfx_put(&archive, "b.npy", bytes, n - 1)->unpacked = n;
    struct npzfx_member *cut = npzfx_put(&archive, "c.npy", bytes, n);
    cut->stored -= 5;
    struct npzfx_member *odd = npzfx_put(&archive, "d.npy", bytes, n);
    archive.bytes[odd->data] = 0x07; /* an invalid block type */
    npzfx_put(&archive, "e.npy", bytes, n)->unpacked = (uint64_t)1 << 30;
    npzfx_end(&archive);
    refused("a", -EBADMSG, "a: is longer than its header says");
    refused("b", -EBADMSG, "b: ends too early");
    refused("c", -EBADMSG, "c: ends too early");
    refused("d", -EBADMSG, "d: is not a deflate stream");
    refused("e", -EBADMSG, "e: cannot unpack to the size");
}

Test(npz, every_cut)
{
    for (int deflate = 0; deflate < 2; deflate++) {
        npzfx_free(&archive);
        archive.deflate = deflate;
        npzfx_floats(&archive, "a", 2, two_by_three, values);
        npzfx_end(&archive);
        for (size_t whole = archive.n; archive.n > 0; archive.n--)
            cr_assert(archive.n == whole || read_it("a") < 0, "%zu of %zu", archive.n, whole);
    }
}

/* ---- headers ---- */

static int parse(const char *header, struct weir_npy *npy)
{
    uint8_t bytes[2048];
    size_t n = strlen(header);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)n;
    bytes[9] = (uint8_t)(n >> 8);
    memcpy(bytes + 10, header, n);
    uint8_t *exact = malloc(10 + n);
    memcpy(exact, bytes, 10 + n);
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_assert_eq(weir_npy_header_bytes(bytes, &err), (int)(10 + n), "%s", err.text);
    int rc = weir_npy_parse(exact, 10 + n, npy, &err);
    free(exact);
    return rc;
}

Test(npz, headers)
{
    struct weir_npy npy;
    cr_assert_eq(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", &npy), 0, "%s", err.text);
    cr_assert(npy.kind == 'f' && npy.item_bytes == 4 && !npy.big_endian && !npy.fortran && npy.rank == 2);
    cr_assert(npy.dims[0] == 3 && npy.dims[1] == 4 && npy.items == 12 && npy.data_bytes == 48);
    cr_assert_eq(parse(" {\"shape\":(7,),\"fortran_order\":True,\"descr\":\">U10\"}", &npy), 0, "%s", err.text);
    cr_assert(npy.kind == 'U' && npy.item_bytes == 40 && npy.big_endian && npy.fortran && npy.rank == 1);
    cr_assert_eq(parse("{'descr': '|S5', 'fortran_order': False, 'shape': ()}", &npy), 0, "%s", err.text);
    cr_assert(npy.rank == 0 && npy.items == 1 && npy.data_bytes == 5);
}

Test(npz, headers_refused)
{
    static const struct {
        const char *header;
        int code;
        const char *words;
    } bad[] = {
        {"{}", -EBADMSG, "does not contain"},
        {"  ", -EBADMSG, "is not a dictionary"},
        {"('descr', '<f4')", -EBADMSG, "is not a dictionary"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", -EBADMSG, "npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,", -EBADMSG, "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3", -EBADMSG, "not a tuple"},
        {"{'descr': '<f4", -EBADMSG, "not a string"},
        {"{'descr", -EBADMSG, "a key where one is expected"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}", -EBADMSG, "not a dictionary"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} {", -EBADMSG, "continues after"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (3,)}", -EBADMSG, "twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'x': (3,)}", -EBADMSG, "a key other than"},
        {"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (3,)}", -EBADMSG, "not a dictionary"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0x3,)}", -EBADMSG, "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", -EBADMSG, "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", -EBADMSG, "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", -EBADMSG, "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}", -EBADMSG, "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", -EFBIG, "1 GiB"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (268435457,)}", -EFBIG, "1 GiB"},
        {"{'descr': '<U0', 'fortran_order': False, 'shape': (18446744073709551615,)}", -EFBIG, "1 GiB"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", -ENOTSUP, "8 dimensions"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "holds Python objects"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", -ENOTSUP, "several fields"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "type <c8"},
        {"{'descr': '<f1', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "type <f1"},
        {"{'descr': '<b4', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "type <b4"},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "type |f4"},
        {"{'descr': '<f4x', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "type <f4x"},
        {"{'descr': '<f', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "type <f"},
        {"{'descr': '', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "type"},
        {"{'descr': '<S99999', 'fortran_order': False, 'shape': ()}", -ENOTSUP, "type <S99999"},
    };
    struct weir_npy npy;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(parse(bad[i].header, &npy), bad[i].code, "%s: %s", bad[i].header, err.text);
        cr_assert(strstr(err.text, bad[i].words), "%s: %s", bad[i].header, err.text);
    }
}
