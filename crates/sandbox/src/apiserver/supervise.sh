# Runs one program for as long as standard input is open: supervise DIR LOG PROGRAM [ARG...]
# The owner holds the other end of that pipe. However the owner ends, the kernel closes it;
# then the program is killed and DIR removed.
dir=$1 log=$2
shift 2
exec 3<&0
"$@" </dev/null >"$log" 2>&1 3<&- &
program=$!
(cat <&3 >/dev/null; kill -KILL "$program") &
watcher=$!
wait "$program"
status=$?
# A program that ended by itself leaves a number that may soon be another process's.
kill "$watcher" 2>/dev/null
echo "$status" >"$log.ended"
cat <&3 >/dev/null
rm -rf "$dir"
