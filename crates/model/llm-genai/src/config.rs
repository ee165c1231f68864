use std::fmt;
use std::time::Duration;

use llm::Route;

use crate::provider::Provider;

/// How the providers are reached.
#[derive(Clone, Debug)]
pub struct Config {
    /// `deepseek/…`
    pub deepseek: Access,
    /// `openai/…`, and whatever serves the same API under the base URL.
    pub openai: Access,
    /// `anthropic/…`
    pub anthropic: Access,
    /// `gemini/…`
    pub gemini: Access,
    /// `ollama/…`, which needs no key.
    pub ollama: Access,
    /// How long a provider may be silent: before it answers at all, and between any two pieces of its answer.
    pub idle_timeout: Duration,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long to wait before the first retry. Each further one waits twice as long.
    pub retry_delay: Duration,
    /// What stands between this machine and the providers.
    pub proxies: Proxies,
}

/// How one provider is reached.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The API key.
    pub key: Option<Secret>,
    /// Where the API is, with or without its version, if not at the provider's own address. What is not a URL is
    /// reported by the first request.
    pub base_url: Option<Secret>,
}

/// The HTTP proxies in use. Never asked for an address of this machine.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// For `http:` addresses.
    pub http: Option<Secret>,
    /// For `https:` addresses.
    pub https: Option<Secret>,
    /// Hosts that are reached without, as in `NO_PROXY`.
    pub except: Option<Box<str>>,
}

/// Text that is not for printing: a key, or a URL that may hold one.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Default for Config {
    fn default() -> Self {
        Self {
            deepseek: Access::default(),
            openai: Access::default(),
            anthropic: Access::default(),
            gemini: Access::default(),
            ollama: Access::default(),
            idle_timeout: Duration::from_secs(90),
            connect_timeout: Duration::from_secs(10),
            retry_delay: Duration::from_millis(500),
            proxies: Proxies::default(),
        }
    }
}

impl Config {
    /// Reads the usual variables: `DEEPSEEK_API_KEY`, `DEEPSEEK_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_BASE_URL`,
    /// `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `GEMINI_API_KEY` or `GOOGLE_API_KEY`, `GEMINI_BASE_URL`,
    /// `OLLAMA_HOST`, and `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` in either case. An empty one is as
    /// good as none.
    pub fn from_lookup(look_up: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            let values = names.iter().filter_map(|name| look_up(name));
            values.map(|value| value.trim().to_owned()).find(|value| !value.is_empty())
        };
        let secret = |names: &[&str]| first(names).map(Secret::from);
        let access = |provider: Provider| Access {
            key: secret(provider.key_variables()),
            base_url: secret(&[provider.address_variable()]),
        };
        Self {
            deepseek: access(Provider::DeepSeek),
            openai: access(Provider::OpenAi),
            anthropic: access(Provider::Anthropic),
            gemini: access(Provider::Gemini),
            ollama: access(Provider::Ollama),
            proxies: Proxies {
                http: secret(&["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]),
                https: secret(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
                except: first(&["NO_PROXY", "no_proxy"]).map(Into::into),
            },
            ..Self::default()
        }
    }

    /// The providers that can be asked without further ado, in order of preference, each with a model that suits most
    /// tasks. Ollama counts if its address is given.
    pub fn providers_with_key(&self) -> Vec<Route> {
        let usable = |provider: &Provider| match provider {
            Provider::Ollama => self.access(*provider).base_url.is_some(),
            Provider::DeepSeek | Provider::OpenAi | Provider::Anthropic | Provider::Gemini => {
                self.access(*provider).key.is_some()
            }
        };
        let route = |provider: Provider| Route::new(provider.name(), provider.default_model());
        Provider::ALL.into_iter().filter(usable).map(route).collect()
    }

    /// The providers, each with the variable without which it cannot be asked.
    pub fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
        Provider::ALL.into_iter().map(|provider| {
            let key = provider.key_variables().first().copied();
            (provider.name(), key.unwrap_or(provider.address_variable()))
        })
    }

    pub(crate) fn access(&self, provider: Provider) -> &Access {
        match provider {
            Provider::DeepSeek => &self.deepseek,
            Provider::OpenAi => &self.openai,
            Provider::Anthropic => &self.anthropic,
            Provider::Gemini => &self.gemini,
            Provider::Ollama => &self.ollama,
        }
    }
}

impl Secret {
    /// What it hides.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Config {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::from_lookup(find)
    }

    fn routes(variables: &[(&str, &str)]) -> Vec<String> {
        from(variables).providers_with_key().iter().map(Route::to_string).collect()
    }

    #[test]
    fn the_first_provider_with_a_key_comes_first() {
        let all = [
            ("OLLAMA_HOST", "x"),
            ("GOOGLE_API_KEY", "x"),
            ("ANTHROPIC_API_KEY", "x"),
            ("OPENAI_API_KEY", "x"),
            ("DEEPSEEK_API_KEY", "x"),
        ];
        let providers: Vec<_> = from(&all).providers_with_key().iter().map(|r| r.provider.to_string()).collect();
        assert_eq!(providers, ["deepseek", "openai", "anthropic", "gemini", "ollama"]);
        assert_eq!(routes(&all[2..3]), ["anthropic/claude-sonnet-4-6"]);
    }

    #[test]
    fn an_address_is_a_key_for_ollama_only_and_an_empty_value_is_none() {
        assert_eq!(routes(&[("OPENAI_BASE_URL", "http://x/v1")]), [""; 0]);
        assert_eq!(routes(&[("OPENAI_API_KEY", " "), ("OLLAMA_HOST", "")]), [""; 0]);
        assert_eq!(routes(&[("OLLAMA_HOST", "x")]).len(), 1);
    }

    #[test]
    fn geminis_own_variable_wins_over_googles() {
        let both = from(&[("GOOGLE_API_KEY", "general"), ("GEMINI_API_KEY", "own")]);
        assert_eq!(both.gemini.key.unwrap().reveal(), "own");
    }

    #[test]
    fn nothing_secret_is_printed() {
        let variables =
            [("OPENAI_API_KEY", "sk-1"), ("OPENAI_BASE_URL", "http://u:sk-1@x"), ("HTTPS_PROXY", "http://u:sk-1@y")];
        assert!(!format!("{:?}", from(&variables)).contains("sk-1"));
    }
}
