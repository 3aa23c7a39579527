#!/bin/bash
# Proves that the malloc trap triggers on every way of allocating, says which, and leaves ordinary threads alone.
# usage: malloc_trap_test.sh VICTIM TRAP_LIBRARY
set -u
victim=$1
trap_library=$2
failed=0

expect() {  # expect aborted|survived WAY HEAT
    local output status
    output=$( (ulimit -c 0; LD_PRELOAD=$trap_library exec "$victim" "$2" "$3") 2>&1)
    status=$?
    if [[ $1 == survived && $status -eq 0 && $output == *survived* ]]; then return; fi
    if [[ $1 == aborted && $status -eq 134 && $output == *"malloc trap: a polling lcore called "* ]]; then return; fi
    echo "FAIL: $2 while $3: expected $1, got status $status: $output"
    failed=1
}

for way in malloc calloc realloc free new new_aligned aligned_alloc posix_memalign; do
    expect aborted $way hot
    expect survived $way cold
    expect survived $way other
done
expect survived nothing hot
exit $failed
