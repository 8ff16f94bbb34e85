//! The server's certificate.

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is wrong with the certificate or the key.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}", file = file.display())]
pub struct TlsError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// Reads a certificate chain and its key; HTTP/2 and HTTP/1.1 by ALPN.
pub fn tls_config(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let wrong = |file: &Path, what: String| TlsError { file: file.to_owned(), what };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(cert, format!("no PEM certificate can be read: {error}")))?;
    if chain.is_empty() {
        return Err(wrong(cert, "there is no certificate in it".into()));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| wrong(key, format!("no PEM private key can be read: {error}")))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| wrong(cert, format!("certificate and key do not fit: {error}")))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
