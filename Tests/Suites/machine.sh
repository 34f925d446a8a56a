# What the machine of scripts/machine-test runs each time it has booted, as root. It ends with the
# line "power off: " where the power has to go, "done: ", or "failed: " and why.
set -u
export SYSTEMD_COLORS=0
fail() {
  loginctl list-sessions; mount | grep prefsfs
  for process in $(pgrep prefs); do echo "$process $(readlink /proc/$process/exe): $(ps -o user=,args= $process)"; done
  journalctl -b --no-pager -n 200 | grep -E 'prefs|anna|bob' | tail -40
  echo "failed: $1"
  exit 1
}
# Waits until the command $2 succeeds, or fails with $1.
wait_for() { for _ in $(seq 200); do eval "$2" && return; sleep 0.2; done; fail "$1 ($2)"; }
as() { runuser -u "$1" -- env -C / HOME=/home/$1 XDG_RUNTIME_DIR=/run/user/$(id -u "$1") "${@:2}"; }
# Logs the user $1 in, until log_out.
log_in() { setsid su -l "$1" -c 'echo $$ > session; exec sleep 10000' </dev/null & wait_for "$1 does not log in" "[ -d /run/user/$(id -u "$1")/systemd ]"; }
log_out() { kill "$(cat /home/$1/session)"; wait_for "processes of $1 go on" "! pgrep -u $1 >/dev/null"; }
apt() { apt-get "$@" -y -qq >/packages/log 2>&1 || { cat /packages/log; fail "apt-get $*"; }; }
# Whether the preferences of the user $1 are mounted. (root may not look into them.)
has_mount() { grep -q " /run/user/$(id -u "$1")/preferences fuse.prefsfs" /proc/mounts; }
is_mounted() { has_mount "$1" && [ "$(as "$1" cat "/run/user/$(id -u "$1")/preferences/d/Number" 2>&1)" = "$2" ]; }

managed=/etc/preferences/managed
if [ -e /packages/second ]; then
  # A lease of the machine's ends, though no program asks for preferences.
  wait_for "a lease goes on after a restart" "[ ! -e $managed/leased.plist ] && [ ! -e $managed/prefsfs.declared.plist ]"
  journalctl -b -u prefsfs-deadlines --no-pager | grep -q "has ended at its deadline" || fail "the unit did not end the lease"
  echo "a lease has ended after the restart"
  # Values that had a second before the power went are there, and the file of a user is as it was.
  log_in anna; wait_for "no mount after the power has gone" "has_mount anna"
  [ "$(as anna cat /home/anna/Preferences/d/Number)" = 5 ] || fail "a value is lost: $(as anna cat /home/anna/Preferences/d/Number 2>&1)"
  [ "$(as anna cat /home/anna/Preferences/d/Log)" = "$(printf 'one\ntwo')" ] || fail "lines are lost"
  echo "the power went: values are there"
  log_out anna
  apt remove prefsfs; apt install /packages/after.deb
  log_in anna; wait_for "no mount after remove and install" 'is_mounted anna 5'
  log_out anna; echo "removed and installed again"
  systemctl --quiet --global disable prefsfs; apt install --reinstall /packages/after.deb
  log_in anna; wait_for "anna's units do not start" "as anna systemctl --user --quiet is-active default.target"
  sleep 3; ! has_mount anna || fail "it mounts though it is disabled"
  [ "$(as anna prefsfs-defaults read d Number)" = 5 ] || fail "defaults needs the mount"
  log_out anna; echo "disabled"
  apt purge prefsfs
  left=$(find / -xdev \( -path /proc -o -path /packages -o -path /backup -o -path /root -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/log \) -prune -o -name '*prefsfs*' -print -o -path '/etc/preferences*' -print | grep -v -E '^/home/|deb-systemd-user-helper')
  [ -z "$left" ] || fail "the package has left $left"
  [ -f /home/anna/.config/d.plist ] && [ "$(cat /home/bob/Preferences/file)" = mine ] || fail "files of users are gone"
  echo "done: purged"
  exit
fi

useradd -m -s /bin/bash anna; useradd -m -s /bin/bash bob
as bob mkdir /home/bob/Preferences; as bob sh -c 'echo mine > /home/bob/Preferences/file'
apt install /packages/before.deb
log_in anna; log_in bob
wait_for "no mount of anna" "has_mount anna"
wait_for "no mount of bob" "has_mount bob"
wait_for "no link of anna" '[ "$(readlink /home/anna/Preferences)" = /run/user/1000/preferences ]'
as anna sh -c 'cd; mkdir Preferences/d; echo 4 > Preferences/d/Number'; as bob sh -c 'mkdir $XDG_RUNTIME_DIR/preferences/d; echo 3 > $XDG_RUNTIME_DIR/preferences/d/Number'
[ "$(as anna prefsfs-defaults read d Number)" = 4 ] || fail "defaults reads something else"
[ "$(as bob prefsfs-defaults read d Number)" = 3 ] || fail "defaults reads something else for bob"
[ "$(cat /home/bob/Preferences/file)" = mine ] || fail "a file of bob is hidden"
wait_for "the log does not say where the preferences of bob are" 'journalctl -b --no-pager | grep -q "/home/bob/Preferences stays as it is; the preferences are at /run/user/1001/preferences"'
echo "two users have logged in"

(umask 027; prefsfs-defaults write /etc/preferences/managed/anna/d Number -int 7)
wait_for "a forced value does not come" "is_mounted anna 7"
! as anna sh -c 'echo 8 > ~/Preferences/d/Number' 2>/dev/null || fail "a forced value can be set"
is_mounted bob 3 || fail "a value is forced for bob too"
rm /etc/preferences/managed/anna/d.plist
wait_for "a forced value does not go" "is_mounted anna 4"
echo "a value was forced and taken back"

# When the lists and the history are written, nothing vanishes under rsync.
sleep 3; mkdir /backup
for command in 'rsync -a /home /backup/rsync' 'tar -cf /backup/tar --one-file-system -C / home' 'cp -ax /home /backup/cp' 'du -xs /home' 'chown -R --from=1000 1000 /home/anna'; do
  $command >/packages/log 2>&1 || { status=$?; cat /packages/log; fail "$command ends with $status"; }
done
[ "$(cat /backup/cp/bob/Preferences/file)" = mine ] && [ -f /backup/rsync/home/anna/.config/d.plist ] || fail "a backup is not whole"
echo "root has made backups"

# Kills all processes of a unit of anna's, and waits until they are gone.
kill_unit() {
  local group=/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/$1.service old
  old=$(cat "$group/cgroup.procs")
  [ -n "$old" ] && echo 1 >"$group/cgroup.kill" || fail "there is nothing to kill in $group"
  for process in $old; do wait_for "process $process was not killed" "! [ -e /proc/$process ] || grep -q '^State:.[ZX]' /proc/$process/status"; done
}
kill_unit prefsfs; wait_for "no mount after its processes were killed" "is_mounted anna 4"
pkill -KILL -u anna -x prefsd || fail "there is no prefsd to kill"
wait_for "no values after prefsd was killed" "is_mounted anna 4"
kill_unit prefsfs; pkill -KILL -u anna prefs; wait_for "no mount after all was killed" "is_mounted anna 4"
pkill -KILL -u bob prefs || fail "bob has no processes to kill"; wait_for "no mount of bob after pkill" "is_mounted bob 3"
echo "everything was killed"

old=$(pgrep -u anna prefs | xargs)
as anna sh -c 'exec 5< ~/Preferences/d/Number 6>> ~/Preferences/d/Log; echo one >&6; touch ~/ready; while [ ! -e ~/upgraded ]; do sleep 0.1; done; echo two >&6; cat <&5 > ~/read' &
reader=$!
wait_for "anna does not open files" "[ -e /home/anna/ready ]"
apt install /packages/after.deb
is_new() { for process in $(pgrep -u anna prefs); do case $(readlink /proc/$process/exe) in *deleted*) return 1 ;; esac; done; }
wait_for "old programs go on" is_new
[ "$(pgrep -u anna prefs | xargs)" != "$old" ] || fail "nothing was upgraded"
touch /home/anna/upgraded; wait $reader
[ "$(cat /home/anna/read)" = 4 ] && [ "$(as anna cat /home/anna/Preferences/d/Log)" = "$(printf 'one\ntwo')" ] || fail "open files have ended"
echo "upgraded under open files"

since=$(date '+%F %T'); as bob sh -c 'echo 6 > $XDG_RUNTIME_DIR/preferences/d/Number'; log_out bob; wait_for "a mount is there after the log-out" "! has_mount bob"
[ -f /home/bob/.config/d.plist ] || fail "the preferences of bob are not saved after the log-out"
! journalctl -b --no-pager --since "$since" | grep -E 'Killing process [0-9]+ \(prefsfs\)|timed out' || fail "a mount was killed at the log-out"
log_in bob; wait_for "no mount, or not what was set before the log-out" "is_mounted bob 6"
echo "logged out and in again"

echo '{"leased": {"Key": 1}}' >/packages/lease.json
prefs apply --as lease --place managed --lease 30 /packages/lease.json >/dev/null; [ $? = 2 ] || fail "no lease"
wait_for "the lease is not written" "[ -e $managed/leased.plist ] && [ -e $managed/prefsfs.declared.plist ]"

# No sync(2) is behind what is set now, only what prefsd does for the list that it has written.
touch /packages/second; sync -f /packages
as anna sh -c 'echo 5 > ~/Preferences/d/Number'
wait_for "the list is not written" "prefsfs-plutil -extract Number raw -o - /home/anna/.config/d.plist | grep -qx 5"
echo "power off: the list has just been written"
sleep 1000
