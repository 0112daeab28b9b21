#include "base/shortage.h"
#include "datasets/hdf5/h5_read_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hdf5.h>

int weir_h5_start(void)
{
    return H5open() < 0 ? -ENOMEM : 0;
}

int64_t weir_h5_memory_type(enum weir_number_type type)
{
    const hid_t types[WEIR_NUMBER_TYPES] = {
        [WEIR_F32] = H5T_NATIVE_FLOAT,  [WEIR_F64] = H5T_NATIVE_DOUBLE, [WEIR_I8] = H5T_NATIVE_INT8,
        [WEIR_I16] = H5T_NATIVE_INT16,  [WEIR_I32] = H5T_NATIVE_INT32,  [WEIR_I64] = H5T_NATIVE_INT64,
        [WEIR_U8] = H5T_NATIVE_UINT8,   [WEIR_U16] = H5T_NATIVE_UINT16, [WEIR_U32] = H5T_NATIVE_UINT32,
        [WEIR_U64] = H5T_NATIVE_UINT64,
    };
    return types[type];
}

/* The innermost message of the last failed call. The error stack has it only until the next call begins, such as one
 * that closes an identifier. */
static _Thread_local char last_message[256];

static herr_t keep_innermost(unsigned n, const H5E_error2_t *entry, void *text)
{
    (void)n;
    if (!*(char *)text && entry->desc)
        snprintf(text, 256, "%s", entry->desc);
    return 0;
}

const char *weir_h5_library_message(char text[256])
{
    *text = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, text);
    if (!*text)
        snprintf(text, 256, "%s", *last_message ? last_message : "no reason given");
    return text;
}

/* The first failure since a file was opened that was not the file's fault. It is per thread, because the library's
 * errors are. */
static _Thread_local int machine_code;
static _Thread_local bool malloc_failed;
static _Thread_local char machine_file[512]; /* the affected file, if it is not the file being read */

/* Returns true for an errno that is the machine's fault. EAGAIN is not: it means that a writer holds a lock on the
 * file, because the library starts no threads. */
static bool is_machines(int number)
{
    return number != EAGAIN &&
           (weir_is_shortage(-number) || weir_is_storage_error(-number) || number == EACCES || number == EPERM);
}

/* The library puts the errno of a failed system call into its message, and uses the codes below for failed allocations.
 * Property lists do not come from the file, so only a lack of memory can break them. */
static herr_t find_machine_error(unsigned n, const H5E_error2_t *entry, void *code)
{
    (void)n;
    int number;
    const char *at = entry->desc ? strstr(entry->desc, "errno = ") : NULL;
    if (at && sscanf(at, "errno = %d", &number) == 1 && is_machines(number))
        *(int *)code = -number;
    else if (entry->min_num == H5E_CANTALLOC || (entry->min_num == H5E_NOSPACE && entry->maj_num == H5E_RESOURCE))
        malloc_failed = true;
    else if (*(int *)code == 0 && entry->maj_num == H5E_PLIST)
        *(int *)code = -ENOMEM;
    return 0;
}

/* malloc sets errno to ENOMEM. The library itself may not have enough memory to report it. */
static void find_no_memory(void)
{
    malloc_failed |= errno == ENOMEM;
    if (machine_code == 0 && malloc_failed)
        machine_code = -ENOMEM;
}

/* The library calls this function for each failed call, including calls for which failure is a normal result here. */
static herr_t on_library_error(hid_t stack, void *user)
{
    (void)user;
    *last_message = '\0';
    H5Ewalk2(stack, H5E_WALK_UPWARD, keep_innermost, last_message);
    if (machine_code == 0)
        H5Ewalk2(stack, H5E_WALK_UPWARD, find_machine_error, &machine_code);
    find_no_memory();
    return 0;
}

void weir_h5_watch_errors(void)
{
    machine_code = 0;
    malloc_failed = false;
    machine_file[0] = '\0';
    *last_message = '\0';
    errno = 0;
    H5Eset_auto2(H5E_DEFAULT, on_library_error,
                 NULL); /* per thread; this also stops the library from printing errors */
}

void weir_h5_note_error(int number, const char *file)
{
    if (machine_code != 0 || !is_machines(number))
        return;
    machine_code = -number;
    snprintf(machine_file, sizeof machine_file, "%s", file ? file : "");
}

int weir_h5_machine_error(struct weir_err *err)
{
    find_no_memory();
    if (machine_code == 0)
        return 0;
    if (err)
        *err = WEIR_ERR_NONE;
    return weir_err_set(err, machine_code, "%s%s%s (%s), in the HDF5 helper process; %s",
                        machine_code == -ENOMEM               ? "out of memory"
                        : weir_is_storage_error(machine_code) ? "the storage failed to read the file"
                                                              : "a file that it refers to cannot be opened",
                        machine_file[0] ? ": " : "", machine_file, strerror(-machine_code),
                        weir_open_advice(machine_code));
}

bool weir_h5_malloc_failed(void)
{
    find_no_memory();
    return malloc_failed;
}

int weir_h5_fail(struct weir_err *err, const char *path, const char *what)
{
    char text[256];
    int machine = weir_h5_machine_error(err);
    return machine < 0 ? machine
                       : weir_err_set(err, -EBADMSG, "%s: %s (HDF5: %s)", path, what, weir_h5_library_message(text));
}
