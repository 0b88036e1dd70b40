//! TLS to servers of others.

use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::{ClientConfig, RootCertStore};

/// With the operating system's root certificates; without any where they are not needed.
///
/// # Errors
/// They are needed and there are none; says what to do.
pub fn tls(needed: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up ({error})"))?;
    let builder = match needed {
        true => builder.with_native_roots().map_err(|error| {
            format!("this machine has no root certificates for https ({error}); install the package `ca-certificates`")
        })?,
        false => builder.with_root_certificates(RootCertStore::empty()),
    };
    Ok(builder.with_no_client_auth())
}
