#!/bin/bash
# limit_cpu.sh SECONDS COMMAND...: each process of the command may take so much processor time. A test that runs for ever
# ends so however busy the machine is, and one that only waits its turn does not.
ulimit -t "$1" && exec "${@:2}"
