//! The machine of the measurement.

use std::{
    fmt::{self, Display},
    fs::{self, File},
    io::{self, Seek, Write},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

const WRITES: usize = 100;

pub(crate) struct Machine {
    date: String,
    cores: usize,
    model: String,
    memory: String,
    kernel: String,
    fsync: Duration,
}

impl Machine {
    /// Reads the machine's properties, and measures fsync in `folder`, the servers' data folder.
    pub(crate) fn look(folder: &Path) -> io::Result<Self> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(Self {
            date: said("date", &["-u", "+%Y-%m-%d"]),
            cores: std::thread::available_parallelism()?.get(),
            model: field("/proc/cpuinfo", "model name"),
            memory: field("/proc/meminfo", "MemTotal"),
            kernel: kernel.trim().to_owned(),
            fsync: fsync(folder)?,
        })
    }
}

impl Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, cores, model, memory, kernel, fsync } = self;
        let gigabytes = memory.trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1_000_000;
        write!(
            formatter,
            "{date}, {cores} cores ({model}), {gigabytes} GB, Linux {kernel}; \
             fsync takes {:.2} ms",
            fsync.as_secs_f64() * 1e3
        )
    }
}

/// Returns the median time to write a page of 8 KiB and sync it to the disk.
fn fsync(folder: &Path) -> io::Result<Duration> {
    let path = folder.join("fsync");
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let begun = Instant::now();
        file.rewind()?;
        file.write_all(&[1; 8192])?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    fs::remove_file(path)?;
    times.sort();
    Ok(times[WRITES / 2])
}

fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}
