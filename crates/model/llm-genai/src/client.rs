use std::time::Duration;

use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use llm::{LlmError, LlmErrorKind};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{NoProxy, Proxy, Url, redirect};

use crate::config::{Access, Config, Proxies};
use crate::provider::{BadAddress, Provider};

/// A provider's HTTP client, ready to be asked.
pub(crate) struct Client {
    pub(crate) genai: genai::Client,
    provider: Provider,
    base: Url,
}

impl Client {
    /// Builds one: reads the system's certificates, but connects to nothing.
    pub(crate) fn build(provider: Provider, config: &Config) -> Result<Self, LlmError> {
        let access = config.access(provider);
        let base = provider.base(access.base_url.as_ref().map(|url| url.reveal())).map_err(no_address)?;
        let headers = headers(provider, access)?;
        let failed = |cause: String| {
            let message = format!("the HTTP client for {} could not be made: {cause}", provider.name());
            LlmError::new(LlmErrorKind::Unreachable, crate::error::one_line(&message, None))
        };
        // Whichever provider the process has already is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("tether/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            // A redirect could carry the key to a stranger.
            .redirect(redirect::Policy::none())
            .connect_timeout(config.connect_timeout)
            .http2_keep_alive_interval(Duration::from_secs(20))
            .http2_adaptive_window(true)
            .no_proxy();
        if base.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
        if let Some(proxy) =
            proxy(&base, &config.proxies).transpose().map_err(|e| failed(e.without_url().to_string()))?
        {
            builder = builder.proxy(proxy);
        }
        let http = builder.build().map_err(|error| failed(crate::error::deepest(&error)))?;
        let genai = genai::Client::builder().with_reqwest(http).build().map_err(|error| failed(error.to_string()))?;
        Ok(Self { genai, provider, base })
    }

    /// Where a request to a model goes, in the library's words. The key is not among them: the HTTP client adds it.
    pub(crate) fn target(&self, model: &str) -> ServiceTarget {
        let url = self.provider.endpoint(&self.base, model).to_string();
        // Names that end like `-high` or `-max` would be cut and taken for an effort; the request's body names the
        // model as it is.
        let name = match self.provider {
            Provider::Ollama => model.to_owned(),
            Provider::DeepSeek | Provider::OpenAi | Provider::Anthropic | Provider::Gemini => format!("{model}-"),
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(format!("{}/", self.base)),
            auth: AuthData::RequestOverride { url, headers: Headers::default() },
            model: ModelIden::new(self.provider.kind(), name),
        }
    }

    /// Host and port, for reports.
    pub(crate) fn place(&self) -> String {
        let port = self.base.port_or_known_default().map_or_else(String::new, |port| format!(":{port}"));
        format!("{}{port}", self.base.host_str().unwrap_or_default())
    }
}

fn no_address(BadAddress(provider): BadAddress) -> LlmError {
    let variable = provider.address_variable();
    let message = format!("{variable} is not an address: write it as in http://127.0.0.1:8080");
    LlmError::new(LlmErrorKind::InvalidRequest, message)
}

fn headers(provider: Provider, access: &Access) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::new();
    if provider == Provider::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    let unauthorized = |message: String| LlmError::new(LlmErrorKind::Unauthorized, message);
    let variable = provider.key_variables().first();
    match (&access.key, variable) {
        (Some(key), Some(variable)) => {
            let (header, prefix) = key_header(provider);
            let value = HeaderValue::from_str(&format!("{prefix}{}", key.reveal()));
            let mut value = value.map_err(|_| unauthorized(format!("{variable} holds what no key can: mistyped?")))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        (None, Some(_)) if provider == Provider::OpenAi && access.base_url.is_some() => {}
        (None, Some(variable)) => {
            return Err(unauthorized(format!("there is no key for {}: set {variable}", provider.name())));
        }
        (_, None) => {}
    }
    Ok(headers)
}

fn key_header(provider: Provider) -> (HeaderName, &'static str) {
    match provider {
        Provider::Anthropic => (HeaderName::from_static("x-api-key"), ""),
        Provider::Gemini => (HeaderName::from_static("x-goog-api-key"), ""),
        Provider::DeepSeek | Provider::OpenAi | Provider::Ollama => (reqwest::header::AUTHORIZATION, "Bearer "),
    }
}

fn proxy(base: &Url, proxies: &Proxies) -> Option<reqwest::Result<Proxy>> {
    let host = base.host_str().unwrap_or_default();
    let local = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    let url = if base.scheme() == "http" { &proxies.http } else { &proxies.https };
    let url = url.as_ref().filter(|_| !local)?;
    let except = proxies.except.as_deref().and_then(NoProxy::from_string);
    Some(Proxy::all(url.reveal()).map(|proxy| proxy.no_proxy(except)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn every_key_is_marked_as_secret() {
        for provider in Provider::ALL {
            let headers = headers(provider, &Access { key: Some(Secret::from("sk-1")), base_url: None }).unwrap();
            let (secret, open): (Vec<_>, Vec<_>) = headers.values().partition(|value| value.is_sensitive());
            assert!(open.iter().all(|value| *value == "2023-06-01"), "{open:?}");
            assert_eq!(secret.len(), usize::from(provider != Provider::Ollama), "{provider:?}");
        }
    }
}
