#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITER_MS = 3000 /* how long to wait for a process to open a FIFO for writing */ };

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

/* Truncates text at its comment and trailing spaces, and returns its first non-space character. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    for (char *c = text; *c; c++) {
        if (*c == '#' && (c == text || is_space(c[-1]))) {
            *c = '\0';
            break;
        }
    }
    size_t n = strlen(text);
    while (n > 0 && is_space(text[n - 1]))
        text[--n] = '\0';
    return text;
}

/* Returns the length of the option name at the start of text, or 0 if text does not start with one. Replaces
 * underscores in the name with hyphens. */
static size_t take_name(char *text)
{
    size_t n = 0;
    for (; (text[n] >= 'a' && text[n] <= 'z') || (text[n] >= '0' && text[n] <= '9') || text[n] == '-' || text[n] == '_';
         n++)
        if (text[n] == '_')
            text[n] = '-';
    return n < WEIR_CONFIG_NAME && text[0] != '-' ? n : 0;
}

static int add_line(struct weir_config_file *file, char *text, int number, struct weir_err *err)
{
    size_t n = take_name(text), equals = n + strspn(text + n, " \t");
    if (n > 0 && text[equals] != '=')
        return weir_err_set(err, -EINVAL, "%d: '%.*s': '=' and a value are missing", number, (int)n, text);
    if (n == 0)
        return weir_err_set(
            err, -EINVAL, "%d: expected 'option = value', where the option is written without leading hyphens", number);
    char *value = text + equals + 1;
    value += strspn(value, " \t");
    text[n] = '\0';
    if (*value == '\0' || *value == '#')
        return weir_err_set(err, -EINVAL, "%d: %s has no value", number, text);
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->lines[i].name, text) == 0)
            return weir_err_set(err, -EINVAL, "%d: %s given twice, first on line %d", number, text,
                                file->lines[i].number);
    if (file->n == WEIR_CONFIG_LINES)
        return weir_err_set(err, -EINVAL, "%d: more than %d options", number, WEIR_CONFIG_LINES);
    file->lines[file->n++] = (struct weir_config_line){number, text, value};
    return 0;
}

int weir_config_parse(struct weir_config_file *file, char *text, size_t length, struct weir_err *err)
{
    char *end = text + length, *next;
    int number = 1;
    file->n = 0;
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* skips a byte order mark */
        text += 3;
    for (char *line = text; line < end; line = next, number++) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *stop = newline ? newline : end;
        next = newline ? newline + 1 : end;
        *stop = '\0';
        for (char *c = line; c < stop; c++)
            if (is_control(*c) && !(*c == '\r' && c + 1 == stop))
                return weir_err_set(err, -EINVAL, "%d: contains byte 0x%02x, so this is not a text file", number,
                                    (unsigned char)*c);
        line = trim(line);
        int rc = *line ? add_line(file, line, number, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* fd must be non-blocking, because opening a FIFO that has no writer would block forever. */
static int read_all(int fd, bool is_fifo, char *text, size_t *length)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};
    bool waited = false;
    *length = 0;
    while (*length <= WEIR_CONFIG_BYTES) {
        ssize_t n = read(fd, text + *length, WEIR_CONFIG_BYTES + 1 - *length);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        if (n < 0 && errno == EAGAIN) /* a writer is connected but has sent nothing yet */
            poll(&end, 1, -1);
        *length += n > 0 ? (size_t)n : 0;
        if (n != 0)
            continue;
        if (*length > 0 || !is_fifo)
            return 0;
        if (waited)
            return -ENXIO;
        waited = true;
        if (poll(&end, 1, WRITER_MS) > 0 && !(end.revents & POLLIN))
            return 0; /* a writer connected and left without sending anything */
    }
    return -EFBIG;
}

static int read_failed(const char *path, int rc, struct weir_err *err)
{
    if (rc == -EFBIG)
        return weir_err_set(err, rc, "%s: larger than %d bytes", path, WEIR_CONFIG_BYTES);
    if (rc == -ENXIO)
        return weir_err_set(
            err, rc,
            "%s: no process has opened this FIFO for writing; start the writer first, or specify a regular file", path);
    return weir_err_set(err, rc, "%s: cannot be read: %s", path, strerror(-rc));
}

int weir_config_read(const char *path, char **text, size_t *length, struct weir_err *err)
{
    struct stat st;
    *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return read_failed(path, -errno, err);
    char *bytes = malloc(WEIR_CONFIG_BYTES + 2);
    int rc = bytes ? read_all(fd, fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode), bytes, length) : -ENOMEM;
    close(fd);
    if (rc < 0) {
        free(bytes);
        return read_failed(path, rc, err);
    }
    bytes[*length] = '\0';
    *text = bytes;
    return 0;
}

bool weir_config_write(FILE *out, const char *name, const char *value)
{
    size_t n = strlen(value);
    if (n == 0 || is_space(value[0]) || is_space(value[n - 1]) || value[0] == '#')
        return false;
    for (const char *c = value; *c; c++)
        if (is_control(*c) || (*c == '#' && is_space(c[-1])))
            return false;
    fprintf(out, "%s = %s\n", name, value);
    return true;
}
