#!/bin/bash
# limit_cpu.sh SECONDS COMMAND...: limits the CPU time of each process of COMMAND. Stops a test that loops forever,
# however busy the machine, but not one that only waits for a core.
ulimit -t "$1" && exec "${@:2}"
