//! Certificates that the administrator trusts instead of the system's: those of a proxy or of private endpoints.

use std::path::{Path, PathBuf};

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// The variable that names the file, as for every AWS SDK.
pub(crate) const VARIABLE: &str = "AWS_CA_BUNDLE";

/// Why a file of certificates cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{VARIABLE} names {}, {why}: name a file with certificates in PEM", path.display())]
pub struct BadCaBundle {
    path: PathBuf,
    why: String,
}

/// An HTTP client that trusts the certificates in a file, and no others.
pub(crate) fn client(path: &Path) -> Result<SharedHttpClient, BadCaBundle> {
    let bad = |why: String| BadCaBundle { path: path.to_owned(), why };
    let bytes = std::fs::read(path).map_err(|error| bad(format!("which cannot be read, {error}")))?;
    check(&bytes).map_err(bad)?;
    let store = TrustStore::empty().with_pem_certificate(bytes);
    let context = TlsContext::builder().with_trust_store(store).build();
    let context = context.map_err(|error| bad(format!("which cannot be used, {error}")))?;
    let provider = Provider::Rustls(CryptoMode::AwsLc);
    Ok(Builder::new().tls_provider(provider).tls_context(context).build_https())
}

/// Reads the certificates beforehand: the SDK would only do so with the first request, and not survive a bad one.
fn check(bytes: &[u8]) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bytes) {
        let certificate = certificate.map_err(|error| format!("which is not PEM, {error:?}"))?;
        roots.add(certificate).map_err(|error| format!("with a certificate that cannot be read, {error}"))?;
    }
    if roots.is_empty() { Err("which holds no certificate".to_owned()) } else { Ok(()) }
}
