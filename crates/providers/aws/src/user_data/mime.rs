//! Several documents in one: what cloud-init reads.

use super::UserDataError;

/// What separates parts; it is nowhere in scripts and settings.
const BOUNDARY: &str = "//";
const SHELL_SCRIPT: &str = "text/x-shellscript; charset=\"us-ascii\"";
const NODE_CONFIG: &str = "application/node.eks.aws";

/// One document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its headers, in the order of their names.
    headers: Vec<(String, String)>,
    body: String,
}

impl Part {
    fn new(content_type: &str, body: impl Into<String>) -> Self {
        Self { headers: vec![("Content-Type".to_owned(), content_type.to_owned())], body: body.into() }
    }

    pub(super) fn shell_script(body: impl Into<String>) -> Self {
        Self::new(SHELL_SCRIPT, body)
    }

    pub(super) fn node_config(body: impl Into<String>) -> Self {
        Self::new(NODE_CONFIG, body)
    }
}

/// Whether a text says that it is an archive.
pub(super) fn is_archive(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("MIME-Version:") || text.starts_with("Content-Type:")
}

/// All parts as one text.
pub(super) fn write(parts: &[Part]) -> String {
    let header = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n");
    let part = |Part { headers, body }: &Part| {
        let headers: String =
            headers.iter().map(|(name, value)| [name, ": ", value, "\n"].concat()).collect();
        format!("--{BOUNDARY}\n{headers}\n{body}\n")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("{header}{parts}--{BOUNDARY}--\n")
}

/// The parts of an archive.
pub(super) fn read(text: &str) -> Result<Vec<Part>, UserDataError> {
    let wrong = |what: &str| UserDataError::Custom(format!("is no MIME archive that can be merged: {what}"));
    let text = text.trim_start().replace("\r\n", "\n");
    let (headers, body) = split_headers(&text).ok_or_else(|| wrong("it has no end of headers"))?;
    let content_type = headers
        .iter()
        .find(|(name, _)| name == "Content-Type")
        .map(|(_, value)| value.as_str())
        .ok_or_else(|| wrong("it has no Content-Type"))?;
    if !content_type.trim_start().to_ascii_lowercase().starts_with("multipart/") {
        return Err(wrong("its Content-Type is not multipart"));
    }
    let boundary = boundary(content_type).ok_or_else(|| wrong("its Content-Type has no boundary"))?;
    let mut parts = Vec::new();
    let mut current: Option<Vec<&str>> = None;
    let (between, end) = (format!("--{boundary}"), format!("--{boundary}--"));
    for line in body.split('\n') {
        let trimmed = line.trim_end();
        if trimmed == between || trimmed == end {
            if let Some(lines) = current.take() {
                parts.push(part(&lines.join("\n")).ok_or_else(|| wrong("a part has no end of headers"))?);
            }
            if trimmed == end {
                return Ok(parts);
            }
            current = Some(Vec::new());
        } else if let Some(lines) = &mut current {
            lines.push(line);
        }
    }
    Err(wrong("its last boundary is missing"))
}

fn part(text: &str) -> Option<Part> {
    let (mut headers, body) = split_headers(text)?;
    headers.sort();
    Some(Part { headers, body: body.to_owned() })
}

/// Headers up to the first empty line, with their names as they are usually written, and the rest.
fn split_headers(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    loop {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        if line.trim().is_empty() {
            return Some((headers, rest));
        }
        if let (true, Some((_, value))) = (line.starts_with([' ', '\t']), headers.last_mut()) {
            value.push(' ');
            value.push_str(line.trim());
            continue;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((usual(name.trim()), value.trim().to_owned()));
    }
}

/// `content-type` as `Content-Type`.
fn usual(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        format!("{}{}", first.to_ascii_uppercase(), rest.to_ascii_lowercase())
    };
    match name {
        "MIME-Version" => name.to_owned(),
        name => name.split('-').map(word).collect::<Vec<_>>().join("-"),
    }
}

fn boundary(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (name.trim().eq_ignore_ascii_case("boundary") && !value.is_empty()).then(|| value.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn parts_have_boundaries_and_blank_lines_exactly_so() {
        let parts = [Part::shell_script("#!/bin/bash\necho one\n"), Part::node_config("kind: NodeConfig")];
        expect![[r#"
            MIME-Version: 1.0
            Content-Type: multipart/mixed; boundary="//"

            --//
            Content-Type: text/x-shellscript; charset="us-ascii"

            #!/bin/bash
            echo one

            --//
            Content-Type: application/node.eks.aws

            kind: NodeConfig
            --//--
        "#]]
        .assert_eq(&write(&parts));
    }

    #[test]
    fn what_is_written_can_be_read() {
        let parts = vec![Part::shell_script("a\n\n"), Part::node_config("b"), Part::shell_script("")];
        assert_eq!(read(&write(&parts)).unwrap(), parts);
        assert_eq!(read(&write(&parts).replace('\n', "\r\n")).unwrap(), parts);
    }

    #[test]
    fn other_boundaries_and_headers_are_understood() {
        let text = "Content-Type: multipart/mixed;\n boundary=BOUNDARY\nMIME-Version: 1.0\n\nignored\n--BOUNDARY\n\
                    content-type: text/x-shellscript\nContent-Disposition: inline\n\nrun\n--BOUNDARY--\n";
        let parts = read(text).unwrap();
        assert_eq!(parts.len(), 1);
        assert_eq!(
            parts[0].headers,
            [
                ("Content-Disposition".to_owned(), "inline".to_owned()),
                ("Content-Type".to_owned(), "text/x-shellscript".to_owned()),
            ]
        );
        assert_eq!(parts[0].body, "run");
    }

    #[test]
    fn what_cannot_be_merged_is_said() {
        for wrong in [
            "MIME-Version: 1.0",
            "MIME-Version: 1.0\n\nbody",
            "Content-Type: text/plain\n\nbody",
            "Content-Type: multipart/mixed\n\nbody",
            "Content-Type: multipart/mixed; boundary=\"a\"\n\n--a\n\nbody",
            "Content-Type: multipart/mixed; boundary=\"a\"\n\n--a\nno header\n--a--",
        ] {
            assert!(read(wrong).unwrap_err().to_string().starts_with("spec.userData is no MIME"), "{wrong}");
        }
    }
}
