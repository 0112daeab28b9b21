/* motion_cpu_priv.h: declarations shared by the files of the CPU backend of motion (its function table is in
 * motion_cpu.c). */
#ifndef WEIR_EXTRAS_MOTION_MOTION_CPU_PRIV_H
#define WEIR_EXTRAS_MOTION_MOTION_CPU_PRIV_H

#include "extras/common/team.h"
#include "extras/motion/motion_ops.h"

/* On x86-64, loops are also compiled for AVX2, to be used if the CPU supports it. */
#if defined(__x86_64__)
#define WEIR_MOTION_AVX2 __attribute__((target("avx2")))
#else
#define WEIR_MOTION_AVX2
#endif

struct weir_motion_cpu {
    struct weir_team *team;
    bool avx2;
    char description[64];
};

/* motion_cpu_operators.c */
void weir_motion_cpu_operate(void *self, const struct weir_motion_operator *operation);
/* motion_cpu_pass.c */
void weir_motion_cpu_pass(void *self, const struct weir_motion_pass *pass);

#endif
