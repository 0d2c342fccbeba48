//! The keys and certificates of one control plane, made fresh and never leaving its directory.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// Everything in PEM; private keys are PKCS#8.
pub(crate) struct Certificates {
    /// What clients trust.
    pub(crate) authority: String,
    /// What the API server, the scheduler and the controller manager serve with.
    pub(crate) serving: String,
    /// The key of `serving`.
    pub(crate) serving_key: String,
    /// What service account tokens are signed with.
    pub(crate) service_account_key: String,
    /// What service account tokens are checked with; the API server does not derive it from the key.
    pub(crate) service_account_public_key: String,
}

impl Certificates {
    /// Makes an authority and a certificate for loopback signed by it.
    pub(crate) fn generate() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "karpenter-e2e authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "karpenter-e2e");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let serving = params.signed_by(&key, &authority)?;

        let service_account = KeyPair::generate()?;
        Ok(Self {
            authority: authority.pem(),
            serving: serving.pem(),
            serving_key: key.serialize_pem(),
            service_account_key: service_account.serialize_pem(),
            service_account_public_key: service_account.public_key_pem(),
        })
    }
}

/// A bearer token that other users of the machine cannot guess: half a fresh public key in hexadecimal.
pub(crate) fn random_token() -> Result<String> {
    let key = KeyPair::generate()?;
    // The first byte only tells how the curve point is encoded.
    Ok(key.public_key_raw()[1..33].iter().fold(String::new(), |token, byte| format!("{token}{byte:02x}")))
}
