/* sysinfo.h: facts about the machine and the build, for weir doctor and the log's "run" line. */
#ifndef WEIR_CLI_SYSINFO_H
#define WEIR_CLI_SYSINFO_H

#include "base/fields.h"
#include "base/resources.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_sysinfo {
    char cpu_model[128];
    char isa[256];                   /* CPU extensions used for decoding, such as "sse4_2 avx2 avx512bw" */
    bool tsc_invariant;              /* the CPU has the flags constant_tsc and nonstop_tsc */
    struct weir_cores cores;         /* usable cores, and the memory limit of the cgroup */
    uint64_t memory_total_bytes;     /* 0 if unknown */
    uint64_t memory_available_bytes; /* weir_memory_available_bytes; 0 if unknown */
    char kernel[160];                /* such as "Linux 6.1.0-18-amd64 x86_64" */
    char os[128];                    /* PRETTY_NAME from /etc/os-release */
    char governor[32];               /* frequency governor of cpu0, such as "performance", or "not exposed" */
};

void weir_sysinfo_read(struct weir_sysinfo *info);

extern const struct weir_fields weir_sysinfo_fields; /* of struct weir_sysinfo */

/* Copies the type of the filesystem that contains path, such as "ext4", "overlay" or "nfs4"; "a server" for
 * URLs, or "unknown". */
void weir_filesystem_of(const char *path, char *buf, size_t size);
/* Returns the name of a type as statfs reports it, or NULL. */
const char *weir_filesystem_name(unsigned long number);
/* Returns what helps to read from a filesystem of this type (as from weir_filesystem_of) on another machine, or behind
 * a program; NULL for local ones. */
const char *weir_filesystem_advice(const char *type);

/* Return the version, such as "0.2.0", and the build's git describe, which is "unknown" outside a checkout. */
const char *weir_version(void);
const char *weir_git_describe(void);

/* Return the compiler, such as "gcc 12.2.0", and the C library, such as "glibc 2.36". */
const char *weir_compiler(void);
void weir_libc(char *buf, size_t size);

#endif
