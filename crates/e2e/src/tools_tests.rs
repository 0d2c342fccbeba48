//! The build logic against a scripted `go`, so that nothing is compiled here.

use super::*;

/// A workshop whose `go` is the given shell script; `$out` is the file to write in a build.
struct Fixture {
    dir: tempfile::TempDir,
    workshop: Workshop,
}

impl Fixture {
    fn new(go_version: &str, build: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let go = dir.path().join("go");
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = env ]; then {go_version}; exit; fi\n\
             out=$6; here={}; echo call >>$here/calls\n{build}\n",
            dir.path().display()
        );
        // Another process writes it: while this one has the file open for writing, a child that another test
        // forks at that moment would inherit it, and executing it would fail with "text file busy".
        let write = "printf %s \"$1\" >\"$2\" && chmod +x \"$2\"";
        assert!(Command::new("sh").args(["-c", write, "sh", &script]).arg(&go).status().unwrap().success());
        fs::create_dir_all(dir.path().join("tools/etcd")).unwrap();
        let workshop = Workshop {
            go,
            python: dir.path().join("python"),
            npm: dir.path().join("npm"),
            sources: dir.path().to_owned(),
            kubernetes: None,
            cache: dir.path().join("cache"),
            rate_limit_pause: Duration::ZERO,
            say: |_| {},
        };
        let fixture = Self { dir, workshop };
        fixture.pin_etcd("v3.7.3");
        fixture
    }

    fn pin_etcd(&self, version: &str) {
        let folder = self.dir.path().join("tools/etcd");
        let go_mod = format!("module x\n\ngo 1.26.0\n\nrequire go.etcd.io/etcd/server/v3 {version}\n");
        fs::write(folder.join("go.mod"), go_mod).unwrap();
        fs::write(folder.join("go.sum"), "").unwrap();
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.dir.path().join("calls")).map_or(0, |calls| calls.lines().count())
    }

    fn etcd(&self) -> Result<PathBuf> {
        self.workshop.path(Tool::Etcd)
    }
}

const GO_126: &str = "echo go1.26.8";

#[test]
fn a_tool_is_built_once_per_version() {
    let fixture = Fixture::new(GO_126, "touch $out");
    let first = fixture.etcd().unwrap();
    assert!(first.is_file());
    assert_eq!(fixture.etcd().unwrap(), first);
    assert_eq!(fixture.calls(), 1);

    fixture.pin_etcd("v3.7.4");
    let second = fixture.etcd().unwrap();
    assert_ne!(second, first);
    assert!(second.to_str().unwrap().contains("/etcd-v3.7.4-"), "{second:?}");
    assert_eq!(fixture.calls(), 2);
}

#[test]
fn parallel_callers_build_once() {
    let fixture = Fixture::new(GO_126, "sleep 0.2; touch $out");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fixture.etcd().unwrap());
        }
    });
    assert_eq!(fixture.calls(), 1);
}

#[test]
fn a_missing_go_is_one_clear_sentence() {
    let mut fixture = Fixture::new(GO_126, "touch $out");
    fixture.workshop.go = fixture.dir.path().join("absent");
    assert_eq!(
        format!("{:#}", fixture.etcd().unwrap_err()),
        "Go 1.26 or newer is needed to build etcd: \
         install it from your package manager or go.dev and put `go` on PATH"
    );
}

#[test]
fn an_old_go_is_one_clear_sentence() {
    let fixture = Fixture::new("echo go1.19.8", "touch $out");
    assert_eq!(
        format!("{:#}", fixture.etcd().unwrap_err()),
        "Go 1.26 or newer is needed to build etcd (`go` says: go1.19.8): \
         install it from your package manager or go.dev and put `go` on PATH"
    );
    assert_eq!(fixture.calls(), 0);
}

#[test]
fn a_toolchain_that_cannot_be_fetched_is_one_clear_sentence() {
    let fixture = Fixture::new("echo 'go: download go1.26.0: no route' >&2; exit 1", "touch $out");
    let error = format!("{:#}", fixture.etcd().unwrap_err());
    assert!(error.contains("needed to build etcd (`go` says: go: download go1.26.0: no route)"), "{error}");
}

#[test]
fn a_rate_limited_build_is_tried_again() {
    let fixture = Fixture::new(
        GO_126,
        "if [ $(wc -l <$here/calls) -lt 3 ]; then echo '429 Too Many Requests' >&2; exit 1; fi; touch $out",
    );
    assert!(fixture.etcd().is_ok());
    assert_eq!(fixture.calls(), 3);
}

#[test]
fn a_proxy_that_never_recovers_is_an_error() {
    let fixture = Fixture::new(GO_126, "echo '429 Too Many Requests' >&2; exit 1");
    let error = format!("{:#}", fixture.etcd().unwrap_err());
    assert!(error.contains("go build of etcd failed:\n429 Too Many Requests"), "{error}");
    assert_eq!(fixture.calls(), 3);
}

#[test]
fn a_failed_build_shows_the_last_lines_and_leaves_nothing_behind() {
    let fixture = Fixture::new(GO_126, "seq 100 >&2; exit 1");
    let error = format!("{:#}", fixture.etcd().unwrap_err());
    assert!(error.ends_with("\n99\n100") && !error.contains("\n50\n"), "{error}");
    assert!(fixture.etcd().is_err());
    assert_eq!(fixture.calls(), 2);
}

#[test]
fn kubernetes_tools_are_stamped_with_their_version() {
    let flags = Tool::Kubectl.ldflags("v1.36.3", "").unwrap();
    assert_eq!(
        flags,
        "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
         -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
    );
}

#[test]
fn every_tool_is_pinned_in_this_repository() {
    let workshop = Workshop::from_environment().unwrap();
    for tool in Tool::ALL {
        let pin = workshop.pin(tool).unwrap();
        // A program of our own is named in its module, one of another module in the imports.
        let (file, text) = if pin.source.is_own() {
            ("go.mod", format!("module {}", pin.source.package))
        } else {
            ("tools.go", format!("{:?}", pin.source.package))
        };
        assert!(fs::read_to_string(pin.folder.join(file)).unwrap().contains(&text), "{tool:?}");
    }
}

#[test]
fn the_digest_is_the_published_fnv1a() {
    // The known value for "a" is af63dc4c8601ec8c; one zero byte for the border follows.
    let expected = 0xaf63_dc4c_8601_ec8c_u64.wrapping_mul(0x0000_0100_0000_01b3);
    assert_eq!(fnv1a(&["a"]), expected);
    assert_ne!(fnv1a(&["a", "b"]), fnv1a(&["ab", ""]));
}

#[test]
fn an_older_kubernetes_is_the_one_with_a_folder_of_its_own() {
    let fixture = Fixture::new(GO_126, "touch $out");
    for (folder, version) in [("kubernetes", "v1.36.3"), ("kubernetes-1.32", "v1.32.4")] {
        let folder = fixture.dir.path().join("tools").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("go.mod"), format!("go 1.23.0\n\nrequire k8s.io/kubernetes {version}\n"))
            .unwrap();
        fs::write(folder.join("go.sum"), "").unwrap();
    }
    let version = |wanted: Option<&str>, tool| {
        let workshop = Workshop { kubernetes: wanted.map(str::to_owned), ..fixture.workshop.clone() };
        workshop.pin(tool).map(|pin| pin.version).map_err(|error| error.to_string())
    };
    let server = |wanted| version(wanted, Tool::KubeApiserver);
    assert_eq!(server(None).unwrap(), "v1.36.3");
    assert_eq!(server(Some("1.36")).unwrap(), "v1.36.3");
    assert_eq!(server(Some("1.32")).unwrap(), "v1.32.4");
    assert_eq!(version(Some("1.32"), Tool::Kubectl).unwrap(), "v1.36.3", "the command line stays");
    assert_eq!(
        server(Some("1.20")).unwrap_err(),
        "KUBERNETES=\"1.20\" is no version that can be built: expected one with a folder tools/kubernetes-VERSION, \
         or 1.36"
    );
}

impl Fixture {
    /// A Python that makes environments of itself and whose installation is the given shell script.
    fn with_python(install: &str) -> Self {
        let fixture = Self::new(GO_126, "touch $out");
        let here = fixture.dir.path().display();
        let script = format!(
            "#!/bin/sh\nif [ \"$2\" = venv ]; then mkdir -p $3/bin; cp {here}/python $3/bin/python; exit; fi\n\
             echo call >>{here}/calls\n{install}\n"
        );
        let write = "printf %s \"$1\" >\"$2\" && chmod +x \"$2\"";
        let python = &fixture.workshop.python;
        assert!(
            Command::new("sh").args(["-c", write, "sh", &script]).arg(python).status().unwrap().success()
        );
        fs::create_dir_all(fixture.dir.path().join("tools/moto")).unwrap();
        fixture.pin_moto("moto==5.2.5\n");
        fixture
    }

    fn pin_moto(&self, requirements: &str) {
        fs::write(self.dir.path().join("tools/moto/requirements.txt"), requirements).unwrap();
    }
}

#[test]
fn python_packages_are_installed_once_for_their_versions() {
    let fixture = Fixture::with_python("");
    let first = fixture.workshop.moto().unwrap();
    assert!(first.python.is_file());
    assert_eq!(fixture.workshop.moto().unwrap(), first);
    assert_eq!(fixture.calls(), 1);
    fixture.pin_moto("moto==5.2.6\n");
    assert_ne!(fixture.workshop.moto().unwrap().python, first.python);
    assert_eq!(fixture.calls(), 2);
}

#[test]
fn an_installation_that_failed_is_tried_again() {
    let fixture = Fixture::with_python("echo no such package >&2; exit 1");
    for calls in [1, 2] {
        let error = fixture.workshop.moto().unwrap_err();
        assert_eq!(format!("{error:#}"), "installing moto failed:\nno such package");
        assert_eq!(fixture.calls(), calls);
    }
}

#[test]
fn packages_for_node_are_installed_once_for_their_versions() {
    let fixture = Fixture::new(GO_126, "touch $out");
    let here = fixture.dir.path();
    let error = || format!("{:#}", fixture.workshop.azure_oav().unwrap_err());
    assert!(error().contains("cannot read"), "{}", error());
    fs::create_dir_all(here.join("tools/azure-oav")).unwrap();
    let pin = |name: &str, text: &str| fs::write(here.join("tools/azure-oav").join(name), text).unwrap();
    pin("package.json", "{}");
    pin("package-lock.json", "1");
    assert!(error().contains("Node.js 20 or newer"), "{}", error());
    let npm = format!(
        "#!/bin/sh\n[ \"$1\" = ci ] || exit 0\necho call >>{}/calls\n[ -f package-lock.json ] && mkdir node_modules\n",
        here.display()
    );
    let write = "printf %s \"$1\" >\"$2\" && chmod +x \"$2\"";
    let written = Command::new("sh").args(["-c", write, "sh", &npm]).arg(&fixture.workshop.npm).status();
    assert!(written.unwrap().success());
    let first = fixture.workshop.azure_oav().unwrap();
    assert!(first.packages.join("node_modules").is_dir());
    assert_eq!(fixture.workshop.azure_oav().unwrap(), first);
    assert_eq!(fixture.calls(), 1);
    pin("package-lock.json", "2");
    assert_ne!(fixture.workshop.azure_oav().unwrap().packages, first.packages);
    assert_eq!(fixture.calls(), 2);
}
