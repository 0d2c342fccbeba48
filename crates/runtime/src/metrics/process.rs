//! What the process uses, from what Linux says about it.

use api::names::metrics::runtime as names;

use super::Registry;

/// How many parts of a second Linux counts processor time in, on every architecture.
const TICKS: f64 = 100.0;

/// Brings the metrics of the process up to date. What cannot be read is left out.
pub(super) fn collect(registry: &Registry, live_heap: Option<fn() -> u64>) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let stat = read("/proc/self/stat");
    let set = |metric, value: Option<f64>| {
        if let Some(value) = value {
            registry.set(metric, &[], value);
        }
    };
    set(&names::PROCESS_RESIDENT_MEMORY, memory(&status, "VmRSS:"));
    set(&names::PROCESS_VIRTUAL_MEMORY, memory(&status, "VmSize:"));
    // Memory that is no file's is mostly the heap.
    #[expect(clippy::cast_precision_loss, reason = "no machine has that much memory")]
    let live = live_heap.map(|bytes| bytes() as f64).filter(|bytes| *bytes > 0.0);
    set(&names::LIVE_HEAP, live.or_else(|| memory(&status, "RssAnon:")));
    set(&names::PROCESS_CPU_SECONDS, cpu_seconds(&stat));
    set(&names::PROCESS_START_TIME, start_time(&stat, &read("/proc/stat")));
    #[expect(clippy::cast_precision_loss, reason = "a process has few files open")]
    set(&names::PROCESS_OPEN_FDS, std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64));
    set(&names::PROCESS_MAX_FDS, max_files(&read("/proc/self/limits")));
}

/// Bytes, from a line such as `VmRSS:     1234 kB`.
fn memory(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kib| kib * 1024.0)
}

/// The fields after the program's name, which may contain anything; the first is the third of all.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS)
}

fn start_time(stat: &str, machine: &str) -> Option<f64> {
    let boot: f64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + field(stat, 22)? / TICKS)
}

fn max_files(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_linux_are_read() {
        assert_eq!(memory("VmPeak:\t 9 kB\nVmRSS:\t     12 kB\n", "VmRSS:"), Some(12.0 * 1024.0));
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 1000 300000 500 184467440";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(start_time(stat, "cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_010.0));
        assert_eq!(
            max_files("Max open files            1024                 4096        files"),
            Some(1024.0)
        );
        assert_eq!((memory("", "VmRSS:"), cpu_seconds("7 (a) S"), max_files("")), (None, None, None));
    }

    #[test]
    fn what_performance_tests_look_for_is_never_zero() {
        let registry = Registry::default();
        collect(&registry, None);
        for metric in [&names::PROCESS_RESIDENT_MEMORY, &names::LIVE_HEAP] {
            assert!(registry.value(metric, &[]).is_some_and(|value| value > 0.0), "{}", metric.name);
        }
        collect(&registry, Some(|| 42));
        assert_eq!(registry.value(&names::LIVE_HEAP, &[]), Some(42.0));
    }
}
