//! Whatever a file contains, reading it and building a snapshot of it ends without a panic.

use api::provider::Provider;
use cluster::instance_types::kwok;
use cluster::snapshot::{Options, build};
use proptest::prelude::*;

const JSON: &str = include_str!("data/openb.json");
const TYPES: &str = include_str!("data/types.json");
const YAML: &str = include_str!("data/cluster.yaml");

fn read_and_build(bytes: &[u8]) {
    let Ok(contents) = cluster::file::parse("cluster", bytes) else { return };
    let types = kwok::built_in();
    for provider in Provider::ALL {
        let options = Options { accept_unseen_pods: true, ..Options::new(provider, &types[..1]) };
        let built = build(&contents.objects, &options, jiff::Timestamp::UNIX_EPOCH);
        let texts = built.ignored.iter().map(ToString::to_string);
        assert!(texts.chain(contents.errors.iter().map(ToString::to_string)).all(|text| !text.is_empty()));
    }
}

/// The text with some parts replaced by what does not belong there.
fn damaged(text: &str, damage: &[(usize, String)]) -> String {
    let mut text = text.to_owned();
    for (position, replacement) in damage {
        let mut at = position % text.len();
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let end = text[at..].find([',', '\n', '}', ':']).map_or(text.len(), |length| at + length);
        text.replace_range(at..end, replacement);
    }
    text
}

fn damage() -> impl Strategy<Value = Vec<(usize, String)>> {
    let replacement = prop_oneof![
        Just(String::new()),
        Just("null".to_owned()),
        Just("-1".to_owned()),
        Just("1e999".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("\"\"".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("\"\u{0}é\"".to_owned()),
        "[ -~]{0,8}",
    ];
    prop::collection::vec((any::<usize>(), replacement), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_yaml_is_no_panic(damage in damage()) {
        read_and_build(damaged(YAML, &damage).as_bytes());
    }

    #[test]
    fn damaged_json_is_no_panic(damage in damage()) {
        read_and_build(damaged(JSON, &damage).as_bytes());
        let _ = kwok::parse("types", damaged(TYPES, &damage).as_bytes());
    }

    #[test]
    fn random_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_and_build(&bytes);
        let _ = kwok::parse("types", &bytes);
    }
}

#[test]
fn the_sample_itself_has_no_errors() {
    let contents = cluster::file::parse("cluster", YAML.as_bytes()).expect("text");
    assert_eq!(contents.errors, []);
    let types = kwok::built_in();
    let built = build(&contents.objects, &Options::new(Provider::Kwok, &types), jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(built.ignored, []);
    assert_eq!(
        (built.snapshot.pods.len(), built.snapshot.nodes.len(), built.snapshot.daemons.len()),
        (1, 2, 1)
    );
}
