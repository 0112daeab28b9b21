/* cpu_units.h: CPU work of a known length, as what preprocesses a sample stands for: a unit takes about 50 ns. */
#ifndef WEIR_EXTRAS_SCENARIO_CPU_UNITS_H
#define WEIR_EXTRAS_SCENARIO_CPU_UNITS_H

#include <stdint.h>

/* Computes for about 50 ns times units on the calling thread, and returns what came out, which depends on this
 * machine's speed. The first call of a process measures how long a unit is (2 ms). Any thread. */
uint64_t weir_cpu_units(uint64_t units);

#endif
