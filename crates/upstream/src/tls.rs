//! TLS towards upstreams: rustls with the platform's roots and the operator's extra ones. There is no way to turn
//! verification off.

use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use std::sync::Arc;

/// Makes the configuration of one endpoint, which offers HTTP/2 alone or both versions. The error says what is wrong with the
/// extra roots, or with the platform's.
pub(crate) fn config(extra_roots: Option<&[u8]>, http2_only: bool) -> Result<Arc<ClientConfig>, String> {
    let mut roots = Vec::new();
    if let Some(pem) = extra_roots {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.push(certificate.map_err(|error| format!("not a PEM file of certificates: {error}"))?);
        }
        if roots.is_empty() {
            return Err("there is no certificate in it".into());
        }
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        Verifier::new_with_extra_roots(roots, Arc::clone(&provider)).map_err(|error| format!("roots: {error}"))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        // "Dangerous" is the name of every door to a verifier of one's own; this one is the platform's, with more roots.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    if !http2_only {
        config.alpn_protocols.push(b"http/1.1".to_vec());
    }
    Ok(Arc::new(config))
}
