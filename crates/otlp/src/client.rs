//! The HTTP client of the export: hyper, and rustls with ring where the endpoint asks for TLS.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// As much of an answer as is read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Sends bytes, receives bytes.
#[derive(Clone)]
pub(crate) struct PlainClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl PlainClient {
    /// A client for an endpoint. The machine's certificates are read only if the endpoint is an https one.
    pub(crate) fn new(endpoint: &Uri) -> Result<Self, rustls::Error> {
        let builder = HttpsConnectorBuilder::new();
        let builder = if endpoint.scheme_str() == Some("https") {
            let trusted = builder.with_provider_and_native_roots(ring::default_provider());
            trusted.map_err(|error| rustls::Error::General(error.to_string()))?
        } else {
            let config = ClientConfig::builder_with_provider(ring::default_provider().into())
                .with_safe_default_protocol_versions()?
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth();
            builder.with_tls_config(config)
        };
        let connector = builder.https_or_http().enable_http1().build();
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }
}

impl fmt::Debug for PlainClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainClient").finish_non_exhaustive()
    }
}

impl HttpClient for PlainClient {
    fn send_bytes<'client, 'sending>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sending>>
    where
        'client: 'sending,
        Self: 'sending,
    {
        Box::pin(async move {
            let (head, body) = self.0.request(request.map(Full::new)).await?.into_parts();
            let bytes = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
            Ok(Response::from_parts(head, bytes))
        })
    }
}
