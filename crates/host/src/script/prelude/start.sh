# shellcheck shell=sh disable=SC2034,SC2154
# What Hatchery knows how to do on a machine, in POSIX sh: dash, bash and busybox ash run it.
#
# The program writes this file, then a few variables, then a list of operations as a function
# `ops`, then one call: `apply`, `look` or `undo`. Every value in the list is one quoted word. The list
# is gone through several times, each time with another $phase:
#   look    what is there? sets need_I to the reason for a change, or to nothing
#   hash    only files whose recorded size, times and inode no longer fit
#   record  the original of everything that is going to change, written down before the first change
#   change  the changes
#   want    which contents have to be sent first?
#   collect, settle  what files look like afterwards, so that the next look is cheap
# An operation that needs nothing is done with after `look`.
#
# The record of a resource KEY in $S/record:
#   KEY          four lines: "kind sequence was", name, extra, "end" (a record without "end" is void)
#   KEY.orig     what was there first: the same inode where possible, otherwise a copy
#   KEY.is       what we put there: hash, size, times, inode
#   KEY.text     what could be read at /etc/hosts when that was a link
#   KEY.undo     the text that puts a script back, or removes an image
#   KEY.pending  a unit that has to be restarted because one of its files changes
#   KEY@OWNER    who needs the resource
# Records are complete and on disk before the first change, so that a run may die anywhere.

set -u
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
TZ=UTC0
export LC_ALL PATH TZ
nl='
'
mode=look
S=$R/var/lib/hatchery
# The time of the last change of any kind, with fractions of a second; no program can set it back.
form='%d %a %u %g %s %z %i %f %n'
out=/dev/null
reload= hosts_own= transaction= transacted= brought= forgotten=
rehash= touched= changed= news= wanting= made= tried= purging= vigil= step=0 phase= packaged= seq=0
