//! Which driver of NVIDIA a size gets.

/// A driver and the image that it is installed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The kind: `cuda`, `cuda-lts`, `grid` or `grid-v20`.
    pub kind: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The end of the name of the image that it is installed from.
    pub image: &'static str,
}

const CUDA_IMAGE: &str = "20260629214430";

const RTX_PRO_6000: Driver = Driver { kind: "grid-v20", version: "595.58.03", image: "20260609172331" };
const CONVERGED: Driver = Driver { kind: "grid", version: "570.211.01", image: "20260522192315" };
const K80: Driver = Driver { kind: "cuda", version: "470.82.01", image: CUDA_IMAGE };
const OTHERS: Driver = Driver { kind: "cuda-lts", version: "580.159.04", image: CUDA_IMAGE };

/// The driver of a size with GPUs of NVIDIA.
pub fn of(size: &str) -> Driver {
    let name = normalized(size);
    if name.ends_with("_xl_rtxpro6000bse_v6") {
        RTX_PRO_6000
    } else if is_converged(size) {
        CONVERGED
    } else if name.starts_with("standard_nc") && !name.contains("_v") {
        K80
    } else {
        OTHERS
    }
}

/// Whether a size's GPUs compute and draw, so that they need the driver for both.
pub fn is_converged(size: &str) -> bool {
    let name = normalized(size);
    let is = |series: &str, end: &str| name.starts_with(series) && name.ends_with(end);
    is("standard_nv", "_a10_v5") || is("standard_nc", "ads_a10_v4")
}

fn normalized(size: &str) -> String {
    let name = size.to_ascii_lowercase();
    name.strip_suffix("_promo").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 4.7: driver selection
    #[test]
    fn each_size_gets_the_driver_of_its_kind() {
        for (size, kind, version, image) in [
            ("Standard_NC24lds_xl_RTXPRO6000BSE_v6", "grid-v20", "595.58.03", "20260609172331"),
            ("Standard_NC288ds_xl_RTXPRO6000BSE_v6", "grid-v20", "595.58.03", "20260609172331"),
            ("Standard_NV6ads_A10_v5", "grid", "570.211.01", "20260522192315"),
            ("Standard_NV36adms_A10_v5", "grid", "570.211.01", "20260522192315"),
            ("Standard_NC8ads_A10_v4", "grid", "570.211.01", "20260522192315"),
            ("Standard_NC24", "cuda", "470.82.01", "20260629214430"),
            ("Standard_NC24r_Promo", "cuda", "470.82.01", "20260629214430"),
            ("Standard_NC24ads_A100_v4", "cuda-lts", "580.159.04", "20260629214430"),
            ("Standard_NC6s_v3", "cuda-lts", "580.159.04", "20260629214430"),
            ("Standard_ND96isr_H100_v5", "cuda-lts", "580.159.04", "20260629214430"),
            ("Standard_NV6", "cuda-lts", "580.159.04", "20260629214430"),
        ] {
            assert_eq!(of(size), Driver { kind, version, image }, "{size}");
        }
    }

    #[test]
    fn sizes_with_the_newest_cards_are_not_converged() {
        assert!(is_converged("standard_nv72ads_a10_v5") && is_converged("Standard_NC32ads_A10_v4"));
        assert!(!is_converged("Standard_NC24lds_xl_RTXPRO6000BSE_v6") && !is_converged("Standard_NC24ads_A100_v4"));
    }
}
