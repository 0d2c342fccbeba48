//! HTTPS with a certificate of its own.

use std::sync::Arc;

use anyhow::{Context, Result};
use embedded::Service;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// Who the server is and who may talk to it; made fresh for each run.
pub(crate) struct Identity {
    /// What clients trust, in PEM.
    pub(crate) authority: String,
    /// What clients show.
    pub(crate) token: String,
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Identity {
    pub(crate) fn generate() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "karpenter up");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(["127.0.0.1", "localhost"].map(str::to_owned))?;
        params.distinguished_name.push(DnType::CommonName, "karpenter up API server");
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        // Half a fresh public key is as random as a token has to be; its first byte only tells the encoding.
        let random = KeyPair::generate()?;
        let token = random.public_key_raw()[1..33]
            .iter()
            .fold(String::new(), |token, byte| format!("{token}{byte:02x}"));
        Ok(Self { authority: authority.pem(), token, certificate, key })
    }

    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor> {
        let key = PrivateKeyDer::try_from(self.key.serialize_der())
            .map_err(|error| anyhow::anyhow!("the key cannot be used: {error}"))?;
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.der().clone()], key)
            .context("using the certificate")?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Serves until something goes wrong with the port.
pub(crate) async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    service: Service,
    token: Arc<str>,
) -> Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.context("accepting a connection")?;
                let (acceptor, service, token) = (acceptor.clone(), service.clone(), token.clone());
                connections.spawn(async move {
                    // Whoever does not speak TLS is not spoken to.
                    if let Ok(stream) = acceptor.accept(stream).await {
                        embedded::http_server::serve_connection(service, stream, Some(&token)).await;
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
