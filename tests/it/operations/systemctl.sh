#!/usr/bin/env bash
# A replacement for `systemctl` in the handbook test, on a machine that was not started by systemd.
# It reads the service's own unit file, and starts Debian's services as their units do.
set -euo pipefail

verb="" units=()
for word in "$@"; do
  case "$word" in
    -*) ;;
    *) if [ -z "$verb" ]; then verb="$word"; else units+=("$word"); fi ;;
  esac
done

ended() { for _ in $(seq 300); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.1; done; return 1; }

# Starts a program in the background as a user, and stores its process id.
run() {
  local name="$1" user="$2"
  shift 2
  setsid runuser -u "$user" -- "$@" >>"/var/log/$name.log" 2>&1 </dev/null &
  echo $! >"/run/$name.pid"
}

# The values of a setting in the service's unit file, for this instance.
values() { sed -n "s/^$2=//p" "/etc/systemd/system/agent-authority@.service" | sed "s/%i/$1/g"; }

node() {
  local instance="${1#*@}" user file
  user="$(values "$instance" User)"
  install -d -o "$user" -g "$user" "/var/lib/$(values "$instance" StateDirectory | cut -d/ -f1)"
  install -d -o "$user" -g "$user" -m "$(values "$instance" StateDirectoryMode)" \
    "/var/lib/$(values "$instance" StateDirectory)"
  set -a
  file="$(values "$instance" EnvironmentFile)"
  [ ! -e "${file#-}" ] || . "${file#-}"
  eval "$(values "$instance" Environment)"
  set +a
  cd /
  # The value is one command without quotes.
  # shellcheck disable=SC2046
  run "$1" "$user" $(values "$instance" ExecStart)
}

start() {
  case "$1" in
    postgresql) pg_ctlcluster "$HANDBOOK_POSTGRES" main start ;;
    haproxy) haproxy -W -D -p /run/haproxy.pid -f /etc/haproxy/haproxy.cfg ;;
    prometheus)
      run prometheus prometheus prometheus --config.file=/etc/prometheus/prometheus.yml \
        --storage.tsdb.path=/var/lib/prometheus/metrics2
      ;;
    agent-authority@*) (node "$1") ;;
    *) echo "no unit $1" >&2; exit 1 ;;
  esac
}

stop() {
  if [ "$1" = postgresql ]; then
    pg_ctlcluster "$HANDBOOK_POSTGRES" main stop
    return
  fi
  [ -e "/run/$1.pid" ] || return 0
  kill "$(cat "/run/$1.pid")" 2>/dev/null || true
  ended "$(cat "/run/$1.pid")"
}

case "$verb" in
  daemon-reload) ;;
  enable | start) for unit in "${units[@]}"; do start "$unit"; done ;;
  restart) for unit in "${units[@]}"; do stop "$unit"; start "$unit"; done ;;
  stop) for unit in "${units[@]}"; do stop "$unit"; done ;;
  *) echo "systemctl $verb: not known here" >&2; exit 1 ;;
esac
