//! From files to a snapshot, with a sample of real data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use api::provider::Provider;
use cluster::instance_types::kwok;
use cluster::snapshot::{Options, build};
use engine::intern::ResourceId;
use expect_test::expect;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn a_sample_of_a_real_cluster_becomes_a_snapshot() {
    let contents = cluster::file::read(&data("openb.json")).expect("the file is there");
    assert_eq!((contents.errors.len(), contents.skipped.is_empty()), (0, true));
    let types = kwok::read(&data("types.json")).expect("the file is there");
    let options = Options::new(Provider::Kwok, &types);
    let built = build(&contents.objects, &options, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(built.ignored, []);

    let snapshot = &built.snapshot;
    let mut pods_by_class = BTreeMap::<u32, usize>::new();
    for pod in &snapshot.pods {
        *pods_by_class.entry(pod.class.0).or_default() += 1;
    }
    let gpu = snapshot.resources.get("nvidia.com/gpu").expect("some pods need one");
    let lines = pods_by_class.iter().map(|(class, count)| {
        let requests = &snapshot.classes[*class as usize].requests;
        let amount = |resource, unit| requests.get(resource) / unit;
        format!(
            "{count} pods with {}m CPU, {} MiB, {} GPUs",
            amount(ResourceId::CPU, 1_000_000),
            amount(ResourceId::MEMORY, 1000 << 20),
            amount(gpu, 1000)
        )
    });
    expect![[r#"
        3 pods with 3152m CPU, 5600 MiB, 1 GPUs
        3 pods with 11300m CPU, 49152 MiB, 1 GPUs
        3 pods with 11400m CPU, 48128 MiB, 1 GPUs
        3 pods with 3152m CPU, 5600 MiB, 1 GPUs
        3 pods with 11908m CPU, 47104 MiB, 1 GPUs
        3 pods with 12500m CPU, 57344 MiB, 0 GPUs
        3 pods with 8000m CPU, 30517 MiB, 1 GPUs
        3 pods with 32000m CPU, 49152 MiB, 0 GPUs
        3 pods with 18708m CPU, 64512 MiB, 1 GPUs
        3 pods with 11908m CPU, 47104 MiB, 1 GPUs
        3 pods with 9810m CPU, 41560 MiB, 1 GPUs
        1 pods with 8000m CPU, 30517 MiB, 0 GPUs"#]]
    .assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    assert_eq!(snapshot.pools.len(), 1);
    assert_eq!(snapshot.catalogues[0].types.len(), 6);
}
