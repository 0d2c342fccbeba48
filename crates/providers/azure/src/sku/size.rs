//! What the name of a size says: `NC24ads_A100_v4` is family N, subfamily C, 24 processors, features ads,
//! accelerator A100, version 4.

use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;

/// The parts of a name, in their order. What comes between accelerator and version says nothing to us.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    let parts = [
        "^(?<family>[A-Z])(?<subfamily>[A-Z]{0,2})",
        "(?<vcpus>[0-9]+)-?(?<constrained>[0-9]*)",
        "(?<features>(?:[abcdeiflmnotspPr]+|C+|NP)?)_?",
        // The network of a whole rack, before its accelerator.
        "(?:NDR_)?",
        "(?:(?<accelerator>xl_[A-Za-z]+[0-9]+[A-Za-z]*|[A-Z]+[0-9]+)_?)?",
        "(?:_cc_)?(?:_[0-9]+_)?(?:_MI300X_)?(?:_H100_)?",
        "(?<version>[vV][1-9])?(?:_Promo)?$",
    ];
    Regex::new(&parts.concat()).expect("the pattern is a constant that compiles")
});

/// What the name of a size says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The name itself, without its tier.
    pub name: String,
    /// One letter that says what it is made for.
    pub family: String,
    /// Up to two more letters.
    pub subfamily: String,
    /// How many virtual processors the machine has.
    pub vcpus: u32,
    /// How many of them can be used, if that is less.
    pub constrained_vcpus: Option<u32>,
    /// Letters for what is special.
    pub features: String,
    /// The kind of its accelerator.
    pub accelerator: Option<String>,
    /// The version as it is written, such as `v5`.
    pub version: Option<String>,
}

/// A name that does not follow the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a size must be letters and a number of processors, such as D4s_v5")]
pub struct UnknownName;

impl Size {
    /// What sizes have in common that differ in their number of processors only.
    pub fn series(&self) -> String {
        let Self { family, subfamily, features, .. } = self;
        let version = self.version.as_ref().map(|version| format!("_{version}")).unwrap_or_default();
        format!("{family}{subfamily}{features}{version}")
    }

    /// The number of the version; those without one are the first.
    pub fn version_number(&self) -> &str {
        self.version.as_deref().map_or("1", |version| &version[1..])
    }

    /// Whether its memory is encrypted against its host, which needs other images.
    pub fn is_confidential(&self) -> bool {
        self.name.starts_with("DC") || self.name.starts_with("EC")
    }
}

impl FromStr for Size {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let parts = NAME.captures(name).ok_or(UnknownName)?;
        let part = |name| parts.name(name).map(|part| part.as_str()).filter(|part| !part.is_empty());
        let text = |name| part(name).unwrap_or_default().to_owned();
        let number = |text: &str| text.parse::<u32>().map_err(|_| UnknownName);
        Ok(Self {
            name: name.to_owned(),
            family: text("family"),
            subfamily: text("subfamily"),
            vcpus: number(&text("vcpus"))?,
            constrained_vcpus: part("constrained").map(number).transpose()?,
            features: text("features"),
            accelerator: part("accelerator").map(|name| name.trim_start_matches("xl_").to_owned()),
            version: part("version").map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let found = name.parse::<Size>().map_or_else(
            |_| "none".to_owned(),
            |size| {
                let constrained = size.constrained_vcpus.map(|count| count.to_string()).unwrap_or_default();
                let (family, vcpus) = (format!("{}{}", size.family, size.subfamily), size.vcpus);
                let accelerator = size.accelerator.clone().unwrap_or_default();
                format!("{family} {vcpus} {constrained} {accelerator} {}", size.series())
            },
        );
        assert_eq!(found, expected, "{name}");
    }

    // azure.md 3.2
    #[test]
    fn special_names_are_read_and_others_are_not() {
        check("M416s_8_v2", "M 416   Ms_v2");
        check("M8-2ms", "M 8 2  Mms");
        check("ND96isr_MI300X_v5", "ND 96   NDisr_v5");
        check("NC24ads_A100_v4", "NC 24  A100 NCads_v4");
        check("NC36lds_xl_RTXPRO6000BSE_v6", "NC 36  RTXPRO6000BSE NClds_v6");
        check("D15_v2_Promo", "D 15   D_v2");
        // The original cannot read this one.
        check("ND128isr_NDR_GB200_v6", "ND 128  GB200 NDisr_v6");
        for name in ["", "d4s_v5", "D", "D4s_v10", "D4s v5", "Standard_D4s_v5", "D99999999999_v5"] {
            check(name, "none");
        }
    }
}
