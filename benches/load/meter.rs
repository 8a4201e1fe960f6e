//! CPU time and memory of a server's processes, from Linux's /proc.

use std::{collections::HashMap, fs, io, path::Path, time::Instant};

use tokio::task::spawn_blocking;

use crate::Fault;

/// The number of ticks per second in /proc's CPU times. It does not depend on the kernel's
/// tick rate.
const TICKS_A_SECOND: f64 = 100.0;

/// Watches servers: their processes and child processes, with Postgres counted separately.
#[derive(Clone)]
pub(crate) struct Meter {
    pub(crate) processes: Vec<u32>,
}

impl Meter {
    pub(crate) async fn read(&self) -> Result<Reading, Fault> {
        let processes = self.processes.clone();
        // Reading /proc takes a millisecond, and the generator must not wait for it.
        Ok(spawn_blocking(move || Reading::take(&processes)).await??)
    }
}

/// CPU time so far in ticks, and the service's resident memory in bytes.
pub(crate) struct Reading {
    at: Instant,
    service: u64,
    postgres: u64,
    generator: u64,
    machine: u64,
    resident: u64,
}

/// CPU time between two readings, and the memory at the end.
pub(crate) struct Spent {
    /// Seconds of CPU that the service used, without its Postgres.
    pub(crate) service: f64,
    /// Seconds of CPU that the service's Postgres used.
    pub(crate) postgres: f64,
    /// Seconds of CPU that the load generator used.
    pub(crate) generator: f64,
    /// Seconds of CPU that other processes on the machine used in that time.
    pub(crate) others: f64,
    pub(crate) elapsed: f64,
    /// The resident memory of the service without its Postgres, in bytes.
    pub(crate) resident: u64,
}

impl Reading {
    fn take(watched: &[u32]) -> io::Result<Self> {
        let processes = all()?;
        let service = tree(&processes, |id, _| watched.contains(&id));
        let postgres =
            tree(&processes, |id, process| service.contains(&id) && process.name == "postgres");
        let sum = |ids: &[u32]| ids.iter().map(|id| processes[id].ticks).sum::<u64>();
        let own = service.iter().filter(|id| !postgres.contains(id));
        Ok(Self {
            at: Instant::now(),
            service: sum(&service) - sum(&postgres),
            postgres: sum(&postgres),
            generator: sum(&[std::process::id()]),
            machine: machine()?,
            resident: own.map(|&id| resident(id)).sum(),
        })
    }

    pub(crate) fn since(&self, before: &Self) -> Spent {
        let ticks = |now: u64, then: u64| to_float(now.saturating_sub(then)) / TICKS_A_SECOND;
        let service = ticks(self.service, before.service);
        let postgres = ticks(self.postgres, before.postgres);
        let generator = ticks(self.generator, before.generator);
        let machine = ticks(self.machine, before.machine);
        Spent {
            service,
            postgres,
            generator,
            others: (machine - service - postgres - generator).max(0.0),
            elapsed: self.at.duration_since(before.at).as_secs_f64(),
            resident: self.resident,
        }
    }
}

struct Process {
    parent: u32,
    name: String,
    /// The CPU time of the process and of its ended children.
    ticks: u64,
}

/// Returns the processes that `root` selects, and all their descendants.
fn tree(processes: &HashMap<u32, Process>, root: impl Fn(u32, &Process) -> bool) -> Vec<u32> {
    let mut found: Vec<u32> =
        processes.iter().filter(|&(&id, process)| root(id, process)).map(|(&id, _)| id).collect();
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = processes.iter().filter(|(_, process)| process.parent == parent);
        let new: Vec<u32> = children.map(|(&id, _)| id).filter(|id| !found.contains(id)).collect();
        found.extend(new);
        next += 1;
    }
    found
}

/// Returns the processes with working directory `folder`, such as a Postgres that its service left
/// behind.
pub(crate) fn inside(folder: &Path) -> Vec<u32> {
    let processes = all().unwrap_or_default();
    let home = |id: &u32| fs::read_link(format!("/proc/{id}/cwd"));
    processes.into_keys().filter(|id| home(id).is_ok_and(|home| home.starts_with(folder))).collect()
}

/// Returns the resident memory in bytes.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn all() -> io::Result<HashMap<u32, Process>> {
    let mut processes = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let id = path.file_name().and_then(|name| name.to_str()).and_then(|id| id.parse().ok());
        // The process may have ended in the meantime.
        if let Some(id) = id
            && let Some(process) = one(&path)
        {
            processes.insert(id, process);
        }
    }
    Ok(processes)
}

fn one(path: &Path) -> Option<Process> {
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    // proc_pid_stat(5): `id (name) state parent …`, and the name may contain anything.
    let (head, tail) = stat.rsplit_once(") ")?;
    let name = head.split_once(" (")?.1.to_owned();
    let fields: Vec<&str> = tail.split(' ').collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ticks = (14..=17).map(number).sum::<Option<u64>>()?;
    Some(Process { parent: number(4)?.try_into().ok()?, name, ticks })
}

/// Returns the whole machine's busy ticks: not idle, not waiting for a disk, not used by another
/// guest.
fn machine() -> io::Result<u64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let first = stat.lines().next().unwrap_or_default();
    let fields = first.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0));
    let counted = fields.enumerate().filter(|(at, _)| matches!(at, 0..=2 | 5 | 6));
    Ok(counted.map(|(_, ticks): (usize, u64)| ticks).sum())
}

#[expect(clippy::cast_precision_loss, reason = "the measured values are far below 2^53")]
pub(crate) fn to_float(count: u64) -> f64 {
    count as f64
}
