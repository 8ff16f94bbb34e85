//! The lab's certificate.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::LabError;

/// Where the lab's certificate comes from.
#[derive(Debug, Clone)]
pub enum LabTls {
    /// A new authority and a certificate of it for `localhost` and `127.0.0.1`; trust [`ca_pem`](crate::Lab::ca_pem).
    SelfSigned,
    /// PEM files.
    Files {
        /// The certificate chain, the server's own first.
        cert: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// An acceptor which offers HTTP/2 and HTTP/1.1, and the authority to trust if it is new.
pub(crate) fn acceptor(tls: &LabTls) -> Result<(TlsAcceptor, Option<String>), LabError> {
    let (chain, key, ca) = match tls {
        LabTls::SelfSigned => {
            let (chain, key, ca) = own_authority()?;
            (chain, key, Some(ca))
        }
        LabTls::Files { cert, key } => {
            let bad = |error: rustls::pki_types::pem::Error| LabError::Tls(error.to_string());
            let chain = CertificateDer::pem_file_iter(cert).map_err(bad)?;
            let chain = chain.collect::<Result<Vec<_>, _>>().map_err(bad)?;
            (chain, PrivateKeyDer::from_pem_file(key).map_err(bad)?, None)
        }
    };
    let bad = |error: rustls::Error| LabError::Tls(error.to_string());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.map_err(bad)?.with_no_client_auth().with_single_cert(chain, key).map_err(bad)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), ca))
}

type Made = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, String);

fn own_authority() -> Result<Made, LabError> {
    let bad = |error: rcgen::Error| LabError::Tls(error.to_string());
    let mut ca = rcgen::CertificateParams::new(Vec::new()).map_err(bad)?;
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    ca.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
    ca.distinguished_name.push(rcgen::DnType::CommonName, "Turnkeep lab authority");
    let ca_key = rcgen::KeyPair::generate().map_err(bad)?;
    let ca_pem = ca.self_signed(&ca_key).map_err(bad)?.pem();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut leaf = rcgen::CertificateParams::new(names).map_err(bad)?;
    leaf.distinguished_name.push(rcgen::DnType::CommonName, "Turnkeep lab");
    leaf.use_authority_key_identifier_extension = true;
    leaf.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let key = rcgen::KeyPair::generate().map_err(bad)?;
    let cert = leaf.signed_by(&key, &issuer).map_err(bad)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|error| LabError::Tls(error.to_owned()))?;
    Ok((vec![cert.der().clone()], key, ca_pem))
}
