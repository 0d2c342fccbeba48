//! How this process knows the API server, as nodes are told it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::Config;

/// The certificates by which this process knows the API server, in base64 as nodes are told them.
pub(super) fn of(config: &Config) -> Option<String> {
    // As they are written in the file, since nodes that were launched before have them that way.
    let written = config.root_cert_file.as_ref().and_then(|path| std::fs::read(path).ok());
    let written = written.or_else(|| config.root_cert.as_deref().map(|all| pem(all).into_bytes()));
    written.filter(|text| !text.is_empty()).map(|text| BASE64_STANDARD.encode(text))
}

/// Certificates in their usual text form.
fn pem(certificates: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text += "-----BEGIN CERTIFICATE-----\n";
        let mut rest = BASE64_STANDARD.encode(certificate);
        while !rest.is_empty() {
            let next = rest.split_off(rest.len().min(64));
            text = text + &rest + "\n";
            rest = next;
        }
        text += "-----END CERTIFICATE-----\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_written_in_lines_of_64_letters() {
        let text = pem(&[vec![0; 50], vec![1]]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.iter().map(|line| line.len()).collect::<Vec<_>>(), [27, 64, 4, 25, 27, 4, 25]);
        assert_eq!((lines[0], lines[5]), ("-----BEGIN CERTIFICATE-----", "AQ=="));
        assert!(text.ends_with("-----END CERTIFICATE-----\n"));
    }

    #[test]
    fn the_file_counts_before_what_was_read_from_it() {
        let mut config = Config::new("https://localhost".parse().unwrap());
        assert_eq!(of(&config), None);
        config.root_cert = Some(vec![vec![1]]);
        let read = BASE64_STANDARD.decode(of(&config).unwrap()).unwrap();
        assert_eq!(read, pem(&[vec![1]]).into_bytes());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "as written").unwrap();
        config.root_cert_file = Some(file.path().to_owned());
        assert_eq!(of(&config), Some(BASE64_STANDARD.encode("as written")));
    }
}
