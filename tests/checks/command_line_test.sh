#!/bin/bash
# The program's own manners: help, version, exit statuses, one clear line for an error. usage: command_line_test.sh WEIR
set -u
weir=$1
passed=0
failed=0

expect() {  # expect STATUS STREAM PATTERN [args...]: the exit status, and a pattern in stdout or stderr
    local status=$1 stream=$2 pattern=$3 output errors got
    shift 3
    errors=$(mktemp)
    output=$("$weir" "$@" 2>"$errors")
    got=$?
    [[ $stream == stderr ]] && output=$(<"$errors")
    rm -f "$errors"
    if [[ $got -eq $status && $output == *$pattern* ]]; then
        passed=$((passed + 1))
    else
        echo "FAIL: weir $*: status $got, expected $status and '$pattern' in $stream:"
        echo "$output"
        failed=$((failed + 1))
    fi
}

expect 0 stdout 'usage: weir COMMAND' --help
expect 0 stdout 'usage: weir COMMAND' help
for command in run replay send inspect export diff probe doctor explain flows ctl; do
    expect 0 stdout "  $command" --help
    expect 0 stdout "$command" "$command" --help
    expect 0 stdout "$command" "$command" -h
    expect 0 stdout "$command" help "$command"
    expect 2 stderr "weir: " "$command" --no-such-option
done
for format in jungfrau moench eiger ejfat dune ess spead message declared; do
    expect 0 stdout "$format" --help
done
expect 0 stdout 'commit' --version
expect 0 stdout 'DPDK' --version
expect 2 stderr 'usage: weir COMMAND'
expect 2 stderr "there is no command 'replya'; did you mean 'replay'?" replya
expect 2 stderr "there is no command 'zzzzzzzz' (" zzzzzzzz
expect 2 stderr "there is no command ''" ''
expect 2 stderr "--window goes with --service rc --to device:" send --window 3 --events 1 --to x.pcap
expect 2 stderr "needs --connect HOST" send --transport verbs-send --format message --events 1 --to verbs:
expect 2 stderr "HOST or HOST:PORT is accepted" send --transport roce-send --service rc --format message --events 1 --connect x:y --to device:net_null0
expect 2 stderr "whose packets carry a checksum" send --corrupt 0.1 --events 1 --to x.pcap
expect 0 stdout 'timeout_ms' explain dropped.late
expect 0 stdout 'events.dropped.no_room' explain no_room
expect 0 stdout 'packets.dropped.no_room' explain no_room
expect 2 stderr 'did you mean packets.dropped.late' explain droped.late

expect 2 stderr "there is no command 'strat'" ctl strat
expect 2 stderr "get takes a PATH" ctl get
expect 2 stderr "give one" ctl --name a --socket b
expect 2 stderr "goes with --url" ctl --token-file x
expect 1 stderr "does not answer" ctl --socket /nonexistent/x.sock
expect 1 stderr "does not answer" ctl --url http://127.0.0.1:1 stop

expect 0 stdout 'weir explain TOPIC' explain
expect 0 stdout 'evicted' explain events
expect 0 stdout 'packets.dropped.malformed.bad_icrc' explain dropped.malformed
expect 0 stdout 'recorder' explain --all
expect 2 stderr "no counter or topic 'timeout.incomplete'; did you mean events.incomplete.timeout" explain timeout.incomplete
expect 2 stderr "no counter or topic 'zzzzzzzz' (" explain zzzzzzzz

# Nothing is wider than a terminal; a topic's overview fits one.
for arguments in --help 'run -h' 'replay -h' 'send -h' 'inspect -h' 'export -h' 'flows -h' 'ctl -h' 'doctor -h' 'doctor --list' 'explain -h' explain 'explain --all'; do
    wide=$("$weir" $arguments | sed 's/…/./g' | grep -E '.{81}' | grep -vE '^ *[^ ]{60}')
    lines=$("$weir" $arguments | wc -l)
    if [[ -n $wide || ($arguments == explain && $lines -gt 24) ]]; then
        echo "FAIL: weir $arguments: $lines lines, wider than 80 columns: $wide"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done

# An error is one line, and it starts with the program's name.
errors=$("$weir" replya 2>&1)
if [[ $(wc -l <<<"$errors") -ne 1 || $errors != "weir: "* ]]; then
    echo "FAIL: not one clear line: $errors"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi

# What could not be printed is a failure, not a success.
if "$weir" explain >/dev/full 2>/dev/null; then
    echo "FAIL: a full standard output went unnoticed"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
