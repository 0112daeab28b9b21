#include "extras/train/cli/safetensors.h"
#include "base/files.h"
#include "base/shortage.h"
#include "base/text.h"
#include "weir/base.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "safetensors files are little-endian");

enum { LENGTH_BYTES = 8, HEADER_BYTES_MAX = 16 << 20 };
static const char METADATA[] = "__metadata__";

static uint64_t bytes_of(const struct weir_safetensor *tensor)
{
    uint64_t bytes = sizeof *tensor->data;
    assert(tensor->ndim >= 0 && tensor->ndim <= WEIR_SAFETENSOR_DIMS);
    for (int d = 0; d < tensor->ndim; d++) {
        bool overflows = __builtin_mul_overflow(bytes, tensor->shape[d], &bytes);
        assert(!overflows && tensor->shape[d] >= 0);
        (void)overflows;
    }
    return bytes;
}

/* ---- writing ---- */

static bool is_utf8(const char *text)
{
    uint32_t code;
    size_t left = strlen(text), n = 1;
    for (; left > 0 && n > 0; text += n, left -= n)
        n = weir_utf8_next(text, left, &code);
    return left == 0 && n > 0;
}

/* Checks that all strings are valid UTF-8, and that array names are unique, nonempty and not reserved. */
static int check_names(const char *path, const struct weir_safetensor *tensors, int n,
                       const struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err)
{
    for (int i = 0; i < n; i++) {
        const char *name = tensors[i].name, *why = NULL;
        if (!*name || strcmp(name, METADATA) == 0 || !is_utf8(name))
            why = "is not a valid array name; choose a different name in UTF-8";
        for (int k = 0; k < i && !why; k++)
            if (strcmp(tensors[k].name, name) == 0)
                why = "is the name of two arrays; use unique names";
        if (why)
            return weir_err_set(err, -EINVAL, "%s: cannot be written: \"%s\" %s", path, name, why);
    }
    for (int i = 0; i < n_meta; i++)
        if (!is_utf8(meta[i].key) || !is_utf8(meta[i].value))
            return weir_err_set(err, -EINVAL, "%s: cannot be written: the metadata entry \"%s\" is not valid UTF-8",
                                path, meta[i].key);
    return 0;
}

static void put_header(FILE *out, const struct weir_safetensor *tensors, int n,
                       const struct weir_safetensors_meta *meta, int n_meta)
{
    struct weir_json json;
    uint64_t at = 0;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    if (n_meta > 0) {
        weir_json_object(&json, METADATA);
        for (int i = 0; i < n_meta; i++)
            weir_json_text(&json, meta[i].key, meta[i].value);
        weir_json_end(&json, '}');
    }
    for (int i = 0; i < n; i++) {
        weir_json_object(&json, tensors[i].name);
        weir_json_text(&json, "dtype", "F32");
        weir_json_array(&json, "shape");
        for (int d = 0; d < tensors[i].ndim; d++)
            weir_json_int(&json, NULL, tensors[i].shape[d]);
        weir_json_end(&json, ']');
        weir_json_array(&json, "data_offsets");
        weir_json_uint(&json, NULL, at);
        at += bytes_of(&tensors[i]);
        weir_json_uint(&json, NULL, at);
        weir_json_end(&json, ']');
        weir_json_end(&json, '}');
    }
    weir_json_end(&json, '}');
    for (long bytes = ftell(out); bytes % LENGTH_BYTES != 0; bytes++) /* pads, to align the arrays */
        putc(' ', out);
}

/* Builds the header, which the caller must free. */
static int make_header(char **header, size_t *bytes, const struct weir_safetensor *tensors, int n,
                       const struct weir_safetensors_meta *meta, int n_meta)
{
    FILE *out = open_memstream(header, bytes);
    if (!out)
        return -ENOMEM;
    put_header(out, tensors, n, meta, n_meta);
    bool bad = ferror(out) != 0;
    if (fclose(out) != 0 || bad)
        return -ENOMEM;
    return *bytes <= HEADER_BYTES_MAX ? 0 : -EFBIG;
}

static int put_file(int fd, const char *header, size_t header_bytes, const struct weir_safetensor *tensors, int n)
{
    uint64_t length = header_bytes, at = LENGTH_BYTES + header_bytes;
    int rc = weir_write_at(fd, 0, &length, sizeof length);
    if (rc == 0)
        rc = weir_write_at(fd, LENGTH_BYTES, header, header_bytes);
    for (int i = 0; i < n && rc == 0; i++) {
        uint64_t bytes = bytes_of(&tensors[i]);
        rc = weir_write_at(fd, at, tensors[i].data, bytes);
        at += bytes;
    }
    if (rc == 0 && fsync(fd) != 0 && errno != EINVAL) /* EINVAL: the file system does not support fsync */
        rc = -errno;
    return rc;
}

/* Writes the complete file to the path "partial". */
static int write_partial(const char *partial, const struct weir_safetensor *tensors, int n,
                         const struct weir_safetensors_meta *meta, int n_meta)
{
    char *header = NULL;
    size_t header_bytes = 0;
    int rc = make_header(&header, &header_bytes, tensors, n, meta, n_meta);
    if (rc == 0 && unlink(partial) != 0 && errno != ENOENT)
        rc = -errno;
    int fd = rc == 0 ? open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    if (rc == 0 && fd < 0)
        rc = -errno;
    if (rc == 0)
        rc = put_file(fd, header, header_bytes, tensors, n);
    if (fd >= 0 && close(fd) != 0 && rc == 0)
        rc = -errno;
    if (fd >= 0 && rc < 0)
        unlink(partial);
    free(header);
    return rc;
}

int weir_safetensors_check(const char *path, struct weir_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return 0;
    return weir_err_set(err, -EINVAL, "%s: exists but is not a regular file; choose another path", path);
}

int weir_safetensors_write(const char *path, const struct weir_safetensor *tensors, int n,
                           const struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err)
{
    char *partial = NULL;
    int rc = check_names(path, tensors, n, meta, n_meta, err);
    if (rc < 0)
        return rc;
    rc = weir_safetensors_check(path, err);
    if (rc < 0)
        return rc;
    char *target = weir_output_resolve(path); /* if path is a symbolic link, replaces its target and keeps the link */
    rc = target ? 0 : -errno;
    if (rc == 0 && asprintf(&partial, "%s.partial", target) < 0)
        rc = -ENOMEM;
    if (rc == 0)
        rc = write_partial(partial, tensors, n, meta, n_meta);
    if (rc < 0)
        weir_err_set(err, rc, "%s: cannot be written: %s; %s", path, strerror(-rc),
                     rc == -ENOMEM ? weir_machine_advice(rc) : weir_write_advice(rc));
    else
        rc = weir_durable_replace(partial, target, err);
    if (rc < 0 && partial)
        unlink(partial);
    free(partial);
    free(target);
    return rc;
}

/* ---- reading ---- */

/* The byte range of an array, relative to the end of the header. */
struct place {
    const char *name;
    uint64_t begin, end;
};

struct reading {
    const char *path;
    struct weir_err *err;
    int fd;
    uint64_t header_bytes, data_bytes; /* sizes of the file's header and array data */
    json_t *root;
    struct place *places; /* one per tensor */
};

static int refuse(const struct reading *r, const char *name, const char *what)
{
    return weir_err_set(r->err, -EINVAL, "%s: its array \"%s\" %s", r->path, name, what);
}

static int no_tensors(const struct reading *r, const char *why)
{
    return weir_err_set(r->err, -EINVAL, "%s: is not a safetensors file: %s; the file may be incomplete", r->path, why);
}

static int read_failed(const struct reading *r, int rc)
{
    const char *advice = weir_machine_advice(rc);
    return weir_err_set(r->err, rc, "%s: cannot be read: %s%s%s", r->path,
                        rc == -ENODATA ? "it ended early; another program may have changed it" : strerror(-rc),
                        advice ? "; " : "", advice ? advice : "");
}

static int open_file(struct reading *r)
{
    struct stat st;
    uint8_t length[LENGTH_BYTES];
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: do not wait for a named pipe's writer */
    if (r->fd < 0)
        return weir_err_set(r->err, -errno, "%s: cannot be opened: %s; %s", r->path, strerror(errno),
                            weir_open_advice(-errno));
    if (fstat(r->fd, &st) != 0)
        return read_failed(r, -errno);
    if (!S_ISREG(st.st_mode))
        return weir_err_set(r->err, -EINVAL, "%s: is not a regular file; specify a safetensors file", r->path);
    if (st.st_size < LENGTH_BYTES)
        return no_tensors(r, "it is shorter than 8 bytes");
    int rc = weir_read_at(r->fd, 0, length, sizeof length);
    if (rc < 0)
        return read_failed(r, rc);
    r->header_bytes = weir_le(length, LENGTH_BYTES);
    r->data_bytes = (uint64_t)st.st_size - LENGTH_BYTES;
    if (r->header_bytes > r->data_bytes || r->header_bytes > HEADER_BYTES_MAX)
        return no_tensors(r, "its header is longer than the file or than 16 MiB");
    r->data_bytes -= r->header_bytes;
    return 0;
}

static int parse_header(struct reading *r, const char *text)
{
    json_error_t where;
    if (r->header_bytes == 0 || text[0] != '{')
        return no_tensors(r, "its header does not begin with {");
    errno = 0; /* jansson reports a failed allocation like a syntax error, but malloc sets errno */
    r->root = json_loadb(text, r->header_bytes, JSON_REJECT_DUPLICATES, &where);
    if (!r->root && errno == ENOMEM)
        return read_failed(r, -ENOMEM);
    return r->root ? 0 : no_tensors(r, where.text);
}

static int read_header(struct reading *r)
{
    char *text = malloc(r->header_bytes + 1);
    int rc = text ? weir_read_at(r->fd, LENGTH_BYTES, text, r->header_bytes) : -ENOMEM;
    rc = rc < 0 ? read_failed(r, rc) : parse_header(r, text);
    free(text);
    return rc;
}

static bool has_shape(const json_t *shape, const struct weir_safetensor *tensor)
{
    bool same = json_is_array(shape) && json_array_size(shape) == (size_t)tensor->ndim;
    for (int d = 0; same && d < tensor->ndim; d++) {
        const json_t *dim = json_array_get(shape, (size_t)d);
        same = json_is_integer(dim) && json_integer_value(dim) == tensor->shape[d];
    }
    return same;
}

static int check_tensor(const struct reading *r, const struct weir_safetensor *tensor, struct place *place)
{
    const json_t *entry = json_object_get(r->root, tensor->name), *offsets = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!entry)
        return refuse(r, tensor->name, "is missing; the file may belong to another model");
    if (!dtype || strcmp(dtype, "F32") != 0)
        return refuse(r, tensor->name, "is not of type F32; save it as float32");
    if (!has_shape(json_object_get(entry, "shape"), tensor))
        return refuse(r, tensor->name, "has a different shape in this model; the file may belong to another model");
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return refuse(r, tensor->name, "has invalid data_offsets; the file may be damaged");
    *place = (struct place){tensor->name, (uint64_t)json_integer_value(begin), (uint64_t)json_integer_value(end)};
    if (place->end > r->data_bytes)
        return refuse(r, tensor->name, "extends past the end of the file; the file may be incomplete");
    if (place->end - place->begin != bytes_of(tensor))
        return refuse(r, tensor->name, "has a size that does not match its shape; the file may be damaged");
    return 0;
}

/* Checks that the file contains no further arrays. */
static int check_others(const struct reading *r, const struct weir_safetensor *tensors, int n)
{
    bool has_metadata = json_object_get(r->root, METADATA);
    if (json_object_size(r->root) == (size_t)n + has_metadata)
        return 0;
    const char *key;
    json_t *value;
    json_object_foreach(r->root, key, value)
    {
        bool known = strcmp(key, METADATA) == 0;
        for (int i = 0; i < n && !known; i++)
            known = strcmp(key, tensors[i].name) == 0;
        if (!known)
            return refuse(r, key, "is not in this model; the file may belong to another model");
    }
    return 0; /* the caller listed a name twice; check_order will find the overlap */
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin) : (x->end > y->end) - (x->end < y->end);
}

/* Checks that the arrays are contiguous and fill the file, as the format requires. A file with unchecked gaps could
 * hide data. Sorts a copy, to keep the order of places. */
static int check_order(const struct reading *r, int n)
{
    uint64_t at = 0;
    struct place *sorted = malloc((size_t)n * sizeof *sorted + 1);
    if (!sorted)
        return read_failed(r, -ENOMEM);
    memcpy(sorted, r->places, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_place);
    int rc = 0;
    for (int i = 0; i < n && rc == 0; at = sorted[i++].end)
        if (sorted[i].begin != at)
            rc = refuse(r, sorted[i].name,
                        sorted[i].begin < at ? "overlaps another array; the file may be damaged"
                                             : "follows a gap; the file may be damaged");
    free(sorted);
    return rc == 0 && at != r->data_bytes ? no_tensors(r, "it has bytes after the last array") : rc;
}

static int check_meta(const struct reading *r, const struct weir_safetensors_meta *meta, int n_meta)
{
    const json_t *texts = json_object_get(r->root, METADATA);
    if (texts && !json_is_object(texts))
        return no_tensors(r, "its __metadata__ is not an object");
    for (int i = 0; i < n_meta; i++) {
        const json_t *value = json_object_get(texts, meta[i].key);
        if (value && (!json_is_string(value) || json_string_length(value) >= sizeof meta[i].value))
            return weir_err_set(r->err, -EINVAL,
                                "%s: the value of \"%s\" in its metadata must be a string of at most %zu bytes",
                                r->path, meta[i].key, sizeof meta[i].value - 1);
    }
    return 0;
}

static int check_all(struct reading *r, const struct weir_safetensor *tensors, int n,
                     const struct weir_safetensors_meta *meta, int n_meta)
{
    int rc = 0;
    r->places = calloc((size_t)n + 1, sizeof *r->places);
    if (!r->places)
        return read_failed(r, -ENOMEM);
    for (int i = 0; i < n && rc == 0; i++)
        rc = check_tensor(r, &tensors[i], &r->places[i]);
    if (rc == 0 && tensors)
        rc = check_others(r, tensors, n);
    if (rc == 0 && tensors)
        rc = check_order(r, n);
    return rc < 0 ? rc : check_meta(r, meta, n_meta);
}

static int take_all(struct reading *r, const struct weir_safetensor *tensors, int n, struct weir_safetensors_meta *meta,
                    int n_meta)
{
    for (int i = 0; i < n; i++) {
        const struct place *place = &r->places[i];
        int rc = weir_read_at(r->fd, LENGTH_BYTES + r->header_bytes + place->begin, tensors[i].data,
                              place->end - place->begin);
        if (rc < 0)
            return read_failed(r, rc);
    }
    for (int i = 0; i < n_meta; i++) {
        const char *value = json_string_value(json_object_get(json_object_get(r->root, METADATA), meta[i].key));
        snprintf(meta[i].value, sizeof meta[i].value, "%s", value ? value : "");
    }
    return 0;
}

int weir_safetensors_read(const char *path, const struct weir_safetensor *tensors, int n,
                          struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err)
{
    struct reading r = {.path = path, .err = err, .fd = -1};
    int rc = open_file(&r);
    if (rc == 0)
        rc = read_header(&r);
    if (rc == 0)
        rc = check_all(&r, tensors, n, meta, n_meta);
    if (rc == 0)
        rc = take_all(&r, tensors, n, meta, n_meta);
    free(r.places);
    json_decref(r.root);
    if (r.fd >= 0)
        close(r.fd);
    return rc;
}
