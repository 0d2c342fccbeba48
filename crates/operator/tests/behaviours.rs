//! What `docs/behaviours.md` says of tests, as far as a machine can tell: those that it names exist and assert
//! something, and no row that needs running controllers is without a test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The numbers of sections whose tests are wherever what they show is.
const SECTIONS: [&str; 6] = ["16.", "23.", "27.14", "27.18", "27.19", "27.20"];
/// How a row of another section names a test of this crate.
const OURS: &str = "operator::";
/// One of these is in whatever can fail: assertions, and helpers that are named for what they do.
const ASSERTING: [&str; 7] = ["assert", "check", "expect", "panic!", "until", "always(", ".play)("];

/// A function of a source.
struct Function {
    /// The file and the folders that it is in.
    modules: Vec<String>,
    name: String,
    asserts: bool,
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The name of the function that a line begins.
fn begun(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line =
        ["pub(super) ", "pub(crate) ", "pub "].iter().find_map(|it| line.strip_prefix(it)).unwrap_or(line);
    let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

/// The functions of a source with their bodies, which end where their closing brace is indented as they are.
fn bodies(text: &str) -> BTreeMap<&str, String> {
    let mut bodies = BTreeMap::<&str, String>::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = begun(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let body = bodies.entry(name).or_default();
        body.push_str(line);
        if line.ends_with('}') {
            continue;
        }
        for line in lines.by_ref() {
            body.push_str(line);
            body.push('\n');
            if line.strip_prefix(indent) == Some("}") {
                break;
            }
        }
    }
    bodies
}

/// Whether a body asserts something, by itself or through what it calls in the same file.
fn asserts(body: &str, all: &BTreeMap<&str, String>) -> bool {
    let says = |body: &str| ASSERTING.iter().any(|word| body.contains(word));
    let mut words = body.split(|c: char| !c.is_alphanumeric() && c != '_');
    says(body) || words.any(|word| all.get(word).is_some_and(|called| says(called)))
}

/// All functions of all crates.
fn functions() -> Vec<Function> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates are in a folder");
    let mut paths = Vec::new();
    sources(crates, &mut paths);
    let mut all = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a source can be read");
        let parts = path.iter().map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned());
        let modules: Vec<String> = parts.collect();
        let bodies = bodies(&text);
        all.extend(bodies.iter().map(|(name, body)| Function {
            modules: modules.clone(),
            name: (*name).to_owned(),
            asserts: asserts(body, &bodies),
        }));
    }
    all
}

/// A row of the page.
struct Row {
    id: String,
    behaviour: String,
    tests: String,
}

impl Row {
    /// The tests that it names. What has a slash is a file.
    fn named(&self) -> impl Iterator<Item = &str> {
        self.tests.split('`').skip(1).step_by(2).filter(|name| !name.contains('/'))
    }
}

fn rows() -> Vec<Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/behaviours.md");
    let page = fs::read_to_string(page).expect("the table of behaviours");
    let mut rows = Vec::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let [id, behaviour, tests] = cells[..]
            && id.starts_with(|c: char| c.is_ascii_digit())
        {
            let [id, behaviour, tests] = [id, behaviour, tests].map(str::to_owned);
            rows.push(Row { id, behaviour, tests });
        }
    }
    rows
}

/// The functions that a row may mean. A name without a module may be anywhere.
fn meant<'f>(functions: &'f [Function], name: &str) -> Vec<&'f Function> {
    let (modules, test) = name.rsplit_once("::").unwrap_or(("", name));
    let module = modules.rsplit("::").next().unwrap_or(modules);
    let is_meant =
        |it: &&Function| it.name == test && (module.is_empty() || it.modules.iter().any(|of| of == module));
    functions.iter().filter(is_meant).collect()
}

#[test]
fn every_test_that_is_named_exists_and_asserts_something() {
    let functions = functions();
    let mut count = 0;
    for row in rows() {
        let is_elsewhere = !SECTIONS.iter().any(|section| row.id.starts_with(section));
        let names: Vec<&str> = row.named().filter(|name| !is_elsewhere || name.starts_with(OURS)).collect();
        if is_elsewhere && names.is_empty() {
            continue;
        }
        let Row { id, behaviour, .. } = &row;
        assert!(!behaviour.is_empty(), "{id} says nothing");
        assert!(!names.is_empty(), "{id} names no test: {behaviour}");
        for name in names {
            let found = meant(&functions, name);
            assert!(!found.is_empty(), "{name} of {id} does not exist");
            assert!(found.iter().any(|it| it.asserts), "{name} of {id} asserts nothing");
            count += 1;
        }
    }
    assert!(count > 0, "the page has lost its sections");
}

#[test]
fn no_behaviour_is_left_to_running_controllers_without_a_test_of_theirs() {
    for Row { id, behaviour, tests } in rows() {
        let is_left = |cell: &str| cell.contains("*operator*") || cell.contains("operator)");
        let is_left = is_left(&behaviour) || is_left(&tests);
        assert!(
            !is_left || tests.contains(&format!("`{OURS}")),
            "{id} names no test of the operator: {behaviour}"
        );
    }
}

#[test]
fn a_test_without_an_assertion_is_noticed() {
    let source = "
fn nothing() {
    let a = 1;
}

fn helper(a: u8) {
    assert_eq!(a, 1);
}

fn through_another() {
    helper(2);
}
";
    let bodies = bodies(source);
    assert_eq!(bodies.keys().copied().collect::<Vec<_>>(), ["helper", "nothing", "through_another"]);
    let asserting = |name: &str| asserts(&bodies[name], &bodies);
    assert_eq!(["nothing", "helper", "through_another"].map(asserting), [false, true, true]);
}
