#include "base/shortage.h"
#include "datasets/hdf5/h5_guard_priv.h"
#include "datasets/hdf5/h5_read.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

enum { TEXT_MAX = 65536 };

static void note_unreadable(struct weir_h5 *h5, const char *name)
{
    if (*h5->unreadable)
        return;
    snprintf(h5->unreadable, sizeof h5->unreadable, "%s", name);
    weir_h5_library_message(h5->unreadable_why);
}

/* If one attribute of the root is damaged, the library cannot find any attribute of the root by name. why: the
 * library's reason, or "". */
static int unreadable(const char *name, const char *why, int rc, struct weir_err *err)
{
    if (rc == -ENOMEM)
        return weir_no_memory(err);
    bool version = strstr(why, "bad version number");
    return weir_err_set(err, rc, "attribute %s, or another attribute of the file's root, cannot be read%s%s%s; %s",
                        name, *why ? " (HDF5: " : "", why, *why ? ")" : "",
                        version ? "a newer HDF5 wrote the file (write it with libver=\"v110\", or without libver), or "
                                  "it is damaged (copy it again)"
                                : "copy the file again");
}

int weir_h5_unreadable(const struct weir_h5 *h5, struct weir_err *err)
{
    return *h5->unreadable ? unreadable(h5->unreadable, h5->unreadable_why, -EBADMSG, err) : 0;
}

/* Opens an attribute of an object. Returns H5I_INVALID_HID if it is missing or cannot be opened; *exists distinguishes
 * the two cases. */
static hid_t open_attribute(struct weir_h5 *h5, const char *path, const char *name, bool *exists)
{
    *exists = H5Aexists_by_name(h5->file, path, name, H5P_DEFAULT) != 0;
    return *exists ? H5Aopen_by_name(h5->file, path, name, H5P_DEFAULT, H5P_DEFAULT) : H5I_INVALID_HID;
}

bool weir_h5_is_false(struct weir_h5 *h5, const char *relative, const char *name)
{
    bool exists;
    char path[WEIR_STORE_PATH_MAX];
    weir_h5_absolute(h5, relative, path);
    hid_t id = open_attribute(h5, path, name, &exists);
    if (id < 0) {
        if (exists)
            note_unreadable(h5, name);
        return false;
    }
    hid_t type = H5Aget_type(id);
    signed char value = 1;
    bool is_byte =
        type >= 0 && H5Tget_size(type) == 1 && H5Tget_class(type) != H5T_VLEN && H5Aget_storage_size(id) == 1;
    if (type < 0 || (is_byte && H5Aread(id, type, &value) < 0))
        note_unreadable(h5, name);
    if (type >= 0)
        H5Tclose(type);
    H5Aclose(id);
    return is_byte && value == 0;
}

bool weir_h5_number(struct weir_h5 *h5, const char *name, double *value)
{
    bool exists;
    hid_t id = open_attribute(h5, "/", name, &exists), type = id < 0 ? H5I_INVALID_HID : H5Aget_type(id);
    hid_t space = id < 0 ? H5I_INVALID_HID : H5Aget_space(id);
    H5T_class_t kind = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    bool found = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    signed char byte = 0;
    if (found && kind == H5T_ENUM && H5Tget_size(type) == 1) { /* h5py's bool */
        found = H5Aread(id, type, &byte) >= 0;
        *value = byte;
    } else {
        found = found && (kind == H5T_INTEGER || kind == H5T_FLOAT) && H5Aread(id, H5T_NATIVE_DOUBLE, value) >= 0;
    }
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (id >= 0)
        H5Aclose(id);
    return found;
}

/* Reads a variable-length string, the type that h5py writes for str. */
static int read_text(hid_t id, hid_t type, hid_t space, char *text, size_t size)
{
    char *read = NULL;
    if (H5Aread(id, type, &read) < 0)
        return -EBADMSG;
    if (!read)
        return 0; /* the attribute was never written */
    snprintf(text, size, "%s", read);
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, &read);
    return 1;
}

/* Reads a fixed-length string, the type that h5py writes for numpy.bytes_. */
static int read_fixed_text(hid_t id, hid_t type, char *text, size_t size)
{
    size_t bytes = H5Tget_size(type);
    if (bytes >= TEXT_MAX)
        return 0;
    char *read = calloc(1, bytes + 1);
    int rc = !read ? -ENOMEM : H5Aread(id, type, read) < 0 ? -EBADMSG : 1;
    if (rc > 0)
        snprintf(text, size, "%s", read);
    free(read);
    return rc;
}

/* Returns 1 with the string, truncated to size; 0 if the attribute has another type; a negative code if it is
 * unreadable. */
static int read_attribute(hid_t id, char *text, size_t size)
{
    hid_t type = H5Aget_type(id), space = H5Aget_space(id);
    int rc = type >= 0 && space >= 0 ? 0 : -EBADMSG;
    if (rc == 0 && H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1)
        rc = H5Tis_variable_str(type) > 0 ? read_text(id, type, space, text, size)
                                          : read_fixed_text(id, type, text, size);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return rc;
}

int weir_h5_text(struct weir_h5 *h5, const char *name, char *text, size_t size, struct weir_err *err)
{
    bool exists;
    char why[256] = "";
    hid_t id = open_attribute(h5, "/", name, &exists);
    if (!exists)
        return 0;
    if (id < 0)
        weir_h5_library_message(why);
    int rc = id < 0 ? -EBADMSG : read_attribute(id, text, size);
    if (id >= 0)
        H5Aclose(id);
    if (rc < 0)
        return unreadable(name, why, rc, err);
    return rc > 0 ? rc : weir_err_set(err, -EBADMSG, "attribute %s is not a string; repair it, or remove it", name);
}

/* ---- all strings of an object ---- */

struct telling {
    weir_h5_text_fn *take;
    void *user;
    int seen, rc;
    char text[TEXT_MAX];
};

/* A callback of H5Aiterate. Returning 1 ends the iteration. */
static herr_t tell_attribute(hid_t object, const char *name, const H5A_info_t *info, void *user)
{
    enum { ATTRIBUTES_MAX = 1000 };
    struct telling *telling = user;
    (void)info;
    if (telling->seen++ == ATTRIBUTES_MAX)
        return 1;
    hid_t id = H5Aopen(object, name, H5P_DEFAULT);
    if (id < 0)
        return 0;
    int rc = read_attribute(id, telling->text, sizeof telling->text);
    if (rc != 0)
        telling->rc = telling->take(telling->user, name, rc > 0 ? telling->text : NULL);
    H5Aclose(id);
    return telling->rc < 0;
}

int weir_h5_texts(struct weir_h5 *h5, const char *path, weir_h5_text_fn *take, void *user)
{
    struct telling *telling = calloc(1, sizeof *telling);
    if (!telling)
        return -ENOMEM;
    *telling = (struct telling){.take = take, .user = user};
    H5Aiterate_by_name(h5->file, path, H5_INDEX_NAME, H5_ITER_INC, NULL, tell_attribute, telling, H5P_DEFAULT);
    int rc = telling->rc;
    free(telling);
    return rc;
}

/* ---- datasets of strings ---- */

/* Called for each of the n elements with a zero-terminated string, or with NULL if the element was never written. */
typedef bool text_fn(void *user, size_t i, const char *text);

/* For fixed-length strings: reads all elements, leaving space for a zero after each of them. */
static bool take_fixed(const struct weir_h5_read *how, const struct weir_h5_dataset *d, size_t n, text_fn *take,
                       void *user)
{
    size_t bytes = d->shape.type_bytes;
    char *read = bytes > 0 && n <= TEXT_MAX * (size_t)16 / bytes ? calloc(n + 1, bytes) : NULL;
    char *text = calloc(1, bytes + 1);
    bool fine = read && text && weir_h5_read_selected(how, d->id, d->space, d->space, read, NULL) == 0;
    for (size_t i = 0; i < n && fine; i++) {
        memcpy(text, read + i * bytes, bytes);
        fine = take(user, i, text);
    }
    free(text);
    free(read);
    return fine;
}

static bool take_variable(const struct weir_h5_read *how, const struct weir_h5_dataset *d, size_t n, text_fn *take,
                          void *user)
{
    char **read = n <= TEXT_MAX ? calloc(n + 1, sizeof *read) : NULL;
    bool fine = read && weir_h5_read_selected(how, d->id, d->space, d->space, read, NULL) == 0;
    for (size_t i = 0; i < n && fine; i++)
        fine = take(user, i, read[i]);
    if (read && n > 0)
        H5Dvlen_reclaim(how->memory_type, d->space, H5P_DEFAULT, read);
    free(read);
    return fine;
}

static bool take_texts(const struct weir_h5_dataset *d, size_t n, text_fn *take, void *user)
{
    bool variable = d->shape.element == WEIR_ELEMENT_VLEN_STRING;
    bool fixed = d->shape.element == WEIR_ELEMENT_FIXED_BYTES && H5Tget_class(d->type) == H5T_STRING &&
                 d->shape.type_bytes < TEXT_MAX;
    hid_t type = fixed || variable ? H5Tcopy(H5T_C_S1) : H5I_INVALID_HID;
    bool fine = type >= 0 && H5Tset_size(type, variable ? H5T_VARIABLE : d->shape.type_bytes) >= 0 &&
                H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 && H5Tset_cset(type, H5Tget_cset(d->type)) >= 0;
    const struct weir_h5_read how = {d->path, type, true};
    fine = fine && (variable ? take_variable : take_fixed)(&how, d, n, take, user);
    if (type >= 0)
        H5Tclose(type);
    return fine;
}

struct one_text {
    char *text;
    size_t size;
};

static bool take_one(void *user, size_t i, const char *text)
{
    const struct one_text *one = user;
    (void)i;
    if (text)
        snprintf(one->text, one->size, "%s", text);
    return text != NULL;
}

/* Accepts a scalar, or an array of one element. */
bool weir_h5_text_of(struct weir_h5 *h5, const char *path, char *text, size_t size)
{
    struct weir_h5_dataset d;
    if (!weir_h5_has(h5, path) || weir_h5_open_whole(h5, path, &d, NULL) < 0)
        return false;
    bool fine =
        H5Sget_simple_extent_npoints(d.space) == 1 && take_texts(&d, 1, take_one, &(struct one_text){text, size});
    weir_h5_close_dataset(&d);
    return fine;
}

static bool take_name(void *user, size_t i, const char *text)
{
    char(*names)[64] = user;
    return snprintf(names[i], sizeof *names, "%s", text ? text : "") < (int)sizeof *names;
}

int weir_h5_read_names(struct weir_h5 *h5, const char *path, char (**names)[64], struct weir_array_shape *shape,
                       struct weir_err *err)
{
    enum { NAMES_MAX = 65536 };
    struct weir_h5_dataset d;
    *names = NULL;
    int rc = weir_h5_open_whole(h5, path, &d, err);
    if (rc < 0)
        return rc;
    hssize_t n = H5Sget_simple_extent_npoints(d.space);
    *shape = d.shape;
    if (n >= 0 && n <= NAMES_MAX)
        *names = calloc((size_t)n + 1, sizeof **names);
    if (n < 0 || n > NAMES_MAX)
        rc = weir_err_set(err, -EFBIG, "%s: has more than %d names", d.path, NAMES_MAX);
    else if (!*names)
        rc = weir_err_set(err, -ENOMEM, "%s: out of memory", d.path);
    else if (!take_texts(&d, (size_t)n, take_name, *names))
        rc = weir_err_set(err, -EBADMSG,
                          "%s: cannot be read as a list of names; every element must be a string of at most 63 bytes",
                          d.path);
    weir_h5_close_dataset(&d);
    if (rc < 0) {
        free(*names);
        *names = NULL;
    }
    return rc;
}
