/* motion_cpu_priv.h: shared by the files of the CPU backend of motion (table in motion_cpu.c). */
#ifndef WEIR_EXTRAS_MOTION_MOTION_CPU_PRIV_H
#define WEIR_EXTRAS_MOTION_MOTION_CPU_PRIV_H

#include "extras/common/team.h"
#include "extras/motion/motion_ops.h"

/* Loops are compiled twice if the processor may support more than the compiler's target. */
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
