# Runs the commands of the handbook, given on standard input, as root
# of a machine that looks like a fresh one. Its mounts, network and
# processes are separate and end with it. It changes no files outside.
#
# `$PROGRAM` is the service, `$REPOSITORY` its repository, and `$SYSTEMCTL` the replacement for
# systemctl.
set -eu
ip link set lo up
scratch="$(mktemp -d)"
mount -t tmpfs tmpfs "$scratch"
for place in etc usr/local var/lib var/log var/backups; do
  mkdir -p "$scratch/$place/new" "$scratch/$place/work"
  mount -t overlay overlay "/$place" \
    -o "lowerdir=/$place,upperdir=$scratch/$place/new,workdir=$scratch/$place/work"
done
mount -t tmpfs tmpfs /run

# The programs are installed already, and the service is built.
mkdir "$scratch/bin"
for name in apt-get cargo; do printf '#!/bin/sh\n' >"$scratch/bin/$name"; done
cp "$SYSTEMCTL" "$scratch/bin/systemctl"
chmod 755 "$scratch" "$scratch/bin" "$scratch/bin/"*
export PATH="$scratch/bin:/usr/local/bin:$PATH:/usr/sbin:/sbin"
mkdir -p "$scratch/repository/target/dist"
ln -s "$PROGRAM" "$scratch/repository/target/dist/agent-authority"
ln -s "$REPOSITORY/deploy" "$scratch/repository/deploy"
cd "$scratch/repository"

# The state after `apt-get install postgresql`: a running cluster.
rm -rf /etc/postgresql/* /var/lib/postgresql/*
install -d -o postgres -g postgres -m 2775 /run/postgresql
HANDBOOK_POSTGRES="$(ls /usr/lib/postgresql | sort -n | tail -n 1)"
export HANDBOOK_POSTGRES
pg_createcluster "$HANDBOOK_POSTGRES" main --port 5432 -- --auth-local=peer >/dev/null
# A rule that the page must keep.
echo 'local other_application all peer' >>"/etc/postgresql/$HANDBOOK_POSTGRES/main/pg_hba.conf"
pg_ctlcluster "$HANDBOOK_POSTGRES" main start

commands="$(cat)"
eval "$commands"

# Checks the state that a reader of the page ends with.
says() { echo "handbook: $1"; }
others="SELECT count(*) FROM pg_hba_file_rules WHERE database = '{other_application}'"
says "$(admin psql -tAc "$others") rule of another database is kept"
keys="SELECT string_agg(kid, ' ' ORDER BY kid) FROM signing_keys"
[ -n "$(admin psql -d restored -tAc "$keys")" ]
[ "$(admin psql -d restored -tAc "$keys")" = "$(admin psql -d agent_authority -tAc "$keys")" ]
says "the backup is restored"
if grep ERROR roles.log | grep -v 'already exists$'; then exit 1; fi
ring_keys="$(cut -d: -f1 /etc/agent-authority/ring)"
says "the ring has $ring_keys"
grep -q '^authority_build_info' metrics.txt
says "metrics"
up() { curl -fsS http://127.0.0.1:9090/api/v1/targets | grep -o '"health":"up"' | wc -l; }
for _ in $(seq 40); do [ "$(up)" = 2 ] && break; sleep 0.5; done
says "$(up) nodes are scraped"
curl -fsS http://127.0.0.1:9090/api/v1/rules | grep -q AuthorityNodeDown
says "the alerts are loaded"
call() {
  curl -sS --http2 --cacert /etc/agent-authority/ca.pem "https://authority.example.org$1" "${@:2}"
}
says "HTTP/$(call /health/ready -o /dev/null -w '%{http_version} %{http_code}') over TLS"
says "gRPC: $(call /grpc.health.v1.Health/Check -o /dev/null -D - -H 'content-type: application/grpc' -H 'te: trailers' \
  --data-binary @<(printf '\0\0\0\0\0') -w '%{http_code}' | tr -d '\r' | tail -n 1)"
says "plain: $(runuser -u postgres -- psql -tAc "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
  WHERE usename LIKE 'agent_authority%' AND NOT ssl") connections without TLS"
