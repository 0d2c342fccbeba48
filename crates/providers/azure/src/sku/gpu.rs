//! GPUs that AKS has images and drivers for.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// By name of the size, in lower case.
static REGISTRY: LazyLock<BTreeMap<&'static str, Gpu>> =
    LazyLock::new(|| include_str!("../../data/gpus.csv").lines().skip(1).filter_map(row).collect());

fn row(line: &'static str) -> Option<(&'static str, Gpu)> {
    let mut fields = line.split(',');
    let name = fields.next()?;
    let vendor = match fields.next()? {
        "nvidia" => Vendor::Nvidia,
        "amd" => Vendor::Amd,
        _ => return None,
    };
    let mut switch = || fields.next().map(|field| field == "yes");
    Some((name, Gpu { vendor, ubuntu: switch()?, azure_linux: switch()?, azure_linux3: switch()? }))
}

/// GPUs of a size, and what runs on machines with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Who makes them.
    pub vendor: Vendor,
    /// Whether Ubuntu runs there.
    pub ubuntu: bool,
    /// Whether Azure Linux 2 runs there.
    pub azure_linux: bool,
    /// Whether Azure Linux 3 runs there.
    pub azure_linux3: bool,
}

/// Who makes GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vendor {
    /// NVIDIA, whose drivers AKS installs.
    Nvidia,
    /// AMD.
    Amd,
}

impl Vendor {
    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia",
            Self::Amd => "amd",
        }
    }
}

/// A name as tables have it: sizes on sale are the same machines.
fn key(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    lower.strip_suffix("_promo").map_or_else(|| lower.clone(), str::to_owned)
}

/// The GPUs of a size; none if it has none, or none that AKS has images for.
pub fn of(name: &str) -> Option<Gpu> {
    REGISTRY.get(key(name).as_str()).copied()
}

/// What the GPUs of a series are called whose names do not say it.
pub(super) fn name_of_series(series: &str) -> Option<&'static str> {
    let name = match series {
        "NC" | "NCr" => "K80",
        "NCs_v2" | "NCrs_v2" => "P100",
        "NCs_v3" | "NCrs_v3" | "NDrs_v2" => "V100",
        "NDs" | "NDrs" => "P40",
        "NDasr_v4" | "NDams_v4" => "A100",
        "NV" | "NVr" | "NVs_v3" => "M60",
        "NDis_v5" | "NDisr_v5" => "MI300X",
        _ => return None,
    };
    Some(name)
}

/// A driver, as images of AKS are told about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// Its kind.
    pub kind: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The end of the name of the image that it comes in.
    pub image: &'static str,
}

/// For virtual workstations of the newest kind.
const GRID_V20: Driver = Driver { kind: "grid-v20", version: "595.58.03", image: "20260609172331" };
/// For virtual workstations.
const GRID: Driver = Driver { kind: "grid", version: "570.211.01", image: "20260522192315" };
/// For the oldest computing cards.
const CUDA: Driver = Driver { kind: "cuda", version: "470.82.01", image: "20260629214430" };
/// For computing.
const CUDA_LTS: Driver = Driver { kind: "cuda-lts", version: "580.159.04", image: "20260629214430" };

/// The driver of a size with GPUs by NVIDIA.
pub fn driver(name: &str) -> Driver {
    let name = key(name);
    if name.ends_with("_xl_rtxpro6000bse_v6") {
        GRID_V20
    } else if is_converged(&name) {
        GRID
    } else if name.starts_with("standard_nc") && !name.contains("_v") {
        CUDA
    } else {
        CUDA_LTS
    }
}

/// Whether machines of a size can be workstations as well as compute.
pub fn is_converged(name: &str) -> bool {
    let name = key(name);
    let is = |start: &str, end: &str| name.starts_with(start) && name.ends_with(end);
    is("standard_nv", "ads_a10_v5") || is("standard_nv", "adms_a10_v5") || is("standard_nc", "ads_a10_v4")
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 4.7
    #[test]
    fn the_registry_has_all_rows_with_what_runs_there() {
        assert_eq!(REGISTRY.len(), 89);
        let count = |is: fn(&Gpu) -> bool| REGISTRY.values().filter(|gpu| is(gpu)).count();
        assert_eq!(count(|gpu| gpu.vendor == Vendor::Amd), 7);
        assert!(REGISTRY.values().all(|gpu| gpu.ubuntu && (gpu.azure_linux3 || !gpu.azure_linux)));
        // The rows of the specification: the three systems, Azure Linux 3 and Ubuntu, Ubuntu alone.
        let both = ["nc4as_t4_v3", "nc24rs_v3", "nd40rs_v2", "nd40s_v3"];
        let three = ["nc8ads_a10_v4", "nc80adis_h100_v5", "nd96asr_v4", "nv72ads_a10_v5", "nd96isr_h200_v5"];
        let ubuntu = ["nc6", "nc24r_promo", "nv48s_v3", "nd128isr_gb300_v6", "nd96is_mi300x_v5", "nd24rs"];
        let systems = |name: &&str| {
            let gpu = of(&format!("Standard_{name}")).unwrap();
            (gpu.azure_linux, gpu.azure_linux3)
        };
        assert!(both.iter().all(|name| systems(name) == (true, true)));
        assert!(three.iter().all(|name| systems(name) == (false, true)));
        assert!(ubuntu.iter().all(|name| systems(name) == (false, false)));
        assert_eq!(count(|gpu| gpu.azure_linux), 10);
    }

    // azure.md 4.7
    #[test]
    fn names_are_looked_up_without_case_and_without_their_promotion() {
        assert_eq!(of("Standard_NC16as_T4_v3").map(|gpu| gpu.vendor), Some(Vendor::Nvidia));
        assert_eq!(of("STANDARD_NV12ADS_V710_V5_Promo").map(|gpu| gpu.vendor), Some(Vendor::Amd));
        assert_eq!(of("Standard_D2s_v3"), None);
    }

    // azure.md 4.7
    #[test]
    fn every_card_has_its_driver() {
        for (name, kind) in [
            ("Standard_NC144ds_xl_RTXPRO6000BSE_v6", "grid-v20"),
            ("Standard_NV36adms_A10_v5", "grid"),
            ("Standard_NV6ads_A10_v5", "grid"),
            ("Standard_NC8ads_A10_v4", "grid"),
            ("Standard_NC24r", "cuda"),
            ("Standard_NC6_Promo", "cuda"),
            ("Standard_NC6s_v3", "cuda-lts"),
            ("Standard_NC24ads_A100_v4", "cuda-lts"),
            ("Standard_ND96isr_H100_v5", "cuda-lts"),
        ] {
            assert_eq!(driver(name).kind, kind, "{name}");
        }
    }
}
