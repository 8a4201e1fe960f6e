//! A database cluster under Patroni with etcd, set up by the commands of
//! docs/operations/high-availability.md. Its three members run on this machine, each in its own
//! network namespace, as if they were separate machines.

use std::{
    collections::HashSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use super::process::Folder;
use crate::support::shown::{forbidden, hindrance, not_shown};

const HANDBOOK: &str = include_str!("../../../docs/operations/high-availability.md");
const MEMBERS: [usize; 3] = [1, 2, 3];
/// The bridge of the network. Its members have the addresses that
/// docs/operations/high-availability.md uses.
const BRIDGE: &str = "authority-ha";
/// The address of the service nodes in that network.
const HERE: &str = "198.51.100.1/24";
/// A hardware address that no network card has: packets sent to it are lost.
const NOBODY: &str = "02:00:00:00:00:01";
/// How long the members may take to agree on a state.
const PATIENCE: Duration = Duration::from_secs(90);

/// Returns the code block of docs/operations/high-availability.md that contains this text.
#[track_caller]
pub(super) fn block(part: &str) -> &'static str {
    let mut blocks = HANDBOOK.split("```").skip(1).step_by(2);
    let block = blocks.find(|block| block.contains(part)).unwrap();
    block.split_once('\n').unwrap().1
}

/// Runs the commands and returns their output.
#[track_caller]
pub(super) fn sh(script: &str) -> String {
    let output = Command::new("bash").args(["-euc", script]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{told}{problems}");
    told
}

/// A fault of the primary, or a switchover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// PostgreSQL and Patroni get SIGKILL.
    Killed,
    /// Every process of the machine gets SIGSTOP, including etcd.
    Hung,
    /// The machine loses its network.
    CutOff,
    /// The machine can't reach the two others, but the nodes still reach it.
    Parted,
    /// An operator moves the primary with a switchover.
    SwitchedOver,
    /// Only Patroni gets SIGSTOP: PostgreSQL continues, unaware that it lost the lock.
    PatroniHung,
}

/// The running cluster; dropping it removes its networks.
pub(super) struct Cluster {
    folder: Folder,
    programs: Vec<Child>,
    http: reqwest::Client,
}

/// Returns whether this machine can't run the cluster, and prints the reason.
#[track_caller]
fn cannot_be_here() -> bool {
    let can =
        |script: &str| Command::new("sh").args(["-c", script]).output().unwrap().status.success();
    let programs = ["patroni", "etcd", "haproxy", "setpriv", "ip"];
    let lacks = programs.into_iter().find(|name| !can(&format!("command -v {name}")));
    if let Some(name) = lacks {
        not_shown(&format!("this machine has no `{name}`; script/features installs it"));
        return true;
    }
    let foreign = "ip -o address | grep -v authority-ha | grep -qF ' 198.51.100.'";
    let hindrance = hindrance().or_else(|| {
        can(foreign).then(|| "198.51.100.0/24 is a network of this machine".to_owned())
    });
    if let Some(reason) = &hindrance {
        forbidden(reason);
    }
    hindrance.is_some()
}

/// Waits until no other test run has a cluster. A run that was killed leaves its cluster behind.
async fn wait_for_others() {
    let since = Instant::now();
    while Command::new("ip").args(["link", "show", BRIDGE]).output().unwrap().status.success() {
        assert!(
            since.elapsed() < 2 * PATIENCE,
            "another such cluster runs here, or was left behind: `ip link del {BRIDGE}`, and \
             `ip netns del` authority1, authority2, authority3"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

impl Cluster {
    /// Starts the cluster with the logins of docs/operations/high-availability.md and an empty
    /// database. Returns `None` if this machine can't run it.
    pub(super) async fn start() -> Option<Self> {
        if cannot_be_here() {
            return None;
        }
        wait_for_others().await;
        let http = reqwest::Client::builder()
            .tls_certs_only([])
            .no_proxy()
            .timeout(Duration::from_secs(1));
        let folder = Folder::new("failover");
        let mut cluster = Self { folder, programs: Vec::new(), http: http.build().unwrap() };
        sh(&format!(
            "ip link add {BRIDGE} type bridge; ip address add {HERE} dev {BRIDGE}; ip link set {BRIDGE} up"
        ));
        sh(&format!("cd {}\n{}", cluster.folder().display(), block("database authority")));
        for member in MEMBERS {
            cluster.prepare(member);
            cluster.run_etcd(member);
        }
        for member in MEMBERS {
            cluster.run_patroni(member);
        }
        cluster.whole().await;
        let primary = cluster.primary().await.unwrap();
        cluster.as_postgres(primary, block("CREATE ROLE agent_authority_owner"));
        Some(cluster)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn home(&self, member: usize) -> PathBuf {
        self.folder.path().join(format!("db{member}"))
    }

    /// Sets up one member's machine: its network, its certificate and its files.
    fn prepare(&self, member: usize) {
        let home = self.home(member);
        let home = home.display();
        sh(&format!(
            "ip netns add authority{member}
             ip link add authority{member} type veth peer name eth0 netns authority{member}
             ip link set authority{member} master {BRIDGE} up
             ip -n authority{member} address add 198.51.100.1{member}/24 dev eth0
             ip -n authority{member} link set eth0 up
             ip -n authority{member} link set lo up
             mkdir -p {home}/etc/default {home}/etc/patroni {home}/etcd
             cp {home}.crt {home}/etc/patroni/server.crt
             cp {home}.key {home}/etc/patroni/server.key"
        ));
        let own = format!("name=db{member} address=198.51.100.1{member}");
        let programs = sh("ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1");
        for part in ["ETCD_NAME", "scope: authority"] {
            let commands = block(part)
                .replace("name=db1 address=198.51.100.11", &own)
                .replace("/usr/lib/postgresql/15/bin", programs.trim())
                .replace("/var/run/postgresql", &home.to_string())
                .replace("/var/lib/", &format!("{home}/"))
                .replace("/etc/", &format!("{home}/etc/"));
            sh(&commands);
        }
        sh(&format!("chown -R postgres: {home}"));
    }

    /// Runs a program on the member's machine as the user that runs the database.
    fn run(&mut self, member: usize, program: &str, settings: &str, arguments: &[&Path]) {
        let home = self.home(member);
        let log = File::options().append(true).create(true).open(home.join("log")).unwrap();
        let user = ["--reuid=postgres", "--regid=postgres", "--init-groups"];
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("authority{member}"), "setpriv"]).args(user);
        command.arg(program).args(arguments).current_dir(&home).env("HOME", &home);
        command.envs(settings.lines().filter_map(|line| line.split_once('=')));
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.programs.push(command.spawn().unwrap());
    }

    fn run_etcd(&mut self, member: usize) {
        let settings = fs::read_to_string(self.home(member).join("etc/default/etcd")).unwrap();
        self.run(member, "etcd", &settings, &[]);
    }

    fn run_patroni(&mut self, member: usize) {
        let settings = self.home(member).join("etc/patroni/config.yml");
        self.run(member, "/usr/bin/patroni", "", &[&settings]);
    }

    /// Runs commands on the member's machine as the database's superuser.
    #[track_caller]
    fn as_postgres(&self, member: usize, commands: &str) -> String {
        let home = self.home(member);
        let script = home.join("script");
        fs::write(&script, commands).unwrap();
        let (home, script) = (home.display(), script.display());
        sh(&format!(
            "PGHOST={home} setpriv --reuid=postgres --regid=postgres --init-groups bash -eu {script}"
        ))
    }

    /// Returns the ids of a member's stored decisions, or none while it refuses connections.
    pub(super) fn decisions(&self, member: usize) -> HashSet<String> {
        let ids = "psql -qAt -d agent_authority -c 'SELECT id FROM decisions' || true";
        self.as_postgres(member, ids).lines().map(str::to_owned).collect()
    }

    /// Returns the response of a member's Patroni, or `None` if it does not respond.
    async fn asked(&self, member: usize, path: &str) -> Option<Value> {
        let url = format!("http://198.51.100.1{member}:8008{path}");
        let answer = self.http.get(url).send().await.ok()?.error_for_status().ok()?;
        answer.json().await.ok()
    }

    pub(super) async fn primary(&self) -> Option<usize> {
        for member in MEMBERS {
            if self.asked(member, "/primary").await.is_some() {
                return Some(member);
            }
        }
        None
    }

    /// Waits until a primary, a synchronous standby and a second standby follow the same timeline.
    pub(super) async fn whole(&self) {
        let since = Instant::now();
        loop {
            let told = match self.primary().await {
                Some(primary) => self.asked(primary, "/cluster").await.unwrap_or_default(),
                None => Value::Null,
            };
            let members = told["members"].as_array().cloned().unwrap_or_default();
            let here = |role: &str| members.iter().filter(|member| member["role"] == role).count();
            let is_running = |member: &Value| {
                ["running", "streaming"].contains(&member["state"].as_str().unwrap_or_default())
                    && member["timeline"] == members[0]["timeline"]
            };
            if members.len() == MEMBERS.len()
                && members.iter().all(is_running)
                && here("leader") == 1
                && here("sync_standby") == 1
            {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "incomplete after {PATIENCE:?}: {told}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Sends a signal to the member's processes with names that satisfy `chosen`.
    fn signal(member: usize, signal: Signal, chosen: fn(&str) -> bool) {
        for pid in sh(&format!("ip netns pids authority{member}")).lines() {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if chosen(name.trim()) {
                // The process may have ended already.
                let _ = kill(Pid::from_raw(pid.parse().unwrap()), signal);
            }
        }
    }

    /// Blocks or restores the traffic between one member and the two others.
    fn part(member: usize, change: &str) {
        for other in MEMBERS.into_iter().filter(|other| *other != member) {
            sh(&format!(
                "ip -n authority{member} neighbor {change} 198.51.100.1{other} dev eth0
                 ip -n authority{other} neighbor {change} 198.51.100.1{member} dev eth0"
            ));
        }
    }

    pub(super) fn hurt(&self, fault: Fault, member: usize) {
        match fault {
            Fault::Killed => Self::signal(member, Signal::SIGKILL, |name| name != "etcd"),
            Fault::Hung => Self::signal(member, Signal::SIGSTOP, |_| true),
            Fault::PatroniHung => Self::signal(member, Signal::SIGSTOP, |name| name == "patroni"),
            Fault::CutOff => drop(sh(&format!("ip link set authority{member} down"))),
            Fault::Parted => Self::part(member, &format!("replace lladdr {NOBODY} nud permanent")),
            Fault::SwitchedOver => {
                let settings = self.home(member).join("etc/patroni/config.yml");
                let command = block("switchover").replace("db1", &format!("db{member}"));
                let own = settings.display().to_string();
                drop(sh(&command.replace("/etc/patroni/config.yml", &own)));
            }
        }
    }

    pub(super) fn mend(&mut self, fault: Fault, member: usize) {
        match fault {
            Fault::Killed => self.run_patroni(member),
            Fault::Hung | Fault::PatroniHung => Self::signal(member, Signal::SIGCONT, |_| true),
            Fault::CutOff => drop(sh(&format!("ip link set authority{member} up"))),
            Fault::Parted => Self::part(member, "del"),
            Fault::SwitchedOver => {}
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in MEMBERS {
            Self::signal(member, Signal::SIGKILL, |_| true);
        }
        for program in &mut self.programs {
            let _ = program.wait();
        }
        for member in MEMBERS {
            sh(&format!("ip netns del authority{member}"));
        }
        sh(&format!("ip link del {BRIDGE}"));
    }
}
